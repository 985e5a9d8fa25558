"""DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources."""

from __future__ import annotations

from typing import Any

from parity.scenario import scenario
from parity.side import Side

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3


def asking(kind: int, name: str, *keys: str, **more: Any) -> dict[str, Any]:
    one = {"resource_type": kind, "resource_name": name, "configuration_keys": list(keys) or None}
    return {"resources": [one], "include_synonyms": True, "include_documentation": False, **more}


@scenario("describe_configs")
def topic(side: Side, version: int) -> None:
    plain = side.create("plain")
    changed = side.create("changed", configs={"retention.ms": "1000", "cleanup.policy": "compact,delete"})
    side.ask("describe_configs", version, asking(TOPIC, plain), "all defaults")
    side.ask("describe_configs", version, asking(TOPIC, changed), "two changed")
    side.ask("describe_configs", version, asking(TOPIC, plain, "retention.ms", "no.such"), "two keys")
    side.ask(
        "describe_configs",
        version,
        asking(TOPIC, plain, "retention.ms", include_synonyms=False),
        "no synonyms",
    )
    none = asking(TOPIC, plain)
    none["resources"][0]["configuration_keys"] = []
    side.ask("describe_configs", version, none, "empty list of keys")
    side.ask("describe_configs", version, asking(TOPIC, side.name("unknown")), "unknown topic")
    side.ask("describe_configs", version, asking(TOPIC, "a/b"), "impossible topic")
    side.ask("describe_configs", version, asking(TOPIC, ""), "empty topic")
    side.ask("describe_configs", version, {**asking(TOPIC, plain), "resources": []}, "nothing")
    twice = asking(TOPIC, plain, "retention.ms")
    twice["resources"] *= 2
    side.ask("describe_configs", version, twice, "twice")
    if version >= 3:
        documentation(side, version, TOPIC, plain)


def documentation(side: Side, version: int, kind: int, name: str) -> None:
    """Which settings say what they do; the words are each broker's own."""
    answer = side.quiet("describe_configs", version, asking(kind, name, include_documentation=True))
    told = {one["name"]: bool(one["documentation"]) for one in answer["results"][0]["configs"]}
    side.note("describe_configs", version, f"documentation there or not, type {kind}", told)


@scenario("describe_configs")
def broker(side: Side, version: int) -> None:
    side.ask("describe_configs", version, asking(BROKER, "1"), "this broker")
    side.ask("describe_configs", version, asking(BROKER, ""), "all brokers")
    side.ask("describe_configs", version, asking(BROKER, "7"), "another broker")
    side.ask("describe_configs", version, asking(BROKER, "one"), "no number")
    side.ask("describe_configs", version, asking(BROKER, "1", "log.retention.ms", "no.such"), "two keys")
    side.ask("describe_configs", version, asking(1, "x"), "resource type 1")
    side.ask("describe_configs", version, asking(0, "x"), "resource type 0")
    side.ask("describe_configs", version, asking(99, "x"), "resource type 99")
    group = side.name("group")
    side.ask("describe_configs", version, asking(GROUP, group), "a group")
    side.ask("describe_configs", version, asking(GROUP, ""), "the empty group")
    side.ask("describe_configs", version, asking(METRICS, side.name("m")), "client metrics")
    side.ask("describe_configs", version, asking(METRICS, ""), "client metrics without a name")
    side.ask("describe_configs", version, asking(LOGGER, "7"), "loggers of another broker")
    if version >= 3:
        for kind, name in ((BROKER, "1"), (BROKER, ""), (GROUP, group), (METRICS, side.name("m"))):
            documentation(side, version, kind, name)


def altering(kind: int, name: str, *settings: tuple[str, str | None], **more: Any) -> dict[str, Any]:
    configs = [{"name": key, "value": value} for key, value in settings]
    return {
        "resources": [{"resource_type": kind, "resource_name": name, "configs": configs}],
        "validate_only": False,
        **more,
    }


@scenario("alter_configs")
def alter(side: Side, version: int) -> None:
    topic = side.create("topic", configs={"retention.bytes": "100000"})

    def ask(case: str, body: dict[str, Any]) -> None:
        side.ask("alter_configs", version, body, case)
        side.settle()
        side.ask(
            "describe_configs", 4, asking(TOPIC, topic, "retention.ms", "retention.bytes"), f"after {case}"
        )

    ask("validate only", altering(TOPIC, topic, ("retention.ms", "5"), validate_only=True))
    ask("one set, the other unset", altering(TOPIC, topic, ("retention.ms", "5000")))
    ask("null value", altering(TOPIC, topic, ("retention.ms", None)))
    ask("unset all", altering(TOPIC, topic))
    for case, body in _bad(side, topic).items():
        side.ask("alter_configs", version, body, case)
    # A resource that is there twice is left out: Kafka 4.3 never answers it.
    side.ask(
        "alter_configs",
        version,
        altering(TOPIC, topic, ("retention.ms", "1"), ("retention.ms", "2")),
        "setting twice",
    )
    side.ask("alter_configs", version, {"resources": [], "validate_only": False}, "nothing")


def _bad(side: Side, topic: str) -> dict[str, dict[str, Any]]:
    return {
        "unknown setting": altering(TOPIC, topic, ("no.such", "1")),
        "bad number": altering(TOPIC, topic, ("retention.ms", "soon")),
        "out of range": altering(TOPIC, topic, ("segment.bytes", "1")),
        "bad choice": altering(TOPIC, topic, ("compression.type", "brotli")),
        "bad list": altering(TOPIC, topic, ("cleanup.policy", "burn")),
        "bad boolean": altering(TOPIC, topic, ("preallocate", "perhaps")),
        "bad float": altering(TOPIC, topic, ("min.cleanable.dirty.ratio", "2")),
        "lag above its limit": altering(
            TOPIC, topic, ("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5")
        ),
        "gzip level": altering(TOPIC, topic, ("compression.gzip.level", "77")),
        "empty setting": altering(TOPIC, topic, ("", "1")),
        "one good, one bad": altering(TOPIC, topic, ("retention.ms", "9"), ("no.such", "1")),
        "unknown topic": altering(TOPIC, side.name("unknown"), ("retention.ms", "1")),
        "impossible topic": altering(TOPIC, "a/b", ("retention.ms", "1")),
        "empty topic": altering(TOPIC, "", ("retention.ms", "1")),
        "another broker": altering(BROKER, "9", ("log.retention.ms", "600000")),
        "no number": altering(BROKER, "one", ("log.retention.ms", "600000")),
        "broker's read-only setting": altering(BROKER, "1", ("broker.id", "5")),
        "unknown resource type": altering(77, "x", ("a", "b")),
        "resource type 0": altering(0, "x", ("a", "b")),
        "resource type 1": altering(1, "x", ("a", "b")),
    }


def changing(kind: int, name: str, *steps: tuple[str, int, str | None], **more: Any) -> dict[str, Any]:
    configs = [{"name": key, "config_operation": step, "value": value} for key, step, value in steps]
    return {
        "resources": [{"resource_type": kind, "resource_name": name, "configs": configs}],
        "validate_only": False,
        **more,
    }


@scenario("incremental_alter_configs")
def change(side: Side, version: int) -> None:
    topic = side.create("topic", configs={"retention.bytes": "100000"})

    def ask(case: str, *steps: tuple[str, int, str | None], **more: Any) -> None:
        side.ask("incremental_alter_configs", version, changing(TOPIC, topic, *steps, **more), case)
        side.settle()
        keys = ("retention.ms", "retention.bytes", "cleanup.policy")
        side.ask("describe_configs", 4, asking(TOPIC, topic, *keys), f"after {case}")

    ask("validate only", ("retention.ms", SET, "5"), validate_only=True)
    ask("set", ("retention.ms", SET, "5000"))
    ask("set two", ("retention.ms", SET, "6000"), ("retention.bytes", SET, "7000"))
    ask("delete", ("retention.ms", DELETE, None))
    ask("delete what is not set", ("retention.ms", DELETE, "x"))
    ask("append", ("cleanup.policy", APPEND, "compact"))
    ask("append what is there", ("cleanup.policy", APPEND, "compact"))
    ask("append two", ("cleanup.policy", APPEND, "delete,compact"))
    ask("subtract", ("cleanup.policy", SUBTRACT, "delete"))
    ask("subtract what is not there", ("cleanup.policy", SUBTRACT, "delete"))
    ask("subtract the last", ("cleanup.policy", SUBTRACT, "compact"))
    ask("append to a number", ("retention.ms", APPEND, "5"))
    ask("subtract from a number", ("retention.ms", SUBTRACT, "5"))
    ask("unknown operation", ("retention.ms", 9, "5"))
    ask("null value", ("retention.ms", SET, None))
    ask("null to append", ("cleanup.policy", APPEND, None))
    ask("same setting twice", ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))
    ask("spaces around", ("retention.ms", SET, " 8000 "))
    ask("empty list", ("cleanup.policy", SET, ""))
    ask("nothing")
    for case, body in _bad(side, topic).items():
        for one in body["resources"]:
            for setting in one["configs"]:
                setting["config_operation"] = SET
        side.ask("incremental_alter_configs", version, body, case)
    side.ask("incremental_alter_configs", version, {"resources": [], "validate_only": False}, "no resources")


@scenario("incremental_alter_configs", versions=(1,))
def every_topic_setting(side: Side, version: int) -> None:
    """Each topic setting once: what it says of its value, and a bad value's message."""
    topic = side.create("topic")
    known = side.quiet("describe_configs", 4, asking(TOPIC, topic))["results"][0]["configs"]
    for name in sorted(
        str(one["name"]) for one in known if not one["name"].startswith(("lc.", "confluent."))
    ):
        for value in ("nonsense", "-5", "", "0", "1.5", "99999999999999999999"):
            body = changing(TOPIC, topic, (name, SET, value), validate_only=True)
            side.ask("incremental_alter_configs", version, body, f"{name}={value}")


@scenario("incremental_alter_configs", versions=(1,))
def broker_settings(side: Side, version: int) -> None:
    """Dynamic settings of this broker and of all; put back at the end."""

    def ask(case: str, name: str, *steps: tuple[str, int, str | None], **more: Any) -> None:
        side.ask("incremental_alter_configs", version, changing(BROKER, name, *steps, **more), case)

    keys = ("log.retention.ms", "log.segment.bytes", "message.max.bytes")
    ask("validate only", "1", ("log.retention.ms", SET, "600000000"), validate_only=True)
    ask("this broker", "1", ("log.retention.ms", SET, "600000000"))
    ask("all brokers", "", ("log.segment.bytes", SET, "10000000"), ("log.retention.ms", SET, "700000000"))
    side.settle()
    side.ask("describe_configs", 4, asking(BROKER, "1", *keys), "this broker's")
    side.ask("describe_configs", 4, asking(BROKER, "", *keys), "all brokers'")
    topic = side.create("topic")
    side.ask(
        "describe_configs", 4, asking(TOPIC, topic, "retention.ms", "segment.bytes"), "a topic below them"
    )
    ask("bad value", "1", ("log.retention.ms", SET, "soon"))
    ask("out of range", "1", ("message.max.bytes", SET, "-1"))
    ask("read-only", "1", ("node.id", SET, "3"))
    ask("read-only of all", "", ("log.dirs", SET, "/x"))
    ask("per broker only", "", ("listeners", SET, "PLAINTEXT://:1"))
    ask("unknown", "1", ("no.such", SET, "3"))
    side.settle()
    side.ask(
        "describe_configs",
        4,
        asking(BROKER, "1", "no.such"),
        "what is unknown is kept, and treated as a secret",
    )
    ask("another broker", "9", ("log.retention.ms", SET, "600000000"))
    ask("undo here", "1", ("log.retention.ms", DELETE, None), ("no.such", DELETE, None))
    ask("undo for all", "", ("log.segment.bytes", DELETE, None), ("log.retention.ms", DELETE, None))
    side.settle()
    side.ask("describe_configs", 4, asking(BROKER, "1", *keys), "all undone")


MIN_ISR = "min.insync.replicas"


def _min_isr(side: Side, topic: str, case: str, answer: dict[str, Any] | None = None) -> None:
    """What all brokers, this one and a topic say of it, once the change that was `answer`ed is in effect."""
    if answer and not answer["responses"][0]["error_code"]:
        side.settle()
    for kind, name in ((BROKER, ""), (BROKER, "1"), (TOPIC, topic)):
        side.ask(
            "describe_configs", 4, asking(kind, name, MIN_ISR), f"after {case}: type {kind}, {name or 'all'}"
        )


@scenario("incremental_alter_configs")
def min_insync_replicas(side: Side, version: int) -> None:
    """With eligible leader replicas (KIP-966) all brokers have one value of it, always; put back at the end."""
    topic = side.create("topic")
    own, other = (MIN_ISR, SET, "3"), ("log.retention.ms", SET, "700000000")

    def ask(case: str, kind: int, name: str, *steps: tuple[str, int, str | None], **more: Any) -> None:
        body = changing(kind, name, *steps, **more)
        _min_isr(side, topic, case, side.ask("incremental_alter_configs", version, body, case))

    _min_isr(side, topic, "the start")
    ask("a change for all, only validated", BROKER, "", (MIN_ISR, SET, "2"), validate_only=True)
    ask("a change for all", BROKER, "", (MIN_ISR, SET, "2"))
    ask("removed for all", BROKER, "", (MIN_ISR, DELETE, None))
    ask("removed for all, only validated", BROKER, "", (MIN_ISR, DELETE, None), validate_only=True)
    ask("removed for all, another one set", BROKER, "", (MIN_ISR, DELETE, None), other)
    ask(
        "removed for all, another one bad",
        BROKER,
        "",
        (MIN_ISR, DELETE, None),
        ("log.retention.ms", SET, "x"),
    )
    ask("bad for all", BROKER, "", (MIN_ISR, SET, "0"))
    ask("appended for all", BROKER, "", (MIN_ISR, APPEND, "3"))
    ask("set for this one", BROKER, "1", own)
    ask("set for this one, only validated", BROKER, "1", own, validate_only=True)
    ask("set for this one, and another one set", BROKER, "1", own, other)
    ask("removed for this one, where it is not set", BROKER, "1", (MIN_ISR, DELETE, None))
    ask("removed for this one, only validated", BROKER, "1", (MIN_ISR, DELETE, None), validate_only=True)
    ask(
        "removed for this one, another one bad",
        BROKER,
        "1",
        (MIN_ISR, DELETE, None),
        ("log.retention.ms", SET, "x"),
    )
    ask("bad for this one", BROKER, "1", (MIN_ISR, SET, "0"))
    ask("for another one", BROKER, "9", own)
    ask("set for a topic", TOPIC, topic, own)
    ask("removed for a topic", TOPIC, topic, (MIN_ISR, DELETE, None))
    ask("put back", BROKER, "", (MIN_ISR, SET, "1"))
    side.ask("describe_configs", 4, asking(BROKER, "", "log.retention.ms"), "what came with refused changes")


@scenario("alter_configs")
def all_but_min_insync_replicas(side: Side, version: int) -> None:
    """As `min_insync_replicas`, by the API that removes what it does not name."""
    topic = side.create("topic")
    other = ("log.retention.ms", "700000000")

    def ask(case: str, kind: int, name: str, *settings: tuple[str, str | None], **more: Any) -> None:
        body = altering(kind, name, *settings, **more)
        _min_isr(side, topic, case, side.ask("alter_configs", version, body, case))

    ask("a change for all", BROKER, "", (MIN_ISR, "2"))
    ask("nothing named for all", BROKER, "")
    ask("nothing named for all, only validated", BROKER, "", validate_only=True)
    ask("another one named for all", BROKER, "", other)
    ask("both named for all", BROKER, "", other, (MIN_ISR, "3"))
    ask("put back", BROKER, "", (MIN_ISR, "1"))
    ask("set for this one", BROKER, "1", (MIN_ISR, "1"))
    ask("nothing named for this one", BROKER, "1")
    ask("set for a topic", TOPIC, topic, (MIN_ISR, "5"))
    ask("nothing named for a topic", TOPIC, topic)
    side.ask("describe_configs", 4, asking(BROKER, "", "log.retention.ms"), "what came with refused changes")


@scenario("incremental_alter_configs", versions=(1,))
def settings_of_one_listener(side: Side, version: int) -> None:
    """Limits that are given for one listener; put back at the end."""
    most = "listener.name.plaintext.max.connections"
    rate = "listener.name.plaintext.max.connection.creation.rate"

    def ask(case: str, name: str, *steps: tuple[str, int, str | None]) -> None:
        side.ask("incremental_alter_configs", version, changing(BROKER, name, *steps), case)
        side.settle()
        side.ask("describe_configs", 4, asking(BROKER, "1", most, rate), f"this broker's after {case}")
        side.ask("describe_configs", 4, asking(BROKER, "", most, rate), f"all brokers' after {case}")

    ask("this broker", "1", (most, SET, "500"))
    ask("all brokers", "", (most, SET, "600"), (rate, SET, "700"))
    ask("bad value", "1", (most, SET, "many"))
    ask("out of range", "1", (most, SET, "-1"))
    ask("undo here", "1", (most, DELETE, None))
    ask("undo for all", "", (most, DELETE, None), (rate, DELETE, None))


@scenario("list_config_resources")
def resources(side: Side, version: int) -> None:
    side.create("topic")

    def ask(case: str, *kinds: int) -> None:
        answer = side.ask("list_config_resources", version, {"resource_types": list(kinds)}, case)
        if answer:
            kept = (side.name("topic"), "1")
            answer["config_resources"] = [
                one for one in answer["config_resources"] if one["resource_name"] in kept
            ]

    ask("default")
    if version >= 1:
        for kind in (TOPIC, BROKER, LOGGER, METRICS, GROUP, 0, 1, 99):
            ask(f"type {kind}", kind)
        ask("two types", TOPIC, BROKER)
        ask("a known and an unknown type", TOPIC, 99)
