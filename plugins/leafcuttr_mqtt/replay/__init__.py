"""Histories: a client of 5.0 that subscribes to `$replay/ts/<milliseconds>/<filter>` or
`$replay/offset/<offset>/<filter>` first gets the stored messages of mapped topics, then the live ones.

    `request`   what a client asks for, and which Kafka topics have it; no I/O
    `replays`   those that go on
"""
