"""The state of a session and the protocol of a connection: packets in, packets and events out. No I/O and no clock."""
