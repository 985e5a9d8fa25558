"""Log-in of Kafka's clients by SASL, before a connection is served, and anew while it is.

mechanisms, plain, scram, oauthbearer, gssapi    the server's side of an exchange, without I/O
login                       the states of a connection's log-in
before                      the requests that are answered before it
"""
