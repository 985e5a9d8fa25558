"""The engine of forwarding: a flow takes records from partitions of one cluster to partitions of another one.

It knows clusters as `leafcuttr_sdk.peers.Peer` only, and nothing of files, commands or MirrorMaker.

    spec            what flows where, and how
    flow            runs one flow: its claim, requests, one attempt after another
    copying         one attempt, and what runs beside each other in it
    intake          reads ahead, within its bound
    making          batches for the target, of whole batches or record by record
    rewriting       batches made fit for another partition
    transacting, acknowledging      exactly once, at least once
    progress        positions, and what is reported of them
    positions       the flow's topic at the target: how far each flow has come
    control         pause, resume and reset, as records of that topic
    topics, routes  topics of both ends, and which partition takes what
    changes         where to begin, and what has become of the source
    switching       a source that is exchanged for another one while the flow runs
    pace            throttle, pauses after errors
    report          what a flow does now, for health, metrics and commands
    points          where tests end a flow
    errors          what ends a flow, or an attempt
"""
