"""Batches as a partition of a source has them, made and read by aiokafka, with what the records in them are."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from aiokafka.record.default_records import (  # type: ignore[import-untyped]
    DefaultRecordBatch,
    DefaultRecordBatchBuilder,
)

from leafcuttr_sdk.batches import BatchHeader
from leafcuttr_sdk.batches.header import DELETE_HORIZON, HEADER, LOG_APPEND_TIME, TRANSACTIONAL, seal
from leafcuttr_sdk.peers import PeerRead
from leafcuttr_sdk.records import AbortedRange, Headers, Record
from leafcuttr_sdk.types import TopicPartition

PARTITION = TopicPartition("orders", 0)


class Seen(NamedTuple):
    """A record as a reader sees it, without its offset."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class Stored(NamedTuple):
    """A batch of a source: its bytes, and its records by their offsets."""

    data: bytes
    records: dict[int, Seen]
    next_offset: int


class Judging:
    """Filters by a function, for the contract of `leafcuttr_sdk.filters.FilterChain`."""

    names = ("f",)

    def __init__(self, judge: Callable[[Sequence[Record]], list[Any]]) -> None:
        self.judge = judge
        self.forgotten = 0
        self.closed = False

    def filter(self, records: Sequence[Record]) -> list[Any]:
        return self.judge(records)

    def forget(self) -> None:
        self.forgotten += 1

    def close(self) -> None:
        self.closed = True


def stored(
    records: Sequence[tuple[int, Seen]],
    *,
    base: int = 0,
    codec: int = 0,
    last_delta: int | None = None,
    append_time: int | None = None,
    producer: int = -1,
    transactional: bool = False,
    horizon: bool = False,
    epoch: int = 3,
) -> Stored:
    """A batch whose records are at these distances from the base offset; gaps among them and behind the last one
    (`last_delta`) are as compaction leaves them."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=int(transactional),
        producer_id=producer,
        producer_epoch=-1 if producer < 0 else 5,
        base_sequence=-1 if producer < 0 else 7,
        batch_size=1 << 30,
    )
    for delta, (timestamp, key, value, headers) in records:
        builder.append(delta, timestamp, key, value, list(headers))
    batch = bytearray(builder.build())
    header = BatchHeader._make(HEADER.unpack_from(batch))
    attributes = (
        header.attributes | (DELETE_HORIZON if horizon else 0) | (TRANSACTIONAL if transactional else 0)
    )
    if append_time is not None:
        header = header._replace(max_timestamp=append_time)
        attributes |= LOG_APPEND_TIME
    last = header.last_offset_delta if last_delta is None else last_delta
    seal(
        batch,
        header._replace(base_offset=base, leader_epoch=epoch, attributes=attributes, last_offset_delta=last),
    )
    seen = {
        base + delta: one if append_time is None else one._replace(timestamp=append_time)
        for delta, one in records
    }
    return Stored(bytes(batch), seen, base + last + 1)


def read_of(batches: Iterable[Stored], aborted: Sequence[AbortedRange] = ()) -> PeerRead:
    """What a reader finds of them."""
    batches = list(batches)
    end = batches[-1].next_offset if batches else 0
    return PeerRead(PARTITION, b"".join(one.data for one in batches), end, end, 0, aborted)


def seen_in(batch: bytes | bytearray) -> list[Seen]:
    """The records of a batch, by aiokafka; its CRC is checked."""
    parsed = DefaultRecordBatch(bytes(batch))
    assert parsed.validate_crc()
    return [
        Seen(
            one.timestamp,
            None if one.key is None else bytes(one.key),
            None if one.value is None else bytes(one.value),
            tuple(one.headers),
        )
        for one in parsed
    ]
