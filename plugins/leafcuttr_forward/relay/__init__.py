"""`leafcuttr relay`: kaf-relay's configuration, run by the engine of flows.

keys, page          every key of a file: what is allowed, and what it does here; the page of them
durations           times as Go writes them
files, plan         files to one checked plan
properties          what a plan says of a cluster, as properties of a client
pool                which of several identical sources is read: decisions, no I/O
running             a relay while it runs
command             the command line
"""
