"""SASL as a client of Kafka has it, without I/O: PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, and the requests around them.

`exchange` makes the requests; `plain` and `scram` are the mechanisms.
"""
