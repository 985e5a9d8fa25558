"""The engine of forwarding: a flow takes records from partitions of one cluster to partitions of another one.

It knows clusters as `leafcuttr_sdk.peers.Peer` only, and nothing of files, commands or MirrorMaker.

    spec        what flows where, and how
    report      what a flow does now, for health, metrics and commands
    positions   the flow's topic at the target: how far each flow has come
    control     pause, resume and reset, as records of that topic
    switching   a source that is exchanged for another one while the flow runs
    rewriting   batches made fit for another partition
    pace        throttle, pauses after errors
    errors      what ends a flow
"""
