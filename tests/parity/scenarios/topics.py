"""CreateTopics, DeleteTopics, CreatePartitions, Metadata, DescribeTopicPartitions."""

from __future__ import annotations

from typing import Any

from parity.codec import ZERO_UUID
from parity.scenario import scenario
from parity.side import Side

STRANGER = "00000000-0000-4000-8000-00000000abcd"


def _topic(name: str, partitions: int = 1, factor: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "num_partitions": partitions, "replication_factor": factor, **more}


def _hide_topic_ids(side: Side, *names: str) -> None:
    for name in names:
        side.known(name)


@scenario("create_topics")
def create(side: Side, version: int) -> None:
    good = [
        _topic(side.name("plain"), 2),
        _topic(side.name("defaults"), -1, -1),
        _topic(side.name("config"), 1, configs=[{"name": "retention.ms", "value": "60000"}]),
        _topic(side.name("compact"), 1, configs=[{"name": "cleanup.policy", "value": "compact"}]),
        _topic(
            side.name("assigned"),
            -1,
            -1,
            assignments=[
                {"partition_index": 0, "broker_ids": [1]},
                {"partition_index": 1, "broker_ids": [1]},
            ],
        ),
    ]
    side.ask("create_topics", version, {"topics": good, "timeout": 10_000}, "several at once")
    for topic in good:
        side.known(topic["name"])
    side.ask("create_topics", version, {"topics": good[:1], "timeout": 10_000}, "exists already")
    side.ask("create_topics", version, {"topics": [], "timeout": 10_000}, "none")
    body = {"topics": [_topic(side.name("dry"), 3)], "timeout": 10_000, "validate_only": True}
    side.ask("create_topics", version, body, "validate only")
    side.ask("create_topics", version, {**body, "topics": good[:1]}, "validate only, exists already")


@scenario("create_topics")
def refuse(side: Side, version: int) -> None:
    name = side.name
    bad = {
        "empty name": [_topic("")],
        "dot": [_topic(".")],
        "two dots": [_topic("..")],
        "too long": [_topic("x" * 250)],
        "bad character": [_topic("a/b")],
        "space": [_topic("a b")],
        "not ascii": [_topic("é")],
        "no partitions": [_topic(name("zero"), 0)],
        "minus two partitions": [_topic(name("minus"), -2)],
        "too many partitions": [_topic(name("many"), 1_000_000)],
        "factor 0": [_topic(name("factor0"), 1, 0)],
        "factor 2": [_topic(name("factor2"), 1, 2)],
        "factor -2": [_topic(name("factor-2"), 1, -2)],
        "unknown setting": [_topic(name("unknown"), configs=[{"name": "no.such.setting", "value": "1"}])],
        "bad number": [_topic(name("badnum"), configs=[{"name": "retention.ms", "value": "soon"}])],
        "out of range": [_topic(name("range"), configs=[{"name": "segment.bytes", "value": "1"}])],
        "bad list": [_topic(name("list"), configs=[{"name": "cleanup.policy", "value": "burn"}])],
        "bad choice": [_topic(name("choice"), configs=[{"name": "compression.type", "value": "brotli"}])],
        "null value": [_topic(name("null"), configs=[{"name": "retention.ms", "value": None}])],
        "bad boolean": [_topic(name("bool"), configs=[{"name": "preallocate", "value": "perhaps"}])],
        "same name twice": [_topic(name("twice")), _topic(name("twice"))],
        "one good, one bad": [_topic(name("fine")), _topic("no/good")],
        "assignment and count": [
            _topic(name("both"), 1, 1, assignments=[{"partition_index": 0, "broker_ids": [1]}])
        ],
        "assignment to a stranger": [
            _topic(name("stranger"), -1, -1, assignments=[{"partition_index": 0, "broker_ids": [9]}])
        ],
        "assignment to nobody": [
            _topic(name("nobody"), -1, -1, assignments=[{"partition_index": 0, "broker_ids": []}])
        ],
        "assignment twice to one": [
            _topic(name("doubled"), -1, -1, assignments=[{"partition_index": 0, "broker_ids": [1, 1]}])
        ],
        "assignment with a hole": [
            _topic(name("hole"), -1, -1, assignments=[{"partition_index": 1, "broker_ids": [1]}])
        ],
        "assignment given twice": [
            _topic(
                name("again"),
                -1,
                -1,
                assignments=[
                    {"partition_index": 0, "broker_ids": [1]},
                    {"partition_index": 0, "broker_ids": [1]},
                ],
            )
        ],
        "internal name": [_topic("__consumer_offsets")],
    }
    if version == 5:
        side.coordinator(name("group"))  # so that the offsets topic is there on both sides
    else:
        del bad["internal name"]
    for case, topics in bad.items():
        side.ask("create_topics", version, {"topics": topics, "timeout": 10_000}, case)
    collision = [_topic(name("a.b")), _topic(name("c"))]
    side.ask("create_topics", version, {"topics": collision, "timeout": 10_000}, "before the collision")
    side.known(name("a.b"))
    collision = [_topic(name("a_b"))]
    side.ask("create_topics", version, {"topics": collision, "timeout": 10_000}, "collides in metrics")


@scenario("delete_topics")
def delete(side: Side, version: int) -> None:
    def body(*names: str) -> dict[str, Any]:
        return {
            "topics": [{"name": one, "topic_id": ZERO_UUID} for one in names],
            "topic_names": list(names),
            "timeout": 10_000,
        }

    one, two, three = side.create("one"), side.create("two", 3), side.create("three")
    side.ask("delete_topics", version, body(one), "one")
    side.ask("delete_topics", version, body(one), "again")
    side.ask("delete_topics", version, body(two, side.name("unknown"), "bad/name", ""), "known and unknown")
    side.ask("delete_topics", version, body(three, three), "twice in one request")
    side.ask("delete_topics", version, body(), "none")
    if version < 6:
        return
    four, five = side.create("four"), side.create("five")
    both = {"topics": [{"name": four, "topic_id": side.topic_ids[four]}], "timeout": 10_000}
    side.ask("delete_topics", version, both, "name and id")
    neither = {"topics": [{"name": None, "topic_id": ZERO_UUID}], "timeout": 10_000}
    side.ask("delete_topics", version, neither, "neither name nor id")
    by_id = {"topics": [{"name": None, "topic_id": side.topic_ids[five]}], "timeout": 10_000}
    side.ask("delete_topics", version, by_id, "by id")
    side.ask("delete_topics", version, by_id, "by id again")
    stranger = {"topics": [{"name": None, "topic_id": STRANGER}], "timeout": 10_000}
    side.ask("delete_topics", version, stranger, "an id of nobody")


@scenario("create_partitions")
def more_partitions(side: Side, version: int) -> None:
    topic = side.create("topic", 2)

    def body(name: str, count: int, assignments: Any = None, **more: Any) -> dict[str, Any]:
        return {
            "topics": [{"name": name, "count": count, "assignments": assignments}],
            "timeout": 10_000,
            "validate_only": False,
            **more,
        }

    asks = {
        "validate only": body(topic, 5, validate_only=True),
        "grow": body(topic, 4),
        "same count": body(topic, 4),
        "fewer": body(topic, 1),
        "zero": body(topic, 0),
        "negative": body(topic, -1),
        "unknown topic": body(side.name("unknown"), 3),
        "bad name": body("a/b", 3),
        "empty name": body("", 3),
        "assigned": body(topic, 5, [{"broker_ids": [1]}]),
        "too few assignments": body(topic, 8, [{"broker_ids": [1]}]),
        "assigned to a stranger": body(topic, 6, [{"broker_ids": [7]}]),
        "assigned to nobody": body(topic, 6, [{"broker_ids": []}]),
        "assigned twice": body(topic, 6, [{"broker_ids": [1, 1]}]),
        "twice in one request": {
            **body(topic, 7),
            "topics": [{"name": topic, "count": 7, "assignments": None}] * 2,
        },
        "none": {**body(topic, 0), "topics": []},
    }
    for case, request in asks.items():
        side.ask("create_partitions", version, request, case)


@scenario("metadata")
def metadata(side: Side, version: int) -> None:
    topic = side.create("topic", 3)
    side.create("other")

    def body(*names: str | None, create: bool = False) -> dict[str, Any]:
        return {
            "topics": [{"name": one, "topic_id": ZERO_UUID} for one in names],
            "allow_auto_topic_creation": create,
        }

    side.ask("metadata", version, body(topic), "one topic")
    side.ask("metadata", version, body(topic, topic), "the same twice")
    if version:
        side.ask("metadata", version, body(), "no topics")
    if version >= 4:  # before, asking creates
        side.ask("metadata", version, body(topic, side.name("unknown")), "an unknown one")
    if version >= 4:
        side.ask("metadata", version, body("a/b", "", "x" * 250), "impossible names")
        side.ask("metadata", version, body("a/b", create=True), "impossible name to create")
    fresh = side.name("automatic")
    side.ask("metadata", version, body(fresh, create=True), "created by asking")
    side.known(fresh)
    side.ask("metadata", version, body(fresh, create=True), "after it was created")
    authorized = {
        **body(topic),
        "include_topic_authorized_operations": True,
        "include_cluster_authorized_operations": True,
    }
    side.ask("metadata", version, authorized, "authorized operations")
    if version >= 10:
        known = {"topics": [{"name": None, "topic_id": side.topic_ids[topic]}]}
        side.ask("metadata", version, known, "by id")
        side.ask("metadata", version, {"topics": [{"name": None, "topic_id": STRANGER}]}, "by an unknown id")
        side.ask("metadata", version, {"topics": [{"name": None, "topic_id": ZERO_UUID}]}, "by no id")
        both = [{"name": topic, "topic_id": ZERO_UUID}, {"name": None, "topic_id": side.topic_ids[topic]}]
        side.ask("metadata", version, {"topics": both}, "by name and by id")


@scenario("metadata")
def everything(side: Side, version: int) -> None:
    topic = side.create("topic")
    answer = side.quiet("metadata", version, {"topics": None if version else []})
    mine = [one for one in answer["topics"] if one["name"] == topic]
    side.note("metadata", version, "all topics", {"topics": mine})


@scenario("describe_topic_partitions")
def describe(side: Side, version: int) -> None:
    first, second = side.create("a", 4), side.create("b", 2)

    def body(*names: str, limit: int = 2000, cursor: Any = None) -> dict[str, Any]:
        return {
            "topics": [{"name": one} for one in names],
            "response_partition_limit": limit,
            "cursor": cursor,
        }

    def from_(name: str, partition: int) -> dict[str, Any]:
        return {"topic_name": name, "partition_index": partition}

    asks = {
        "two": body(first, second),
        "unordered": body(second, first),
        "unknown": body(side.name("unknown")),
        "unknown among known": body(first, side.name("aa"), second),
        "bad name": body("a/b"),
        "empty name": body(""),
        "twice": body(first, first),
        "limited": body(first, second, limit=3),
        "limited at the end of a topic": body(first, second, limit=4),
        "limit 0": body(first, limit=0),
        "limit -1": body(first, limit=-1),
        "from a cursor": body(first, second, cursor=from_(first, 2)),
        "from a cursor, limited": body(first, second, limit=1, cursor=from_(first, 3)),
        "cursor past the end": body(first, second, cursor=from_(first, 9)),
        "cursor at a negative partition": body(first, second, cursor=from_(first, -1)),
        "cursor past all topics": body(first, cursor=from_("zzzz", 0)),
        "cursor at a topic not asked for": body(second, cursor=from_(first, 0)),
    }
    for case, request in asks.items():
        side.ask("describe_topic_partitions", version, request, case)
