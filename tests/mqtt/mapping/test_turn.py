"""Turns that write to a real broker: what is stored, what is not, and what is written again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.state.broker import Broker as Core
from leafcuttr_mqtt.mapping.outcomes import MAX_SPLITS, Failure
from leafcuttr_mqtt.mapping.rules import make_rules
from leafcuttr_mqtt.mapping.turn import Turn
from leafcuttr_mqtt.mapping.writer import KafkaWriter
from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import ReasonCode
from leafcuttr_sdk import EARLIEST, Broker, StoredRecord, TopicPartition
from leafcuttr_sdk.batches import partition_of
from support.gates_slice import sampled
from support.mqtt_chains import PLUGIN, open_with, ready

NO_CREATION = {"auto_create_topics_enable": "false"}


def writer_of(broker: Broker, keys: dict[str, str] | None = None, /, **mappings: str) -> KafkaWriter:
    """Of the filters `<name>/#`."""
    rules = make_rules({f"{name}/#": target for name, target in mappings.items()}, keys or {})
    return KafkaWriter(broker.topics, rules)


def put(writer: KafkaWriter, turn: Turn, *payloads: bytes, topic: str = "a/x", **fields: Any) -> None:
    for payload in payloads:
        turn.add(Message(topic, payload, client_id="dev", arrived_ms=1000, **fields), writer.targets(topic))


async def write(broker: Broker, turn: Turn) -> int:
    """Rounds that it took."""
    rounds = 0
    while turn.pending:
        await turn.advance()
        turn.settle(await broker.append(turn.batches()))
        rounds += 1
    return rounds


async def stored(broker: Broker, topic: str) -> list[StoredRecord]:
    partitions = [TopicPartition(topic, number) for number in range(broker.topics.partition_count(topic))]
    positions = await broker.offsets(dict.fromkeys(partitions, EARLIEST))
    found: list[StoredRecord] = []
    while (fetched := await broker.fetch(positions, max_bytes=10_000_000)).records:
        found += fetched.records
        positions = fetched.positions
    return found


async def values(broker: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in await stored(broker, topic)]


async def test_a_record_is_the_message(broker: Broker) -> None:
    writer = writer_of(broker, a="t")
    await broker.topics.create("t", partitions=5)
    turn = writer.begin()
    assert not turn.pending
    for topic in ("a/x", "a/y"):
        turn.add(Message(topic, b"\xff\0", 1, True, "dev", 1234), writer.targets(topic))
    turn.add(
        Message("a/x", b"", 2, False, "dev", 1235, user_properties=(("u", "v"),)), writer.targets("a/x"), 9
    )
    turn.add(Message("a/x", b"n", 2, False, "dev", 1235), writer.targets("a/x"), 10)
    assert await write(broker, turn) == 1
    assert not turn.failures
    found = await stored(broker, "t")
    topic, sender, number = ("mqtt.topic", b"a/x"), ("mqtt.client_id", b"dev"), "mqtt.message.number"
    one = (topic, ("mqtt.qos", b"1"), ("mqtt.retain", b"true"), sender)
    two = (topic, ("mqtt.qos", b"2"), ("mqtt.retain", b"false"), sender)
    by_key = {key: [each for each in found if each.key == key] for key in (b"a/x", b"a/y")}
    assert [(r.value, r.timestamp, r.headers) for r in by_key[b"a/x"]] == [
        (b"\xff\0", 1234, one),
        (b"", 1235, (*two, (number, b"9"), ("u", b"v"))),
        (b"n", 1235, (*two, (number, b"10"))),
    ]
    assert [(r.value, r.headers[0]) for r in by_key[b"a/y"]] == [(b"\xff\0", ("mqtt.topic", b"a/y"))]
    assert all(record.partition == partition_of(record.key or b"", 5) for record in found)


async def test_all_messages_of_a_partition_are_one_batch_in_their_order(broker: Broker) -> None:
    await broker.topics.create("t", partitions=2)
    writer = writer_of(broker, a="t", b="u")
    await broker.topics.create("u")
    turn = writer.begin()
    for number in range(1000):
        topic = f"{'ab'[number % 3 == 0]}/{number % 7}"
        turn.add(
            Message(topic, b"%d" % number, number % 2, client_id=f"c{number % 5}", arrived_ms=number),
            writer.targets(topic),
        )
    batches = turn.batches()
    assert sorted((each.partition.topic, each.partition.partition) for each in batches) == [
        ("t", 0),
        ("t", 1),
        ("u", 0),
    ]
    turn.settle(await broker.append(batches))
    assert not turn.pending and not turn.failures
    for name in ("t", "u"):
        found = await stored(broker, name)
        for partition in (0, 1):
            numbers = [int(each.value or b"") for each in found if each.partition == partition]
            assert numbers == sorted(numbers)
        assert all(each.timestamp == int(each.value or b"") for each in found)
    assert len(await stored(broker, "t")) + len(await stored(broker, "u")) == 1000


async def test_a_message_goes_to_each_of_its_kafka_topics(broker: Broker) -> None:
    writer = writer_of(broker, {"b/#": ""}, a="t", **{"a/x": "u"}, b="u")
    turn = writer.begin()
    put(writer, turn, b"1", topic="a/x/y")
    put(writer, turn, b"2", topic="b/x")
    assert await write(broker, turn) == 1
    assert await values(broker, "t") == [b"1"]
    assert [(r.key, r.value) for r in await stored(broker, "u")] == [(b"a/x/y", b"1"), (None, b"2")]


async def test_without_a_key_all_partitions_get_some(broker: Broker) -> None:
    await broker.topics.create("t", partitions=3)
    writer = writer_of(broker, {"a/#": ""}, a="t")
    turn = writer.begin()
    put(writer, turn, *[b"x" * 8000] * 40)
    await write(broker, turn)
    found = await stored(broker, "t")
    assert len(found) == 40
    assert {record.partition for record in found} == {0, 1, 2}


async def test_topics_are_created_where_the_broker_allows_it(opened: Any) -> None:
    for allowed in ("true", "false"):
        core = open_with(opened, auto_create_topics_enable=allowed, num_partitions="3")
        broker = make_broker_view(core, PLUGIN)
        writer = writer_of(broker, a=f"new-{allowed}", b="of-{1}")
        turn = writer.begin()
        put(writer, turn, b"1", b"2")
        put(writer, turn, b"3", topic=f"b/{allowed}")
        await write(broker, turn)
        if allowed == "true":
            assert not turn.failures
            assert broker.topics.partition_count("new-true") == 3
            assert await values(broker, "new-true") == [b"1", b"2"]
            assert await values(broker, "of-true") == [b"3"]
            turn = writer.begin()
            put(writer, turn, b"4")
            assert not turn._absent
        else:
            text = "there is no Kafka topic new-false, and auto.create.topics.enable is false"
            assert (
                turn.failures[0]
                == turn.failures[1]
                == Failure(None, ("new-false",), f"Kafka topic new-false: {text}")
            )
            # What clients make up is refused for good.
            refused = turn.failures[2].refused
            assert refused is not None
            assert (refused.code, refused.kafka_topic) == (ReasonCode.TOPIC_NAME_INVALID, "of-false")
            await broker.topics.create("new-false")
            turn2 = writer.begin()
            for index in (0, 1):
                turn2.again(turn._messages[index], turn.failures[index])
            await write(broker, turn2)
            assert not turn2.failures
            assert await values(broker, "new-false") == [b"1", b"2"]


async def test_a_record_that_a_validator_refuses_is_left_out_and_the_others_are_stored(
    broker: Broker,
) -> None:
    await broker.topics.create("t", configs={"lc.validators": "no-bad"})
    writer = writer_of(broker, a="t")
    turn = writer.begin()
    put(writer, turn, b"1", b"bad 2", b"3", b"bad 4", b"5")
    assert await write(broker, turn) == 2
    assert await values(broker, "t") == [b"1", b"3", b"5"]
    assert sorted(turn.failures) == [1, 3]
    for index in (1, 3):
        refused = turn.failures[index].refused
        assert refused is not None
        assert (refused.kafka_topic, refused.code) == ("t", ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR)
        assert refused.text == f"bad {index + 1} is bad"
        assert not turn.failures[index].missing


async def test_a_message_that_is_too_large_is_refused_and_costs_the_others_nothing(broker: Broker) -> None:
    await broker.topics.create("t", configs={"max.message.bytes": "2000"})
    writer = writer_of(broker, a="t")
    turn = writer.begin()
    put(writer, turn, b"x" * 3000, *[b"%d" % n * 100 for n in range(9)], b"y" * 3000)
    assert await write(broker, turn) == 1
    assert await values(broker, "t") == [b"%d" % n * 100 for n in range(9)]
    assert sorted(turn.failures) == [0, 10]
    refused = turn.failures[0].refused
    assert refused is not None
    assert refused.code is ReasonCode.QUOTA_EXCEEDED
    assert refused.text == "the message is larger than Kafka topic t allows: 2000 bytes"
    turn = writer.begin()
    put(writer, turn, b"x" * 3000)
    await write(broker, turn)
    assert 0 in turn.failures


async def test_what_is_written_again_is_not_overtaken_by_the_next_batch(broker: Broker) -> None:
    await broker.topics.create("t", configs={"lc.validators": "no-bad", "max.message.bytes": "2000"})
    writer = writer_of(broker, a="t")
    turn = writer.begin()
    payloads = [(b"bad" if n % 5 == 0 else b"%d-" % n) + b"x" * 500 for n in range(30)]
    put(writer, turn, *payloads)
    assert await write(broker, turn) > 10
    assert await values(broker, "t") == [payload for payload in payloads if not payload.startswith(b"bad")]
    assert sorted(turn.failures) == [0, 5, 10, 15, 20, 25]


async def test_a_limit_that_is_lowered_while_batches_are_under_way(broker: Broker) -> None:
    await broker.topics.create("t")
    writer = writer_of(broker, a="t")
    turn = writer.begin()
    put(writer, turn, *[b"x" * 900] * 10, b"y" * 3000)
    batches = turn.batches()
    await broker.topics.alter("t", {"max.message.bytes": "2000"})
    turn.settle(await broker.append(batches))
    await write(broker, turn)
    assert await values(broker, "t") == [b"x" * 900] * 10
    assert list(turn.failures) == [10]


async def test_of_a_filter_that_fails_only_the_record_at_fault_waits(broker: Broker) -> None:
    await broker.topics.create("t", configs={"lc.filters": "fails"})
    writer = writer_of(broker, a="t")
    turn = writer.begin()
    put(writer, turn, *[b"%d" % n for n in range(20)], b"poison", *[b"%d" % n for n in range(20, 30)])
    await write(broker, turn)
    assert await values(broker, "t") == [b"%d" % n for n in range(30)]
    assert list(turn.failures) == [20]
    failure = turn.failures[20]
    assert (failure.refused, failure.missing) == (None, ("t",))
    assert failure.reason.startswith("Kafka topic t: ")


async def test_a_filter_that_fails_always_is_not_asked_for_each_record(broker: Broker) -> None:
    await broker.topics.create("t", configs={"lc.filters": "fails"})
    writer = writer_of(broker, a="t")
    turn = writer.begin()
    put(writer, turn, *[b"poison"] * 2000)
    appended = 0
    while turn.pending:
        batches = turn.batches()
        appended += len(batches)
        turn.settle(await broker.append(batches))
    assert len(turn.failures) == 2000
    assert all(failure.missing == ("t",) and failure.refused is None for failure in turn.failures.values())
    assert appended <= 2 * MAX_SPLITS + 1


async def test_what_waits_is_stored_later_and_only_where_it_is_missing(broker: Broker) -> None:
    await broker.topics.create("t", configs={"lc.validators": "wait"})
    await broker.topics.create("u")
    writer = writer_of(broker, a="t", **{"a/x": "u"})
    turn = writer.begin()
    put(writer, turn, b"1", topic="a/x/y")
    assert await write(broker, turn) == 1
    failure = turn.failures[0]
    assert (failure.refused, failure.missing) == (None, ("t",))
    assert failure.reason.startswith("Kafka topic t: ") and "a table" in failure.reason
    ready["now"] = True
    later = writer.begin()
    assert later.again(turn._messages[0], failure, 5) == 0
    await write(broker, later)
    assert not later.failures
    assert await values(broker, "u") == [b"1"]
    (record,) = await stored(broker, "t")
    assert (record.value, dict(record.headers)["mqtt.message.number"]) == (b"1", b"5")


async def test_an_offline_partition_holds_back_its_own_messages_only(core: Core, broker: Broker) -> None:
    await broker.topics.create("t")
    await broker.topics.create("u")
    core.topics.by_name["t"].partitions[0].log.take_offline("a test says so")
    writer = writer_of(broker, a="t", b="u")
    turn = writer.begin()
    put(writer, turn, b"1", b"2")
    put(writer, turn, b"3", topic="b/x")
    assert await write(broker, turn) == 1
    assert sorted(turn.failures) == [0, 1]
    assert turn.failures[0].missing == ("t",)
    assert await values(broker, "u") == [b"3"]


async def test_refused_by_one_and_missing_in_another(broker: Broker) -> None:
    await broker.topics.create("t", configs={"lc.validators": "no-bad"})
    await broker.topics.create("u", configs={"lc.validators": "wait"})
    writer = writer_of(broker, a="t", **{"a/x": "u"})
    turn = writer.begin()
    put(writer, turn, b"bad", topic="a/x/y")
    await write(broker, turn)
    failure = turn.failures[0]
    assert failure.refused is not None
    assert failure.missing == ("u",)
    ready["now"] = True
    later = writer.begin()
    later.again(turn._messages[0], failure)
    await write(broker, later)
    assert later.failures[0] == Failure(failure.refused)
    assert await values(broker, "u") == [b"bad"]
    assert await values(broker, "t") == []


async def test_a_topic_that_is_deleted_meanwhile_is_made_again_by_the_next_turn(broker: Broker) -> None:
    await broker.topics.create("t")
    writer = writer_of(broker, a="t")
    turn = writer.begin()
    put(writer, turn, b"1", b"2")
    batches = turn.batches()
    await broker.topics.delete("t")
    turn.settle(await broker.append(batches))
    assert not turn.pending
    assert turn.failures[0].missing == ("t",)
    later = writer.begin()
    for index in (0, 1):
        later.again(turn._messages[index], turn.failures[index])
    await write(broker, later)
    assert await values(broker, "t") == [b"1", b"2"]


async def test_a_name_that_no_kafka_topic_can_have_is_refused(broker: Broker) -> None:
    writer = writer_of(broker, a="{1}")
    turn = writer.begin()
    put(writer, turn, b"1", topic="a/b c")
    put(writer, turn, b"2", topic="a/__consumer_offsets")
    assert not turn.pending
    for index in (0, 1):
        refused = turn.failures[index].refused
        assert refused is not None
        assert refused.code is ReasonCode.TOPIC_NAME_INVALID


async def test_a_topic_of_another_plugin_is_refused(core: Core, broker: Broker) -> None:
    from leafcuttr_sdk import Plugin

    other = make_broker_view(core, Plugin("other", 1, "one for tests"))
    await other.topics.create("own", internal=True, owned=True)
    writer = writer_of(broker, a="own")
    turn = writer.begin()
    put(writer, turn, b"1", b"2")
    await write(broker, turn)
    for index in (0, 1):
        refused = turn.failures[index].refused
        assert refused is not None
        assert refused.code is ReasonCode.NOT_AUTHORIZED


# Dead letters


async def test_a_dead_letter_says_why_and_is_no_failure(opened: Any) -> None:
    broker = make_broker_view(open_with(opened, **NO_CREATION), PLUGIN)
    await broker.topics.create("t", configs={"lc.validators": "no-bad"})
    writer = writer_of(broker, a="t")
    turn = writer.begin()
    put(writer, turn, b"1", b"bad 2", b"3", qos=1)
    await write(broker, turn)
    turn.dead_letter(1)
    assert not turn.failures
    await write(broker, turn)
    assert not turn.failures
    (letter,) = await stored(broker, "mqtt-dead-letters")
    assert (letter.key, letter.value, letter.timestamp) == (b"a/x", b"bad 2", 1000)
    assert letter.headers == (
        ("mqtt.topic", b"a/x"),
        ("mqtt.qos", b"1"),
        ("mqtt.retain", b"false"),
        ("mqtt.client_id", b"dev"),
        ("mqtt.refused.topic", b"t"),
        ("mqtt.refused.code", b"131"),
        ("mqtt.refused.reason", b"bad 2 is bad"),
    )


async def test_the_dead_letters_take_what_was_too_large(broker: Broker) -> None:
    await broker.topics.create("t", configs={"max.message.bytes": "2000"})
    writer = KafkaWriter(broker.topics, make_rules({"a/#": "t"}, {}), "letters", 4_000_000)
    turn = writer.begin()
    put(writer, turn, b"x" * 4_000_000)
    assert not turn.batches()
    turn.dead_letter(0)
    await write(broker, turn)
    assert not turn.failures
    assert [len(value or b"") for value in await values(broker, "letters")] == [4_000_000]


async def test_dead_letters_that_are_not_taken(broker: Broker) -> None:
    await broker.topics.create("mqtt-dead-letters", configs={"lc.validators": "wait"})
    await broker.topics.create("t", configs={"max.message.bytes": "2000"})
    writer = writer_of(broker, a="t")
    turn = writer.begin()
    put(writer, turn, b"x" * 3000)
    turn.batches()
    refused = turn.failures[0].refused
    turn.dead_letter(0)
    await write(broker, turn)
    failure = turn.failures[0]
    assert (failure.refused, failure.missing, failure.letter) == (None, ("mqtt-dead-letters",), refused)
    with pytest.raises(ValueError, match="a dead letter is of a message that was refused"):
        turn.dead_letter(0)
    ready["now"] = True
    later = writer.begin()
    later.again(turn._messages[0], failure)
    await write(broker, later)
    assert not later.failures
    (letter,) = await stored(broker, "mqtt-dead-letters")
    assert dict(letter.headers)["mqtt.refused.topic"] == b"t"
    # For good: it is dropped, and nobody tries again.
    await broker.topics.alter("mqtt-dead-letters", {"max.message.bytes": "2000"})
    last = writer.begin()
    put(writer, last, b"x" * 3000)
    last.batches()
    last.dead_letter(0)
    await write(broker, last)
    failure = last.failures[0]
    assert failure.refused is not None
    assert (failure.refused.kafka_topic, failure.letter, failure.missing) == (
        "mqtt-dead-letters",
        refused,
        (),
    )


async def test_a_dead_letter_of_a_message_that_is_missing_elsewhere(broker: Broker) -> None:
    await broker.topics.create("t", configs={"lc.validators": "no-bad"})
    await broker.topics.create("u", configs={"lc.validators": "wait"})
    writer = writer_of(broker, a="t", **{"a/x": "u"})
    turn = writer.begin()
    put(writer, turn, b"bad", topic="a/x/y")
    await write(broker, turn)
    turn.dead_letter(0)
    await write(broker, turn)
    failure = turn.failures[0]
    assert (failure.refused, failure.missing) == (None, ("u",))
    ready["now"] = True
    later = writer.begin()
    later.again(turn._messages[0], failure)
    await write(broker, later)
    assert not later.failures
    assert await values(broker, "u") == [b"bad"]
    assert len(await stored(broker, "mqtt-dead-letters")) == 1


MESSAGES = st.lists(
    st.tuples(
        st.sampled_from(["a/x", "a/y", "b/x", "c/x", "a/ ", "d"]),
        st.sampled_from([b"", b"fine", b"bad", b"poison", b"x" * 500, b"x" * 3000]),
        st.booleans(),
    ),
    max_size=30,
)


@settings(
    max_examples=sampled(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(MESSAGES)
def test_each_message_is_stored_once_or_named(core: Core, drawn: list[tuple[str, bytes, bool]]) -> None:
    """Whatever is refused beside it."""
    import trio

    async def run() -> None:
        broker = make_broker_view(core, PLUGIN)
        limits = {"max.message.bytes": "2000"}
        topics = {"t": {"lc.validators": "no-bad", **limits}, "u": {"lc.filters": "fails"}, "v-x": limits}
        for name, configs in topics.items():
            if broker.topics.get(name) is None:
                await broker.topics.create(name, configs=configs, partitions=2)
            for partition in (0, 1):
                await broker.topics.delete_records(name, partition, -1)
        before = {name: len(await stored(broker, name)) for name in topics}
        assert not any(before.values())
        writer = writer_of(broker, a="t", b="u", c="v-{1}", **{"a/y": "u"})
        turn = writer.begin()
        expected: dict[str, list[bytes]] = {name: [] for name in topics}
        for number, (topic, payload, numbered) in enumerate(drawn):
            message = Message(topic, payload, client_id="dev", arrived_ms=1000)
            assert turn.add(message, writer.targets(topic), number if numbered else None) == number
        await write(broker, turn)
        for number, (topic, payload, _) in enumerate(drawn):
            failure = turn.failures.get(number)
            refused, missing = set(), set()
            for name in topics:
                if name not in [target.kafka.name for target in writer.targets(topic)]:
                    continue
                if (name == "t" and payload == b"bad") or (len(payload) > 2000 and name != "u"):
                    refused.add(name)
                elif name == "u" and payload == b"poison":
                    missing.add(name)
                else:
                    expected[name].append(payload)
            found = set() if failure is None or failure.refused is None else {failure.refused.kafka_topic}
            assert found <= refused and bool(found) == bool(refused)
            assert set(failure.missing if failure else ()) == missing
        for name in topics:
            assert sorted(value or b"" for value in await values(broker, name)) == sorted(expected[name])

    trio.run(run)
