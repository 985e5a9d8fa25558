"""What a task says of batches that are damaged where it reads them: one line with the partition. What is in a batch:
tests/spark/codec."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk.peers import PeerRead
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.options import Query
from leafcuttr_spark.source.losses import Span
from leafcuttr_spark.source.options import source_options
from leafcuttr_spark.source.reading import ReadError, read_span

ORDERS = TopicPartition("orders", 3)


def good(first: int) -> bytes:
    return bytes(encode_batch([Record(first + number, 0, b"k", b"value") for number in range(5)]))


def changed(batch: bytes, at: int) -> bytes:
    found = bytearray(batch)
    found[at] ^= 1
    return bytes(found)


class Reader:
    """Hands out what the cluster is said to have, whatever offset is requested."""

    def __init__(self, reads: Sequence[PeerRead]) -> None:
        self._reads = [*reads]

    def assign(self, positions: Any) -> None:
        assert positions == {ORDERS: 0}

    def read(self, timeout: float) -> list[PeerRead]:
        return [self._reads.pop(0)]


def values(*batches: bytes, **given: str) -> list[bytes]:
    """Of what a task reads, up to the offset 10."""
    reads = [PeerRead(ORDERS, each, 5 * (number + 1), 10, 0) for number, each in enumerate(batches)]

    @contextmanager
    def reader(**_: Any) -> Iterator[Reader]:
        yield Reader(reads)

    options = source_options(
        {"kafka.bootstrap.servers": "unused:1", "subscribe": "orders", **given}, Query.BATCH
    )
    peer: Any = SimpleNamespace(reader=reader)
    return [
        value
        for columns in read_span(peer, Span(ORDERS, 0, 10), options)
        for value in columns.values.to_pylist()
    ]


def test_whole_batches_are_read() -> None:
    assert values(good(0), good(5)) == [b"value"] * 10


@pytest.mark.parametrize(
    ("batch", "said"),
    [
        (changed(good(5), -3), "CRC"),
        (changed(good(5), 16), "magic 3"),
        (good(5)[:-4], "122 are left"),
        (b"\0" * 61, "magic 0"),
    ],
    ids=["crc", "magic", "cut", "zeros"],
)
def test_a_damaged_batch_is_one_line(batch: bytes, said: str) -> None:
    with pytest.raises(ReadError) as caught:
        values(good(0), batch)
    line = str(caught.value)
    assert line.startswith("orders-3: a batch at or behind offset 5 is damaged: ")
    assert said in line and "\n" not in line and len(line) < 300


def test_a_crc_is_not_checked_where_that_is_said() -> None:
    found = values(good(0), changed(good(5), -3), **{"kafka.check.crcs": "false"})
    assert len(found) == 10 and found[:9] == [b"value"] * 9 and found[9] != b"value"
