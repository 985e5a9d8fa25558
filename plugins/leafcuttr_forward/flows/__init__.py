"""The engine of forwarding: a flow takes records from partitions of one cluster to partitions of another one.

It knows clusters as `leafcuttr_sdk.peers.Peer` only, and nothing of files, commands or MirrorMaker.

    spec        what flows where, and how
    report      what a flow does now, for health, metrics and commands
"""
