"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and what is told of groups."""

from __future__ import annotations

from typing import Any

from parity.scenario import scenario
from parity.side import Answer, Connection, Side

MEMBER_ID_REQUIRED = 79


def join(group: str, member: str = "", *, protocols: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "group_id": group,
        "session_timeout": 10_000,
        "rebalance_timeout": 20_000,
        "member_id": member,
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b"m"}] if protocols is None else protocols,
        "reason": None,
        **more,
    }


def sync(
    group: str, generation: int, member: str, parts: dict[str, bytes] | None = None, **more: Any
) -> dict[str, Any]:
    return {
        "group_id": group,
        "generation_id": generation,
        "member_id": member,
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [{"member_id": one, "assignment": data} for one, data in (parts or {}).items()],
        **more,
    }


def beat(group: str, generation: int, member: str, instance: str | None = None) -> dict[str, Any]:
    return {
        "group_id": group,
        "generation_id": generation,
        "member_id": member,
        "group_instance_id": instance,
    }


def leave(group: str, *members: str, instance: str | None = None) -> dict[str, Any]:
    many = [{"member_id": one, "group_instance_id": instance, "reason": "done"} for one in members]
    return {"group_id": group, "member_id": members[0] if members else "", "members": many}


def enter(side: Side, group: str, version: int = 5, *, on: Connection | None = None, **more: Any) -> Answer:
    """Setup: one member joins by both steps and leads the group, alone, with an assignment."""
    connection = on or side.main
    connection.post("join_group", version, join(group, **more))
    answer = connection.take("join_group", version)
    if answer["error_code"] == MEMBER_ID_REQUIRED:
        connection.post("join_group", version, join(group, answer["member_id"], **more))
        answer = connection.take("join_group", version)
    connection.post(
        "sync_group",
        3,
        sync(group, answer["generation_id"], answer["member_id"], {answer["member_id"]: b"a"}),
    )
    connection.take("sync_group", 3)
    return answer


@scenario("join_group")
def one_member(side: Side, version: int) -> None:
    group = side.coordinator(side.name("group"))
    first = side.ask("join_group", version, join(group), "first")
    member = first["member_id"]
    if first["error_code"] == MEMBER_ID_REQUIRED:
        first = side.ask("join_group", version, join(group, member), "second step")
    generation = side.ask("join_group", version, join(group, member), "joins again before syncing")[
        "generation_id"
    ]
    side.ask("sync_group", min(version, 5), sync(group, generation, member, {member: b"mine"}), "sync")
    side.ask("heartbeat", min(version, 4), beat(group, generation, member), "heartbeat")
    generation = side.ask("join_group", version, join(group, member), "leader joins again")["generation_id"]
    changed = [{"name": "range", "metadata": b"other"}]
    side.ask("join_group", version, join(group, member, protocols=changed), "other metadata")
    side.ask("join_group", version, join(group, member, reason="why not"), "a reason")
    side.ask("leave_group", min(version, 5), leave(group, member), "leave")
    side.ask("heartbeat", min(version, 4), beat(group, generation, member), "heartbeat after leaving")


@scenario("join_group")
def refused(side: Side, version: int) -> None:
    group = side.coordinator(side.name("group"))
    enter(side, group, on=side.connect())
    asks = {
        "empty group": join(""),
        "unknown member": join(group, "nobody"),
        "session too short": join(group, session_timeout=1),
        "session too long": join(group, session_timeout=10_000_000),
        "session negative": join(group, session_timeout=-1),
        "no protocols": join(group, protocols=[]),
        "other protocols": join(group, protocols=[{"name": "round", "metadata": b""}]),
        "other type": join(group, protocol_type="connect"),
        "empty type": join(group, protocol_type=""),
    }
    for case, body in asks.items():
        side.ask("join_group", version, body, case)
    fresh = side.name("fresh")
    side.ask("join_group", version, join(fresh, "nobody"), "unknown member of an unknown group")
    side.ask("join_group", version, join(fresh, protocols=[]), "no protocols in a new group")
    side.ask("join_group", version, join(fresh, protocol_type=""), "no type in a new group")


@scenario("join_group")
def two_members(side: Side, version: int) -> None:
    group = side.coordinator(side.name("group"))
    a, b = side.connect(), side.connect()
    leader = enter(side, group, version, on=a)
    many = [{"name": "sticky", "metadata": b"s"}, {"name": "range", "metadata": b"r"}]
    b.post("join_group", version, join(group, protocols=many))
    second = None
    if version >= 4:
        second = side.take("join_group", version, "second member gets an id", b)
        b.post("join_group", version, join(group, second["member_id"], protocols=many))
    me = leader["member_id"]
    side.until(
        "heartbeat", 3, beat(group, leader["generation_id"], me), lambda told: told["error_code"] == 27
    )
    a.post("join_group", version, join(group, me))
    mine = side.take("join_group", version, "leader's answer", a)
    other = side.take("join_group", version, "follower's answer", b)
    generation, you = mine["generation_id"], other["member_id"]
    sync_version = min(version, 5)
    b.post("sync_group", sync_version, sync(group, generation, you))
    a.post(
        "sync_group",
        sync_version,
        sync(group, generation, me, {me: b"to the leader", you: b"to the follower"}),
    )
    side.take("sync_group", sync_version, "leader's assignment", a)
    side.take("sync_group", sync_version, "follower's assignment", b)
    side.ask("sync_group", sync_version, sync(group, generation, you), "follower syncs again", b)
    side.ask("join_group", version, join(group, you, protocols=many), "follower joins again unchanged", b)
    side.ask("leave_group", min(version, 5), leave(group, me), "leader leaves", a)
    side.ask("heartbeat", 3, beat(group, generation, you), "follower must rejoin", b)
    side.ask("join_group", version, join(group, you, protocols=many), "follower leads now", b)


@scenario("join_group", versions=range(5, 10))
def static_members(side: Side, version: int) -> None:
    """KIP-345: an instance id keeps its place when its process restarts."""
    group = side.coordinator(side.name("group"))
    first = side.ask("join_group", version, join(group, group_instance_id="one"), "first")
    member, generation = first["member_id"], first["generation_id"]
    made = sync(group, generation, member, {member: b"kept"}, group_instance_id="one")
    side.ask("sync_group", 5, made, "sync")
    again = side.ask("join_group", version, join(group, group_instance_id="one"), "restarted")
    now = again["member_id"]
    side.ask("heartbeat", 4, beat(group, generation, member, "one"), "old member id is fenced")
    side.ask("heartbeat", 4, beat(group, generation, now, "one"), "new member id")
    side.ask("heartbeat", 4, beat(group, generation, now, "two"), "unknown instance")
    renewed = sync(group, again["generation_id"], now, {now: b"kept"}, group_instance_id="one")
    side.ask("sync_group", 5, renewed, "sync again")
    side.ask("join_group", version, join(group, member, group_instance_id="one"), "fenced join")
    side.ask(
        "join_group",
        version,
        join(group, "nobody", group_instance_id="two"),
        "unknown member with an instance",
    )
    side.ask("describe_groups", 5, {"groups": [group]}, "described")
    side.ask("leave_group", 5, leave(group, "", instance="two"), "unknown instance leaves")
    side.ask("leave_group", 5, leave(group, member, instance="one"), "fenced one leaves")
    side.ask("leave_group", 5, leave(group, "", instance="one"), "leaves by instance only")


@scenario("join_group", versions=(9,))
def full(side: Side, version: int) -> None:
    """`group.max.size` is 5 on both sides."""
    group = side.coordinator(side.name("group"))
    enter(side, group, on=side.connect())
    for _ in range(4):
        side.connect().post("join_group", 2, join(group))
    side.until("describe_groups", 5, {"groups": [group]}, lambda told: len(told["groups"][0]["members"]) == 5)
    side.ask("join_group", version, join(group), "the sixth")


@scenario("sync_group")
def sync_errors(side: Side, version: int) -> None:
    group = side.coordinator(side.name("group"))
    led = enter(side, group)
    member, generation = led["member_id"], led["generation_id"]
    asks = {
        "again": sync(group, generation, member),
        "again with another assignment": sync(group, generation, member, {member: b"new"}),
        "unknown member": sync(group, generation, "nobody"),
        "empty member": sync(group, generation, ""),
        "old generation": sync(group, generation - 1, member),
        "future generation": sync(group, generation + 1, member),
        "empty group": sync("", generation, member),
        "unknown group": sync(side.name("unknown"), 1, member),
        "other protocol": sync(group, generation, member, protocol_name="round"),
        "other type": sync(group, generation, member, protocol_type="connect"),
        "no protocol, no type": sync(group, generation, member, protocol_name=None, protocol_type=None),
        "unknown instance": sync(group, generation, member, group_instance_id="x"),
    }
    for case, body in asks.items():
        side.ask("sync_group", version, body, case)


@scenario("heartbeat")
def heartbeat(side: Side, version: int) -> None:
    group = side.coordinator(side.name("group"))
    led = enter(side, group)
    member, generation = led["member_id"], led["generation_id"]
    asks = {
        "good": beat(group, generation, member),
        "unknown member": beat(group, generation, "nobody"),
        "empty member": beat(group, generation, ""),
        "old generation": beat(group, generation - 1, member),
        "future generation": beat(group, generation + 1, member),
        "empty group": beat("", generation, member),
        "unknown group": beat(side.name("unknown"), 1, member),
        "unknown instance": beat(group, generation, member, "x"),
    }
    for case, body in asks.items():
        side.ask("heartbeat", version, body, case)


@scenario("leave_group")
def leaving(side: Side, version: int) -> None:
    group = side.coordinator(side.name("group"))
    member = enter(side, group)["member_id"]
    asks = {
        "unknown member": leave(group, "nobody"),
        "empty member": leave(group, ""),
        "empty group": leave("", member),
        "unknown group": leave(side.name("unknown"), member),
        "good": leave(group, member),
        "again": leave(group, member),
    }
    for case, body in asks.items():
        side.ask("leave_group", version, body, case)
    if version >= 3:
        again = enter(side, group)["member_id"]
        side.ask("leave_group", version, leave(group, "nobody", again, again), "several")
        side.ask("leave_group", version, leave(group), "none")


@scenario("describe_groups")
def described(side: Side, version: int) -> None:
    group = side.coordinator(side.name("group"))
    member = enter(side, group)["member_id"]

    def body(*groups: str, operations: bool = False) -> dict[str, Any]:
        return {"groups": list(groups), "include_authorized_operations": operations}

    side.ask("describe_groups", version, body(group), "stable")
    side.ask("describe_groups", version, body(group, operations=True), "authorized operations")
    side.ask("describe_groups", version, body(group, side.name("unknown"), ""), "known, unknown and empty")
    side.ask("describe_groups", version, body(group, group), "twice")
    side.ask("describe_groups", version, body(), "none")
    side.quiet("leave_group", 3, leave(group, member))
    side.ask("describe_groups", version, body(group), "empty")


@scenario("list_groups")
def listed(side: Side, version: int) -> None:
    group, empty = side.coordinator(side.name("group")), side.name("empty")
    enter(side, group)
    member = enter(side, empty)["member_id"]
    side.quiet("leave_group", 3, leave(empty, member))

    def ask(case: str, states: list[str], types: list[str]) -> None:
        body = {"states_filter": states, "types_filter": types}
        answer = side.ask("list_groups", version, body, case)
        if answer:
            answer["groups"] = [one for one in answer["groups"] if one["group_id"] in (group, empty)]

    ask("all", [], [])
    if version >= 4:
        for states in (
            ["Stable"],
            ["Empty"],
            ["stable"],
            ["Dead"],
            ["NoSuchState"],
            ["Stable", "Empty"],
            [""],
        ):
            ask(f"states {states}", states, [])
    if version >= 5:
        for types in (["classic"], ["Classic"], ["consumer"], ["share"], ["nonsense"], [""]):
            ask(f"types {types}", [], types)
        ask("states and types", ["Empty"], ["classic"])


@scenario("delete_groups")
def deleted(side: Side, version: int) -> None:
    group, gone = side.coordinator(side.name("group")), side.name("gone")
    enter(side, group)
    member = enter(side, gone)["member_id"]
    side.quiet("leave_group", 3, leave(gone, member))
    asks = {
        "in use": [group],
        "unknown": [side.name("unknown")],
        "empty name": [""],
        "good": [gone],
        "again": [gone],
        "several": [group, side.name("unknown")],
        "none": [],
    }
    for case, names in asks.items():
        side.ask("delete_groups", version, {"groups_names": names}, case)
        if case == "good":
            side.until(
                "describe_groups",
                5,
                {"groups": [gone]},
                lambda told: told["groups"][0]["group_state"] == "Dead",
            )


@scenario("find_coordinator")
def coordinators(side: Side, version: int) -> None:
    group = side.coordinator(side.name("group"))

    def body(*keys: str, kind: int = 0) -> dict[str, Any]:
        return {"key": keys[0] if keys else "", "key_type": kind, "coordinator_keys": list(keys)}

    side.ask("find_coordinator", version, body(group), "a group")
    side.ask("find_coordinator", version, body(""), "the empty group")
    if version >= 1:
        side.ask("find_coordinator", version, body(group, kind=9), "an unknown type")
        side.ask("find_coordinator", version, body(group, kind=-1), "a negative type")
        side.ask("find_coordinator", version, body("transaction", kind=1), "a transaction")
        side.ask("find_coordinator", version, body("", kind=1), "the empty transaction")
    if version >= 4:
        side.ask("find_coordinator", version, body(group, side.name("b"), ""), "several")
        side.ask("find_coordinator", version, body(group, group), "the same twice")
        side.ask("find_coordinator", version, body(), "none")
        side.ask("find_coordinator", version, body("g:AAAAAAAAAAAAAAAAAAAAAQ:0", kind=2), "a share group")
        side.ask("find_coordinator", version, body("nonsense", kind=2), "a wrong share group key")
