"""`leafcuttr_sdk.peers.Peer` on this broker: one end of a flow, in process, without a socket.

    peer       the cluster: topics, offsets, groups; composes the others
    reader     reads many partitions; told by their logs, so that it costs nothing while there is nothing
    appender   appends prebuilt batches in the order of the calls, as an idempotent producer
    claim      a member of the group that a claim is, beside members in other processes

No record is decoded. Other clusters are `leafcuttr.client`'s.
"""
