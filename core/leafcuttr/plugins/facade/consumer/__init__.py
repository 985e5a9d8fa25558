"""`leafcuttr_sdk.Consumer`: a member of a classic consumer group in this process, or a reader of named partitions.

    options               what the consumer is to be, for all below
    protocol, assignors   what members tell each other, and how partitions are assigned. Pure
    membership            one member's side of the group protocol as a state machine. Pure
    member                the task that carries it out against the coordinator: rebalances, heartbeats, leaving
    positions, buffer     where each partition is read on, and what has been read but not handed out
    consumer              what the plugin calls; the only one that waits for records

The group's own side is `leafcuttr.state.groups`; how records are read is `leafcuttr.plugins.facade`.
"""
