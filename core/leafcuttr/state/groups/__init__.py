"""Consumer groups: the classic protocol as a state machine without I/O, its coordinator, and committed
offsets.

Bottom up: `states` (the table), `events` (what goes in and comes out), `members`, `machine`; then `offsets`,
`records` (Kafka's bytes), `store` (the log of `__consumer_offsets`), `loader`, `timers`, `idle` (what goes when
there is too much of it); `coordinator` composes them.
"""
