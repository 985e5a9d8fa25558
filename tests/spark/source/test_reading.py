"""A source without Spark on a real broker: which partitions, where queries begin and end, and what a task reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from confluent_kafka import Producer

from leafcuttr_sdk.blocking_peers import BlockingPeer, open_peer
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.options import OptionError, Query
from leafcuttr_spark.source.cluster import ClusterView
from leafcuttr_spark.source.losses import DataLossError, Span
from leafcuttr_spark.source.options import SourceOptions, Subscription, source_options
from leafcuttr_spark.source.reading import ReadError, read_span
from leafcuttr_spark.source.starting import first_offsets, last_offsets
from support import librdkafka
from support.live_broker import LiveBroker


@pytest.fixture
def peer(live: LiveBroker) -> Iterator[BlockingPeer]:
    with open_peer({"bootstrap.servers": live.address}) as found:
        yield found


def options(topic: str, query: Query = Query.BATCH, **given: Any) -> SourceOptions:
    return source_options({"kafka.bootstrap.servers": "unused:1", "subscribe": topic, **given}, query)


def read(peer: BlockingPeer, span: Span, given: SourceOptions) -> list[bytes]:
    """The values."""
    return [value for columns in read_span(peer, span, given) for value in columns.values.to_pylist()]


def numbers(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


# Which partitions


def test_subscriptions(live: LiveBroker, peer: BlockingPeer, topic: str) -> None:
    librdkafka.create(live.address, f"{topic}-more", 3)
    view = ClusterView(peer, committed=True)
    found = view.required(Subscription(topics=(topic, f"{topic}-more")))
    assert found.partitions == (
        TopicPartition(topic, 0),
        *(TopicPartition(f"{topic}-more", n) for n in range(3)),
    )
    assert len(set(found.topic_ids.values())) == 2
    assert view.subscribed(Subscription(pattern=rf"{topic}-m.*")).partitions == found.partitions[1:]
    assert view.subscribed(Subscription(pattern=topic)).partitions == found.partitions[:1], "the whole name"
    some = (TopicPartition(f"{topic}-more", 1),)
    assert view.required(Subscription(partitions=some)).partitions == some


def test_what_does_not_exist_is_named(peer: BlockingPeer, topic: str) -> None:
    view = ClusterView(peer, committed=True)
    with pytest.raises(OptionError, match=f"does not have {topic}-none$"):
        view.required(Subscription(topics=(topic, f"{topic}-none")))
    with pytest.raises(OptionError, match=f"does not have {topic}-7$"):
        view.required(Subscription(partitions=(TopicPartition(topic, 0), TopicPartition(topic, 7))))
    assert view.subscribed(Subscription(topics=(f"{topic}-none",))).missing == (f"{topic}-none",)


# Where it begins and ends


def test_offsets_by_place_and_time(live: LiveBroker, peer: BlockingPeer, topic: str) -> None:
    for number in range(5):
        librdkafka.send(live.address, topic, [b"%d" % number], timestamp=1_700_000_000_000 + 1000 * number)
    one = TopicPartition(topic, 0)
    view = ClusterView(peer, committed=True)
    found = view.required(Subscription(topics=(topic,)))

    def first(**given: str) -> int:
        return first_offsets(view, found, options(topic, Query.STREAM, **given))[one]

    def last(**given: str) -> int:
        return last_offsets(view, found, options(topic, **given))[one]

    assert (first(startingOffsets="earliest"), first(), last()) == (0, 5, 5)
    assert first(startingOffsets=f'{{"{topic}": {{"0": 3}}}}') == 3
    assert first(startingOffsets=f'{{"{topic}": {{"0": -2}}}}') == 0
    assert first(startingOffsets=f'{{"{topic}": {{"0": -1}}}}') == 5
    assert first(startingTimestamp="1700000001500") == 2
    assert first(startingOffsetsByTimestamp=f'{{"{topic}": {{"0": 1700000003000}}}}') == 3
    with pytest.raises(OptionError, match=f"behind the last record of {topic}-0"):
        first(startingTimestamp="1800000000000")
    assert first(startingTimestamp="1800000000000", startingOffsetsByTimestampStrategy="latest") == 5
    assert (last(endingTimestamp="1700000002000"), last(endingTimestamp="1800000000000")) == (2, 5)
    assert last(endingOffsets=f'{{"{topic}": {{"0": 4}}}}') == 4
    with pytest.raises(OptionError, match=f"has 9 for {topic}-0, which ends at 5"):
        last(endingOffsets=f'{{"{topic}": {{"0": 9}}}}')
    with pytest.raises(OptionError, match=f"has 9 for {topic}-0, which ends at 5"):
        first(startingOffsets=f'{{"{topic}": {{"0": 9}}}}')


def test_all_partitions_have_to_be_named(live: LiveBroker, peer: BlockingPeer, topic: str) -> None:
    name = f"{topic}-wide"
    librdkafka.create(live.address, name, 2)
    view = ClusterView(peer, committed=True)
    found = view.required(Subscription(topics=(name,)))
    with pytest.raises(OptionError, match=f"does not name {name}-1; it has to name all"):
        first_offsets(view, found, options(name, startingOffsets=f'{{"{name}": {{"0": 0}}}}'))
    three = f'{{"{name}": {{"0": 0, "1": 0, "2": 0}}}}'
    with pytest.raises(OptionError, match=f"names {name}-2, which the query does not read"):
        first_offsets(view, found, options(name, startingOffsets=three))


# What a task reads


def test_a_span_exactly(live: LiveBroker, peer: BlockingPeer, topic: str) -> None:
    for at in range(0, 100, 20):
        librdkafka.send(live.address, topic, numbers(at, at + 20), timestamp=1)
    span = Span(TopicPartition(topic, 0), 13, 78)
    assert read(peer, span, options(topic)) == numbers(13, 78)
    small = options(topic, **{"kafka.max.partition.fetch.bytes": "1"})
    assert read(peer, span, small) == numbers(13, 78)
    (columns,) = read_span(peer, Span(span.partition, 0, 1), options(topic, columns="offset"))
    assert (columns.offsets.tolist(), columns.keys, columns.values) == ([0], None, None)


def test_committed_records_only_unless_it_is_told_otherwise(
    live: LiveBroker, peer: BlockingPeer, topic: str
) -> None:
    producer = Producer({"bootstrap.servers": live.address, "transactional.id": topic})
    producer.init_transactions(30)
    for part, ends in enumerate(
        (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction)
    ):
        producer.begin_transaction()
        for number in range(part * 10, part * 10 + 10):
            producer.produce(topic, b"%d" % number, partition=0, timestamp=1)
        producer.flush(30)
        ends(30)
    one = TopicPartition(topic, 0)
    given = options(topic)
    end = ClusterView(peer, committed=True).ends([one])[one]
    assert end == 33
    assert read(peer, Span(one, 0, end), given) == numbers(0, 10) + numbers(20, 30)
    assert read(peer, Span(one, 0, end), replace(given, committed=False)) == numbers(0, 30)
    # An open transaction ends what can be read.
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0, timestamp=1)
    producer.flush(30)
    assert ClusterView(peer, committed=True).ends([one])[one] == 33
    assert ClusterView(peer, committed=False).ends([one])[one] == 34
    producer.abort_transaction(30)


@pytest.mark.parametrize("fails", [True, False])
def test_records_that_are_gone(live: LiveBroker, peer: BlockingPeer, topic: str, fails: bool) -> None:
    librdkafka.send(live.address, topic, numbers(0, 30), timestamp=1)
    delete_before(live, topic, 20)
    span = Span(TopicPartition(topic, 0), 10, 30)
    given = options(topic, failOnDataLoss=str(fails).lower())
    if fails:
        with pytest.raises(
            DataLossError, match=f"{topic}-0 begins at offset 20: offsets from 10 on are gone"
        ):
            read(peer, span, given)
    else:
        assert read(peer, span, given) == numbers(20, 30)
        assert read(peer, Span(span.partition, 5, 15), given) == []


@pytest.mark.parametrize("fails", [True, False])
def test_a_partition_that_ends_before_what_a_task_is_to_read(
    live: LiveBroker, peer: BlockingPeer, topic: str, fails: bool
) -> None:
    """As after a topic was truncated between the plan and the task."""
    librdkafka.send(live.address, topic, numbers(0, 10), timestamp=1)
    span = Span(TopicPartition(topic, 0), 20, 30)
    given = options(topic, failOnDataLoss=str(fails).lower())
    if fails:
        with pytest.raises(DataLossError, match=f"{topic}-0 ends at offset 10: offsets up to 30 are gone"):
            read(peer, span, given)
    else:
        assert read(peer, span, given) == []


def test_offsets_that_never_come_end_the_task_with_a_line(
    live: LiveBroker, peer: BlockingPeer, topic: str
) -> None:
    librdkafka.send(live.address, topic, numbers(0, 3), timestamp=1)
    given = options(topic, **{"kafkaConsumer.pollTimeoutMs": "200"})
    with pytest.raises(
        ReadError, match=f"{topic}-0: nothing came from offset 3 within 0.2 s, and 9 is to be reached"
    ):
        read(peer, Span(TopicPartition(topic, 0), 0, 9), given)


def test_a_topic_that_is_gone_ends_the_task_with_a_line(
    live: LiveBroker, peer: BlockingPeer, topic: str
) -> None:
    with pytest.raises(ReadError, match="none-0: it cannot be read from offset 0 on"):
        read(peer, Span(TopicPartition("none", 0), 0, 9), options(topic))


def delete_before(live: LiveBroker, topic: str, offset: int) -> None:
    from confluent_kafka import TopicPartition as Partition

    client: Callable[..., Any] = librdkafka.admin(live.address)
    for future in client.delete_records([Partition(topic, 0, offset)]).values():  # type: ignore[attr-defined]
        future.result(30)
