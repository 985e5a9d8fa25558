"""Transactions: what each transactional id is doing, as a state machine without I/O, and its coordinator.

Bottom up: `states` (the table), `machine`; then `records` (Kafka's bytes), `store` (the log of
`__transaction_state`), `table`, `loader`, `markers`; `coordinator` composes them.
"""
