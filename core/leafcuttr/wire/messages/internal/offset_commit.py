"""The records of committed offsets in `__consumer_offsets`.

Keys of version 0 and 1 are the same. Values of version 1 carry an expiry of their own (OffsetCommit before v5),
2 dropped it, 3 has the leader epoch (KIP-320), 4 is flexible and has the topic id.
"""

from leafcuttr.wire.schema import INT32, INT64, STRING, UUID, field, message


@message("0-1")
class OffsetCommitKey:
    group: str = field(STRING, "0+")
    topic: str = field(STRING, "0+")
    partition: int = field(INT32, "0+")


@message("0-4", flexible="4+")
class OffsetCommitValue:
    offset: int = field(INT64, "0+")
    leader_epoch: int = field(INT32, "3+", default=-1, ignorable=True)
    metadata: str = field(STRING, "0+")
    commit_timestamp: int = field(INT64, "0+")
    expire_timestamp: int = field(INT64, "1", default=-1, ignorable=True)
    topic_id: bytes = field(UUID, "4+", tag=0, tagged="4+", ignorable=True)
