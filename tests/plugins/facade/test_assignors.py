"""The assignors give the answers of kafka-python's, and the bytes around them are read by others and read others'."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from io import BytesIO
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AiokafkaRoundRobin
from hypothesis import given
from hypothesis import strategies as st
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kio.schema.consumer_protocol_assignment.v3 import data as kio_assignment
from kio.schema.consumer_protocol_subscription.v0 import data as v0
from kio.schema.consumer_protocol_subscription.v1 import data as v1
from kio.schema.consumer_protocol_subscription.v3 import data as v3
from kio.serial import entity_reader, entity_writer

from leafcuttr.plugins.facade.consumer import protocol
from leafcuttr.plugins.facade.consumer.assignors import ASSIGNORS, Wants
from leafcuttr.wire.errors import MalformedMessage
from leafcuttr_sdk import TopicPartition

_NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
_COUNTS = st.dictionaries(_NAMES, st.integers(1, 12))


@st.composite
def groups(draw: st.DrawFn) -> list[Wants]:
    """Static members first: kafka-python sorts them so only where they come so."""
    ids = draw(st.lists(st.text("mnop-01", min_size=1), min_size=1, max_size=8, unique=True))
    static = draw(st.integers(0, len(ids)))
    return [
        Wants(member_id, f"i{number}" if number < static else None, frozenset(draw(st.sets(_NAMES))))
        for number, member_id in enumerate(ids)
    ]


@given(counts=_COUNTS, members=groups())
def test_ranges_are_those_of_kafka_python(counts: Mapping[str, int], members: list[Wants]) -> None:
    assert _ours("range", counts, members) == _theirs(RangePartitionAssignor, counts, members)


@given(counts=_COUNTS, members=groups(), topics=st.sets(_NAMES))
def test_a_circle_of_equals_is_that_of_kafka_python(
    counts: Mapping[str, int], members: list[Wants], topics: set[str]
) -> None:
    equals = [each._replace(topics=frozenset(topics)) for each in members]
    assert _ours("roundrobin", counts, equals) == _theirs(RoundRobinPartitionAssignor, counts, equals)


@given(counts=_COUNTS, members=groups())
def test_a_circle_of_any_members_is_that_of_aiokafka(counts: Mapping[str, int], members: list[Wants]) -> None:
    """kafka-python's fails (3.0.12) where one member has to be passed over; aiokafka's knows no static members."""
    dynamic = [each._replace(instance_id=None) for each in members]
    theirs = AiokafkaRoundRobin.assign(
        _cluster(counts), {each.member_id: _member(each).metadata for each in dynamic}
    )
    assert _ours("roundrobin", counts, dynamic) == {
        member: _sorted(share.assignment) for member, share in theirs.items()
    }


def _ours(name: str, counts: Mapping[str, int], members: list[Wants]) -> Mapping[str, object]:
    return {member: sorted(share) for member, share in ASSIGNORS[name](counts, members).items()}


def _theirs(assignor: Any, counts: Mapping[str, int], members: list[Wants]) -> Mapping[str, object]:
    shares = assignor.assign(_cluster(counts), [_member(each) for each in members])
    return {member: _sorted(share.assigned_partitions) for member, share in shares.items()}


def _sorted(share: Iterable[Any]) -> list[TopicPartition]:
    pairs = [
        (each[0], each[1]) if isinstance(each, tuple) else (each.topic, each.partitions) for each in share
    ]
    return sorted(TopicPartition(topic, number) for topic, numbers in pairs for number in numbers)


def _cluster(counts: Mapping[str, int]) -> Any:
    return SimpleNamespace(
        partitions_for_topic=lambda topic: set(range(counts[topic])) if topic in counts else None
    )


def _member(wants: Wants) -> Any:
    topics = sorted(wants.topics)
    return SimpleNamespace(
        member_id=wants.member_id,
        group_instance_id=wants.instance_id,
        metadata=SimpleNamespace(topics=topics, subscription=topics),
    )


@pytest.mark.parametrize("name", ASSIGNORS)
@given(counts=_COUNTS, members=groups())
def test_every_partition_that_a_member_wants_has_one_reader(
    name: str, counts: Mapping[str, int], members: list[Wants]
) -> None:
    shares = ASSIGNORS[name](counts, list(reversed(members)))
    assert shares == ASSIGNORS[name](counts, members)  # whatever the order in which members came
    read = sorted(each for share in shares.values() for each in share)
    wanted = {topic for each in members for topic in each.topics}
    assert read == [
        TopicPartition(topic, number)
        for topic, count in sorted(counts.items())
        if topic in wanted
        for number in range(count)
    ]
    for each in members:
        assert {partition.topic for partition in shares[each.member_id]} <= each.topics


_PARTITIONS = st.lists(st.builds(TopicPartition, _NAMES, st.integers(0, 2**31 - 1)), unique=True)


@given(topics=st.sets(_NAMES), share=_PARTITIONS)
def test_what_we_write_is_read_by_others_and_by_us(topics: set[str], share: list[TopicPartition]) -> None:
    data = protocol.subscription(topics)
    assert protocol.read_subscription(data) == topics
    read = entity_reader(v0.ConsumerProtocolSubscription)(memoryview(data), 2)
    assert set(_entity(read).topics) == topics
    assert sorted(protocol.read_assignment(protocol.assignment(share))) == sorted(share)


def _entity(read: object) -> v0.ConsumerProtocolSubscription:
    return read[0] if isinstance(read, tuple) else read  # type: ignore[return-value]


@pytest.mark.parametrize("version", [0, 1, 3])
def test_what_others_write_is_read(version: int) -> None:
    kind = {0: v0, 1: v1, 3: v3}[version]
    more = {} if version == 0 else {"owned_partitions": (kind.TopicPartition(topic="b", partitions=(1,)),)}
    data = _written(kind.ConsumerProtocolSubscription(topics=("a", "b"), user_data=b"u", **more), version)
    assert protocol.read_subscription(data) == {"a", "b"}
    newer = (9).to_bytes(2, "big") + data[2:] + (b"what a later version adds" if version == 3 else b"")
    if version == 3:
        assert protocol.read_subscription(newer) == {"a", "b"}


def test_an_assignment_of_others_is_read() -> None:
    kind = kio_assignment
    message = kind.ConsumerProtocolAssignment(
        assigned_partitions=(kind.TopicPartition(topic="a", partitions=(2, 0, 2)),), user_data=None
    )
    expected = [TopicPartition("a", 2), TopicPartition("a", 0)]
    assert protocol.read_assignment(_written(message, 3)) == expected
    assert protocol.read_assignment(b"") == ()


def _written(message: object, version: int) -> bytes:
    buffer = BytesIO()
    entity_writer(type(message))(buffer, message)
    return version.to_bytes(2, "big") + buffer.getvalue()


@given(st.binary(max_size=60))
def test_bytes_that_are_no_protocol(data: bytes) -> None:
    for read in (protocol.read_subscription, protocol.read_assignment):
        with suppress(MalformedMessage):
            read(data)
