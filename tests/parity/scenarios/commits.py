"""OffsetCommit, OffsetFetch, OffsetDelete."""

from __future__ import annotations

from typing import Any

from parity.codec import ZERO_UUID
from parity.scenario import scenario
from parity.scenarios.groups import enter, join, leave
from parity.side import Side

UNKNOWN_ID = "00000000-0000-4000-8000-00000000abcd"
Part = tuple[int, int, str | None]


def commit(
    side: Side, group: str, topic: str, *parts: Part, generation: int = -1, member: str = "", **more: Any
) -> Any:
    topics = [
        {
            "name": topic,
            "topic_id": side.topic_ids.get(topic, UNKNOWN_ID),
            "partitions": [
                {
                    "partition_index": at,
                    "committed_offset": offset,
                    "committed_metadata": text,
                    "committed_leader_epoch": 0,
                }
                for at, offset, text in parts
            ],
        }
    ]
    body = {
        "group_id": group,
        "generation_id_or_member_epoch": generation,
        "member_id": member,
        "group_instance_id": None,
    }
    return {**body, "retention_time": -1, "topics": topics, **more}


def wanted(side: Side, group: str, topics: dict[str, list[int]] | None, **more: Any) -> dict[str, Any]:
    """The body for one group, in the form before version 8 and in the one since."""

    def parts(topic_id: bool) -> list[dict[str, Any]] | None:
        if topics is None:
            return None
        return [
            {
                "name": name,
                "partition_indexes": indexes,
                **({"topic_id": side.topic_ids.get(name, UNKNOWN_ID)} if topic_id else {}),
            }
            for name, indexes in topics.items()
        ]

    groups = [{"group_id": group, "member_id": None, "member_epoch": -1, "topics": parts(True), **more}]
    return {"group_id": group, "topics": parts(False), "groups": groups, "require_stable": False}


@scenario("offset_commit")
def committed(side: Side, version: int) -> None:
    group, topic = side.coordinator(side.name("group")), side.create("topic", 3)

    def ask(case: str, *parts: Part, to: str = group, name: str = topic, **more: Any) -> None:
        side.ask("offset_commit", version, commit(side, to, name, *parts, **more), case)

    ask("simple consumer", (0, 5, "text"), (1, 7, None), (2, 0, ""))
    ask("offset -1", (0, -1, ""))
    ask("offset -5", (0, -5, ""))
    ask("metadata as long as allowed", (0, 6, "x" * 4096))
    ask("metadata too long", (0, 7, "x" * 4097))
    ask("good and too long", (0, 8, "x" * 5000), (1, 8, ""))
    ask("no such partition", (9, 1, ""), (0, 9, ""))
    ask("negative partition", (-1, 1, ""))
    ask("unknown topic", (0, 1, ""), name=side.name("unknown"))
    ask("empty topic", (0, 1, ""), name="")
    ask("same partition twice", (0, 10, ""), (0, 11, ""))
    ask("no partitions")
    ask("empty group", (0, 1, ""), to="")
    side.ask("offset_commit", version, {**commit(side, group, topic), "topics": []}, "no topics")
    ask("a member of a group without members", (0, 1, ""), generation=1, member="nobody")
    ask("a generation of a group without members", (0, 1, ""), generation=3)
    ask("a member without a generation", (0, 1, ""), member="nobody")
    side.ask("offset_fetch", 7, wanted(side, group, {topic: [0, 1, 2]}), "what is there now")
    led = enter(side, group)
    member, generation = led["member_id"], led["generation_id"]
    ask("as member", (0, 20, "m"), generation=generation, member=member)
    ask("old generation", (0, 21, ""), generation=generation - 1, member=member)
    ask("future generation", (0, 21, ""), generation=generation + 1, member=member)
    ask("unknown member", (0, 21, ""), generation=generation, member="nobody")
    ask("simple consumer of a group in use", (0, 21, ""))
    ask("unknown instance", (0, 21, ""), generation=generation, member=member, group_instance_id="x")
    ask("an unknown group with a generation", (0, 1, ""), to=side.name("unknown"), generation=4, member="x")
    side.quiet("leave_group", 3, leave(group, member))
    ask("after all left", (0, 30, ""))
    side.ask("offset_fetch", 7, wanted(side, group, {topic: [0, 1, 2]}), "what is there at the end")
    if version >= 10:
        body = commit(side, group, topic, (0, 1, ""))
        body["topics"][0]["topic_id"] = ZERO_UUID
        side.ask("offset_commit", version, body, "id of zeros")


@scenario("offset_commit", versions=range(2, 5))
def retention_time(side: Side, version: int) -> None:
    group, topic = side.coordinator(side.name("group")), side.create("topic")
    side.ask(
        "offset_commit", version, commit(side, group, topic, (0, 5, ""), retention_time=60_000), "a minute"
    )
    side.ask("offset_fetch", 7, wanted(side, group, {topic: [0]}), "still there")


@scenario("offset_commit", versions=range(7, 11))
def during_rebalance(side: Side, version: int) -> None:
    group, topic = side.coordinator(side.name("group")), side.create("topic")
    a, b = side.connect(), side.connect()
    led = enter(side, group, on=a)
    b.post("join_group", 2, join(group))
    beats = {"group_id": group, "generation_id": led["generation_id"], "member_id": led["member_id"]}
    side.until("heartbeat", 3, beats, lambda told: told["error_code"] == 27)
    mine = {"generation": led["generation_id"], "member": led["member_id"]}
    side.ask(
        "offset_commit", version, commit(side, group, topic, (0, 5, ""), **mine), "preparing a rebalance"
    )
    a.post("join_group", 2, join(group, led["member_id"]))
    again, _ = a.take("join_group", 2), b.take("join_group", 2)
    now = {"generation": again["generation_id"], "member": led["member_id"]}
    side.ask(
        "offset_commit",
        version,
        commit(side, group, topic, (0, 6, ""), **now),
        "waiting for the leader's sync",
    )


@scenario("offset_fetch")
def fetched(side: Side, version: int) -> None:
    group, topic, other = side.coordinator(side.name("group")), side.create("topic", 3), side.create("other")
    body = commit(side, group, topic, (0, 5, "text"), (1, 7, None))
    side.quiet("offset_commit", 8, body)
    side.quiet("offset_commit", 8, commit(side, group, other, (0, 3, "")))
    asks = {
        "committed and not": wanted(side, group, {topic: [0, 1, 2]}),
        "two topics": wanted(side, group, {topic: [0], other: [0]}),
        "no such partition": wanted(side, group, {topic: [9, -1]}),
        "unknown topic": wanted(side, group, {side.name("unknown"): [0]}),
        "empty topic": wanted(side, group, {"": [0]}),
        "partition twice": wanted(side, group, {topic: [0, 0]}),
        "no partitions": wanted(side, group, {topic: []}),
        "no topics": wanted(side, group, {}),
        "unknown group": wanted(side, side.name("unknown"), {topic: [0]}),
        "empty group": wanted(side, "", {topic: [0]}),
    }
    if version >= 2:
        asks["all"] = wanted(side, group, None)
        asks["all of an unknown group"] = wanted(side, side.name("unknown"), None)
    if version >= 7:
        asks["stable ones"] = {**wanted(side, group, {topic: [0]}), "require_stable": True}
    if version >= 8:
        two = wanted(side, group, {topic: [0]})
        two["groups"] += wanted(side, side.name("unknown"), {topic: [0]})["groups"]
        asks["two groups"] = two
        asks["no groups"] = {**two, "groups": []}
        asks["a group twice"] = {**two, "groups": two["groups"][:1] * 2}
    if version >= 9:
        asks["as a member of nobody"] = wanted(side, group, {topic: [0]}, member_id="nobody", member_epoch=3)
        asks["with an epoch only"] = wanted(side, group, {topic: [0]}, member_id=None, member_epoch=3)
    for case, request in asks.items():
        side.ask("offset_fetch", version, request, case)


@scenario("offset_delete")
def forgotten(side: Side, version: int) -> None:
    group, topic = side.coordinator(side.name("group")), side.create("topic", 2)
    side.quiet("offset_commit", 8, commit(side, group, topic, (0, 5, ""), (1, 6, "")))

    def body(name: str, *parts: int, of: str = group) -> dict[str, Any]:
        return {
            "group_id": of,
            "topics": [{"name": name, "partitions": [{"partition_index": at} for at in parts]}],
        }

    def ask(case: str, request: dict[str, Any]) -> None:
        side.ask("offset_delete", version, request, case)

    ask("one", body(topic, 0))
    side.ask("offset_fetch", 7, wanted(side, group, {topic: [0, 1]}), "what is left")
    ask("again", body(topic, 0))
    ask("no such partition", body(topic, 9))
    ask("unknown topic", body(side.name("unknown"), 0))
    ask("empty topic", body("", 0))
    ask("unknown group", body(topic, 0, of=side.name("unknown")))
    ask("empty group", body(topic, 0, of=""))
    ask("no topics", {"group_id": group, "topics": []})
    subscribed = _subscription(topic)
    side.quiet("offset_commit", 8, commit(side, group, topic, (0, 5, "")))
    led = enter(side, group, protocols=[{"name": "range", "metadata": subscribed}])
    other = side.create("other")
    more = {"generation": led["generation_id"], "member": led["member_id"]}
    side.quiet("offset_commit", 8, commit(side, group, other, (0, 5, ""), **more))
    ask("subscribed topic", body(topic, 0))
    ask("another topic of a group in use", body(other, 0))
    garbled = side.name("garbled")
    enter(side, garbled)
    ask("subscription that cannot be read", body(topic, 0, of=garbled))


def _subscription(topic: str) -> bytes:
    """Version 0 of the consumer protocol's subscription: topics and no user data."""
    name = topic.encode()
    return b"\0\0" + (1).to_bytes(4, "big") + len(name).to_bytes(2, "big") + name + b"\xff\xff\xff\xff"
