"""Records: as they are produced, as they are stored, and the batches that carry them."""

from collections.abc import Sequence
from typing import NamedTuple

from leafcuttr_sdk._described import described
from leafcuttr_sdk.types import TopicPartition

Headers = tuple[tuple[str, bytes | None], ...]


@described
class Record(NamedTuple):
    """What a producer writes."""

    value: bytes | None
    """None is a tombstone: in a compacted topic it deletes the key."""
    key: bytes | None = None
    headers: Headers = ()
    timestamp: int | None = None
    """Milliseconds since the Unix epoch; None is now."""


@described
class StoredRecord(NamedTuple):
    """A record that is in a partition."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@described
class Produced(NamedTuple):
    """Where a record went. `timestamp` is what is stored with it: the broker's own in a topic with LogAppendTime."""

    topic: str
    partition: int
    offset: int
    timestamp: int


@described
class NewBatch(NamedTuple):
    """A prebuilt record batch (magic 2, Kafka's format, base offset 0) for one partition. Its bytes may be changed
    while it is appended."""

    partition: TopicPartition
    batch: bytes | bytearray | memoryview


@described
class Appended(NamedTuple):
    """The offsets that a batch got; those of its first copy if an idempotent producer repeats it (`duplicate`)."""

    base_offset: int
    last_offset: int
    log_append_time: int = -1
    duplicate: bool = False


@described
class AbortedRange(NamedTuple):
    """What readers of committed records skip: the transactional records of this producer from `first_offset` to
    `last_offset`, which is that of the marker."""

    producer_id: int
    first_offset: int
    last_offset: int


@described
class RawRead(NamedTuple):
    """Whole record batches as they are stored, one behind the other; the first may begin before the offset that was
    requested. `next_offset` is where to go on."""

    data: bytes | bytearray
    next_offset: int
    high_watermark: int
    log_start_offset: int
    aborted: Sequence[AbortedRange] = ()
    """Of a read of committed records: the aborted transactions that have records in `data`, in the order of their
    markers."""


@described
class Fetched(NamedTuple):
    """What a fetch found: records, those of a partition together and in order of offset, and where to go on in each
    partition that was requested for."""

    records: Sequence[StoredRecord]
    positions: dict[TopicPartition, int]
