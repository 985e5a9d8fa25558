"""Kerberos, as far as a server needs it: who a ticket is for, and what its client is called here.

names      the short name of a principal, by Kafka's rules
settings   what the settings of a listener say
acceptor   tickets of clients: all that is known of the package `gssapi` (extra `kerberos`)

None of it knows SASL: that is `server.login.gssapi`.
"""
