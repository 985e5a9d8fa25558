"""Rows of tasks to a real broker: by partitions, in transactions of several writers, each record once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from leafcuttr_sdk.blocking_peers import BlockingPeer, open_peer
from leafcuttr_sdk.errors import OutOfOrderSequence
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.codec.headers import HEADERS
from leafcuttr_spark.options import Query
from leafcuttr_spark.sink.marker import MicroBatch, is_done, last_done, mark
from leafcuttr_spark.sink.options import SinkOptions, sink_options
from leafcuttr_spark.sink.writing import RowTimeError, by_partition, write_rows
from leafcuttr_spark.source.cluster import ClusterView
from leafcuttr_spark.source.losses import Span
from leafcuttr_spark.source.options import source_options
from leafcuttr_spark.source.reading import read_span
from support import librdkafka
from support.live_broker import LiveBroker

_NUMBERS = count()


@pytest.fixture
def peer(live: LiveBroker) -> Iterator[BlockingPeer]:
    with open_peer({"bootstrap.servers": live.address}) as found:
        yield found


@pytest.fixture
def topic(live: LiveBroker) -> str:
    name = f"sums-{next(_NUMBERS)}"
    # The clock of this broker stands in the past.
    librdkafka.create(live.address, name, 3, message_timestamp_after_max_ms=str(2**63 - 1))
    return name


def options(**given: Any) -> SinkOptions:
    return sink_options({"kafka.bootstrap.servers": "unused:1", **given}, Query.BATCH)


def rows(*found: tuple[str, int, bytes | str | None], type_: pa.DataType | None = None) -> pa.RecordBatch:
    topics, partitions, values = zip(*found, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(topics),
            pa.array(partitions, pa.int32()),
            pa.array([b"k"] * len(found), pa.binary()),
            pa.array(values, type_ or pa.binary()),
            pa.array([[{"key": "h", "value": b"x"}]] * len(found), HEADERS),
        ],
        ["topic", "partition", "key", "value", "headers"],
    )


def stored(peer: BlockingPeer, topic: str, *, committed: bool = True) -> dict[int, list[bytes]]:
    """The values of each partition."""
    given = source_options({"kafka.bootstrap.servers": "x:1", "subscribe": topic}, Query.BATCH)
    ends = ClusterView(peer, committed=committed).ends(TopicPartition(topic, n) for n in range(3))
    return {
        one.partition: [
            value
            for columns in read_span(peer, Span(one, 0, end), given)
            for value in columns.values.to_pylist()
        ]
        for one, end in ends.items()
        if end
    }


# Without a broker


def test_rows_by_partition_in_their_order() -> None:
    batch = rows(("b", 1, b"1"), ("a", 1, b"2"), ("b", 0, b"3"), ("b", 1, b"4"), ("a", 1, b"5"))
    found = {
        str(one): part.values.to_pylist() for one, part in by_partition(batch, options(includeHeaders="true"))
    }
    assert found == {"b-1": [b"1", b"4"], "a-1": [b"2", b"5"], "b-0": [b"3"]}
    (only,) = by_partition(batch.slice(1, 1), options())
    assert (str(only[0]), only[1].values.to_pylist(), only[1].headers) == ("a-1", [b"2"], None)
    assert list(by_partition(batch.slice(0, 0), options())) == []


def test_timestamps_of_rows_go_with_them() -> None:
    batch = rows(("b", 1, b"1"), ("a", 1, b"2"), ("b", 0, b"3"), ("b", 1, b"4"), ("a", 1, b"5"))
    times = [1_700_000_000_000, 0, None, 253_402_300_799_999, 7]
    timed = batch.append_column("timestamp", pa.array(times, pa.int64()))
    before = int(time.time() * 1000)
    parts = by_partition(timed, options(includeTimestamps="true"))
    found = {str(one): part.timestamps.tolist() for one, part in parts}
    (now,) = found.pop("b-0")
    assert found == {"b-1": [times[0], times[3]], "a-1": [0, 7]}
    assert before <= now <= time.time() * 1000
    for _, part in by_partition(timed, options()):
        assert part.timestamps.min() >= before
    early = batch.append_column("timestamp", pa.array([0, -1, 0, 0, 0], pa.int64()))
    with pytest.raises(RowTimeError, match="a row has the timestamp -1 ms, which is before 1970"):
        list(by_partition(early, options(includeTimestamps="true")))


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.large_binary(), pa.binary()])
def test_text_and_large_columns_are_bytes(type_: pa.DataType) -> None:
    ((_, part),) = by_partition(rows(("a", 0, "é"), ("a", 0, None), type_=type_), options())
    assert part.values.type == pa.binary()
    assert part.values.to_pylist() == ["é".encode(), None]


# In transactions


def test_two_writers_and_one_transaction(live: LiveBroker, peer: BlockingPeer, topic: str) -> None:
    this = MicroBatch("q1", 4, "abc")
    with peer.owner(topic) as owner:
        shared = owner.begin()
        with peer.join(shared) as appender:
            first = write_rows(
                [rows((topic, 0, b"a"), (topic, 1, b"b")), rows((topic, 0, b"c"))], appender, options()
            )
        with open_peer({"bootstrap.servers": live.address}) as other, other.join(shared) as appender:
            second = write_rows([rows((topic, 2, b"d"))], appender, options(includeHeaders="true"))
        assert first.to_pylist() == [
            {"topic": topic, "partition": 0, "records": 2},
            {"topic": topic, "partition": 1, "records": 1},
        ]
        assert stored(peer, topic) == {}, "nothing before the commit"
        written = {
            TopicPartition(row["topic"], row["partition"]): row["records"]
            for row in first.to_pylist() + second.to_pylist()
        }
        owner.commit_offsets(topic, mark(this, {topic}))
        owner.commit(written)
    with peer.owner(topic):
        # A new owner waits until what the last one has decided is completed.
        assert stored(peer, topic) == {0: [b"a", b"c"], 1: [b"b"], 2: [b"d"]}
        own, other_query = last_done(peer.committed(topic), "q1")
    assert (own, other_query) == (this, None)
    assert is_done(this, own)


def test_a_second_attempt_is_refused_and_nothing_of_it_is_read(peer: BlockingPeer, topic: str) -> None:
    with peer.owner(topic) as owner:
        shared = owner.begin()
        with peer.join(shared) as appender:
            write_rows([rows((topic, 0, b"a"))], appender, options())
        with pytest.raises(OutOfOrderSequence), peer.join(shared) as appender:
            write_rows([rows((topic, 0, b"a"))], appender, options())
        owner.abort()
    with peer.owner(topic):
        assert stored(peer, topic) == {0: []}


def test_at_least_once_by_an_appender(peer: BlockingPeer, topic: str) -> None:
    given = options(delivery="at-least-once", **{"kafka.compression.type": "lz4", "kafka.batch.size": "100"})
    with peer.appender() as appender:
        told = write_rows([rows(*((topic, 1, b"%d" % n) for n in range(50)))], appender, given)
    assert told.to_pylist() == [{"topic": topic, "partition": 1, "records": 50}]
    assert stored(peer, topic) == {1: [b"%d" % n for n in range(50)]}
