"""Produce: what is taken, what is refused, and idempotent producers."""

from __future__ import annotations

from typing import Any

from parity.batches import NOW, batch
from parity.codec import ZERO_UUID
from parity.scenario import scenario
from parity.side import Side

CHECKS = {"full": {"lc.records.check": "full"}}
UNKNOWN_ID = "00000000-0000-4000-8000-00000000abcd"


def produce(
    side: Side, topic: str, records: bytes | None, partition: int = 0, *, acks: int = -1, **more: Any
) -> dict[str, Any]:
    """The body of a request with one batch, by name and by id at once."""
    part = {"index": partition, "records": records}
    topic_id = side.topic_ids.get(topic, UNKNOWN_ID)
    data = [{"name": topic, "topic_id": topic_id, "partition_data": [part]}]
    return {"acks": acks, "timeout": 5_000, "transactional_id": None, "topic_data": data, **more}


@scenario("produce", also_with=CHECKS)
def accept(side: Side, version: int) -> None:
    topic = side.create("topic", 2)
    asks = {
        "first": batch(["a"]),
        "three": batch(["a", "b", "c"], time_step=5),
        "null value": batch([(b"k", None)]),
        "null key and value": batch([(None, None)]),
        "empty value": batch([(b"", b"")]),
        "base offset is ignored": batch(["x"], base_offset=77),
        "gzip": batch(["x" * 1000] * 10, codec="gzip"),
        "lz4": batch(["x" * 1000] * 10, codec="lz4"),
        "old timestamp": batch(["x"], time=1),
        "no timestamp": batch(["x"], time=-1),
    }
    if version >= 7:
        asks["zstd"] = batch(["x" * 1000] * 10, codec="zstd")
    for case, records in asks.items():
        side.ask("produce", version, produce(side, topic, records), case)
    side.ask("produce", version, produce(side, topic, batch(["a"]), 1, acks=1), "acks 1")
    two = produce(side, topic, batch(["a"]))
    two["topic_data"][0]["partition_data"].append({"index": 1, "records": batch(["b", "c"])})
    side.ask("produce", version, two, "two partitions")
    side.main.post("produce", version, produce(side, topic, batch(["unanswered"]), acks=0))
    side.ask("produce", version, produce(side, topic, batch(["after"])), "after one with acks 0")
    if version < 7:
        early = batch(["x" * 1000] * 10, codec="zstd")
        side.ask("produce", version, produce(side, topic, early), "zstd in a version before it")


@scenario("produce", versions=(11,))
def replicas_that_are_not_there(side: Side, version: int) -> None:
    """What the settings about other replicas do where there is one: no more than that can be asked for."""
    settings = {"min.insync.replicas": "2", "unclean.leader.election.enable": "true"}
    topic = side.create("topic", configs=settings)
    for acks in (0, 1, -1):
        if acks:
            side.ask("produce", version, produce(side, topic, batch(["x"]), acks=acks), f"acks {acks}")
        else:
            side.main.post("produce", version, produce(side, topic, batch(["x"]), acks=acks))
    body = {"topics": [{"name": topic}], "response_partition_limit": 10, "cursor": None}
    side.ask("describe_topic_partitions", 0, body, "the partition")


@scenario("produce", also_with=CHECKS)
def refuse(side: Side, version: int) -> None:
    topic = side.create("topic")
    good = batch(["good"])
    # Null instead of bytes is left out: Kafka 4.3 never answers it.
    wrong = {
        "bad crc": batch(crc_error=1),
        "count too large": batch(["a", "b"], count=3),
        "count too small": batch(["a", "b"], count=1),
        "count 0": batch([], count=0, last_delta=0, body=b""),
        "count negative": batch(["a"], count=-1),
        "last offset delta too large": batch(["a", "b"], last_delta=5),
        "last offset delta too small": batch(["a", "b"], last_delta=0),
        "empty batch": batch([], last_delta=-1, body=b""),
        "magic 3": batch(magic=3),
        "magic 1": batch(magic=1),
        "magic 0": batch(magic=0),
        "magic -1": batch(magic=-1),
        "two batches": good + batch(["second"]),
        "cut short": good[:-3],
        "trailing bytes": good + b"\0\0\0",
        "header only": good[:40],
        "length too large": batch(length_error=10),
        "length too small": batch(length_error=-3),
        "shorter than a header": batch(length_error=-20)[:-20],
        "no bytes": b"",
        "garbage": b"\xff" * 80,
        "too large": batch([b"x" * 1_100_000]),
        "future timestamp": batch(time=NOW * 2),
        "max timestamp wrong": batch(["a"], max_time=NOW + 5),
        "control batch": batch(attributes=0x20),
        "transactional without producer": batch(attributes=0x10),
        "unknown attribute bit": batch(attributes=0x100),
    }
    for case, records in wrong.items():
        side.ask("produce", version, produce(side, topic, records), case)
    apart = side.create("apart")
    side.ask("produce", version, produce(side, apart, batch(attributes=7)), "reserved codec")
    side.ask("produce", version, produce(side, apart, batch(["x"], attributes=1)), "compressed garbage")
    side.ask("produce", version, produce(side, topic, good), "still good")
    side.ask("produce", version, produce(side, topic, good, 9), "no such partition")
    side.ask("produce", version, produce(side, topic, good, -1), "negative partition")
    side.ask("produce", version, produce(side, side.name("unknown"), good), "unknown topic")
    side.ask("produce", version, produce(side, "a/b", good), "impossible topic")
    side.ask("produce", version, produce(side, "", good), "empty topic name")
    side.ask("produce", version, produce(side, topic, good, acks=2), "acks 2")
    side.ask("produce", version, produce(side, topic, good, acks=-2), "acks -2")
    side.ask("produce", version, produce(side, topic, good, timeout=-1), "negative timeout")
    side.ask("produce", version, {**produce(side, topic, good), "topic_data": []}, "no topics")
    mixed = produce(side, topic, good)
    mixed["topic_data"][0]["partition_data"].append({"index": 5, "records": good})
    side.ask("produce", version, mixed, "good and bad partition")
    if version >= 13:
        zero = produce(side, topic, good)
        zero["topic_data"][0]["topic_id"] = ZERO_UUID
        side.ask("produce", version, zero, "topic id of zeros")
    lost = produce(side, side.name("unknown"), good, acks=0)
    side.ask("produce", version, lost, "acks 0 that fails closes the connection")


@scenario("produce", also_with=CHECKS)
def refuse_all(side: Side, version: int) -> None:
    """What is found while Kafka looks for transactional batches, before it looks at any partition: that answers for
    every partition of the request."""
    side.verify(True)
    # Kafka makes its topic of transactions with the first that asks for a coordinator.
    asked = {"key": side.name("id"), "key_type": 1}
    side.until("find_coordinator", 3, asked, lambda answer: not answer["error_code"])
    topic = side.create("topic", 3)
    good, garbage, transactional = batch(["good"]), b"\xff" * 80, batch(attributes=0x10)
    unknown = batch(attributes=0x10, producer_id=123_456, producer_epoch=0, sequence=0)

    def several(*records: bytes, **more: Any) -> dict[str, Any]:
        body = produce(side, topic, records[0], **more)
        parts = [{"index": at, "records": one} for at, one in enumerate(records)]
        body["topic_data"][0]["partition_data"] = parts
        return body

    asks = {
        "garbage first": several(garbage, good),
        "garbage last": several(good, good, garbage),
        "magic 3 last": several(good, batch(magic=3)),
        "magic -1 last": several(good, batch(magic=-1)),
        "two kinds of garbage": several(batch(magic=3), garbage),
        "no bytes last": several(good, b""),
        "cut short last": several(good, good[:-3]),
        "transactional, cut short": several(good, transactional[:-3]),
        "transactional, length too large": several(good, batch(attributes=0x10, length_error=10)),
        "transactional behind another": several(good, good + transactional),
        "garbage behind another": several(good, good + garbage),
        "transactional last": several(good, transactional),
        "transactional before garbage": several(transactional, garbage),
        "garbage before transactional": several(garbage, transactional),
        "transactional of magic 1": several(good, batch(attributes=0x10, magic=1)),
        "negative length, too short for a magic": several(good, b"\xff" * 14),
        "length 0, too short for a magic": several(good, bytes(14)),
        "too short for a length": several(good, b"\xff" * 11),
        "garbage, acks 1": several(good, garbage, acks=1),
        "garbage, acks 2": several(good, garbage, acks=2),
        "transactional, acks 2": several(good, transactional, acks=2),
        "garbage in a transaction": several(good, garbage, transactional_id=side.name("id")),
        "garbage after what is transactional": several(unknown, garbage, transactional_id=side.name("id")),
        "magic 1 after what is transactional": several(
            unknown, batch(attributes=0x10, magic=1), transactional_id=side.name("id")
        ),
        "two after what is transactional": several(
            unknown, unknown + unknown, transactional_id=side.name("id")
        ),
        "garbage for an unknown topic": produce(side, side.name("unknown"), garbage),
        "garbage for no such partition": produce(side, topic, garbage, 9),
        "one partition twice": several(good, garbage),
        "one transactional partition twice": several(good, transactional),
    }
    for case in ("one partition twice", "one transactional partition twice"):
        asks[case]["topic_data"][0]["partition_data"][1]["index"] = 0
    for case, body in asks.items():
        side.ask("produce", version, body, case)
    other = side.create("other")
    body = several(good, garbage)
    body["topic_data"].append(produce(side, other, good)["topic_data"][0])
    side.ask("produce", version, body, "garbage for another topic")
    body["topic_data"].append(
        {**produce(side, side.name("third"), good)["topic_data"][0], "partition_data": []}
    )
    side.ask("produce", version, body, "a topic without partitions")
    for name in (topic, other):
        side.ask("list_offsets", 7, latest(name), f"end of {name.rpartition('.')[2]}")
    side.ask("produce", version, several(good, garbage, acks=0), "garbage, acks 0")


def latest(topic: str) -> dict[str, Any]:
    parts = [{"partition_index": 0, "timestamp": -1}]
    return {"replica_id": -1, "topics": [{"name": topic, "partitions": parts}]}


@scenario("produce")
def internal(side: Side, version: int) -> None:
    """Topics that are the broker's own: nobody but Kafka's own tools may write to them. What those send is broken here:
    a coordinator does not get over records of others."""
    side.coordinator(side.name("group"))
    topic = side.known("__consumer_offsets")
    for client_id in ("parity", "__admin_client", None, ""):
        for case, records in {"bad crc": batch([(b"k", b"v")], crc_error=1), "garbage": b"\xff" * 80}.items():
            side.main.post("produce", version, produce(side, topic, records), client_id=client_id)
            side.take("produce", version, f"{case}, client id {client_id!r}", side.main)


@scenario("produce", also_with=CHECKS)
def settings(side: Side, version: int) -> None:
    """Topic settings that Produce obeys."""
    compact = side.create("compact", configs={"cleanup.policy": "compact"})
    side.ask("produce", version, produce(side, compact, batch(["no key"])), "compact without key")
    mixed = batch([(b"k", b"v"), (None, b"v"), (b"k", b"v"), (None, b"w")])
    side.ask("produce", version, produce(side, compact, mixed), "compact with some keys")
    side.ask("produce", version, produce(side, compact, batch([(b"k", b"v")])), "compact with key")
    small = side.create("small", configs={"max.message.bytes": "200"})
    side.ask("produce", version, produce(side, small, batch([b"x" * 300])), "above max.message.bytes")
    side.ask("produce", version, produce(side, small, batch([b"x" * 100])), "below max.message.bytes")
    strict = side.create("strict", configs={"message.timestamp.before.max.ms": "1000"})
    side.ask("produce", version, produce(side, strict, batch(["old"])), "too old")
    side.ask("produce", version, produce(side, strict, batch(["old", "older"])), "two too old")
    log_time = side.create("logtime", configs={"message.timestamp.type": "LogAppendTime"})
    side.ask("produce", version, produce(side, log_time, batch(["now"])), "log append time")


@scenario("produce", also_with={**CHECKS, "synced": {"lc.log.sync.always": "true"}})
def idempotent(side: Side, version: int) -> None:
    topic = side.create("topic", 2)
    made = side.producer()
    producer, epoch = made["producer_id"], made["producer_epoch"]

    def send(case: str, sequence: int, count: int = 1, *, partition: int = 0, **more: Any) -> None:
        fields = {"producer_id": producer, "producer_epoch": epoch, **more}
        records = batch(["r"] * count, sequence=sequence, **fields)
        side.ask("produce", version, produce(side, topic, records, partition), case)

    send("sequence 0", 0)
    send("sequence 1 to 3", 1, 3)
    send("duplicate of the last", 1, 3)
    send("duplicate of the first", 0)
    send("gap", 10)
    send("overlap", 3, 2)
    send("next", 4)
    for at in range(5, 11):
        send(f"sequence {at}", at)
    send("duplicate older than five batches", 0)
    send("duplicate of the fifth last", 6)
    send("new epoch must begin at 0", 11, producer_epoch=epoch + 1)
    send("new epoch", 0, producer_epoch=epoch + 1)
    send("old epoch", 11)
    send("unknown producer at 0", 0, producer_id=producer + 5000)
    send("unknown producer at 5", 5, producer_id=producer + 6000)
    send("no epoch", 0, producer_epoch=-1)
    send("no sequence", -1)
    send("other partition", 0, partition=1)


@scenario("produce", versions=(0, 1, 2))
def too_old(side: Side, version: int) -> None:
    """Announced for librdkafka's sake (KAFKA-18659), and answered by closing the connection."""
    side.ask("produce", version, b"\xff\xff\x00\x00\x10\x00\x00\x00\x00", "closes")
