"""Batches made and read by `leafcuttr_sdk.batches`, in a real broker."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record as WireRecord
from leafcuttr.wire.records import encode_batch
from leafcuttr_sdk import Appended, Broker, NewBatch, Record, TopicPartition
from leafcuttr_sdk.batches import BatchBuilder, batches_in, encode_headers, encode_key, partition_of
from support.logs import HandClock

AT = TopicPartition("t", 0)
maybe_bytes = st.none() | st.binary(max_size=100)
headers = st.lists(st.tuples(st.text(max_size=9), maybe_bytes), max_size=4).map(tuple)
rows = st.lists(
    st.builds(Record, maybe_bytes, maybe_bytes, headers, st.none() | st.integers(0, 2**45)),
    min_size=1,
    max_size=20,
)
numbers = itertools.count()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows)
async def test_the_bytes_are_those_of_produce_batch(
    view: Broker, clock: HandClock, records: list[Record]
) -> None:
    name = f"t-{next(numbers)}"
    await view.topics.create(name, configs={"message.timestamp.after.max.ms": str(2**62)})
    await view.produce_batch(name, records)
    builder = BatchBuilder()
    for value, key, head, timestamp in records:
        at = clock.now_ms() if timestamp is None else timestamp
        assert builder.add(value, at, encode_key(key), encode_headers(head))
    (stored,) = batches_in((await view.read_batches(TopicPartition(name, 0), 0)).data)
    assert stored.as_new() == builder.finish()


@pytest.mark.parametrize("codec", Codec)
async def test_what_is_read_is_appended_to_another_topic(view: Broker, codec: Codec) -> None:
    for name in ("t", "copy"):
        await view.topics.create(name)
    for number in range(5):
        batch = encode_batch([WireRecord(n, 7, b"k", b"%d" % number) for n in range(3)], codec=codec)
        await view.append([NewBatch(AT, batch)])
    read = await view.read_batches(AT, 0)
    copies = [NewBatch(TopicPartition("copy", 0), each.as_new()) for each in batches_in(read.data)]
    assert len(copies) == 5
    answers = await view.append(copies)
    assert [each.base_offset for each in answers if isinstance(each, Appended)] == [0, 3, 6, 9, 12]
    found = [await view.fetch({TopicPartition(name, 0): 0}) for name in ("t", "copy")]
    first, second = ([each[2:] for each in fetched.records] for fetched in found)
    assert first == second


async def test_a_batch_that_is_sent_again_is_there_once(view: Broker) -> None:
    for name in ("t", "copy"):
        await view.topics.create(name)
    await view.produce_batch("t", [Record(b"one"), Record(b"two")])
    (stored,) = batches_in((await view.read_batches(AT, 0)).data)
    copy = NewBatch(TopicPartition("copy", 0), stored.for_producer(1000, 0, 0))
    first, again = [(await view.append([copy]))[0] for _ in range(2)]
    assert isinstance(first, Appended) and isinstance(again, Appended)
    assert (first.base_offset, first.duplicate) == (again.base_offset, not again.duplicate) == (0, False)


async def test_a_key_goes_where_produce_sends_it(view: Broker) -> None:
    await view.topics.create("t", partitions=7)
    for number in range(50):
        key = b"key %d" % number
        assert (await view.produce("t", b"v", key)).partition == partition_of(key, 7)
