"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords: where a partition begins and ends."""

from __future__ import annotations

from typing import Any

from parity.batches import NOW, batch
from parity.scenario import scenario
from parity.side import Side

SPECIAL = {"latest": -1, "earliest": -2, "max timestamp": -3, "earliest local": -4, "latest tiered": -5}
SPECIAL_TOO = {"earliest pending upload": -6, "minus seven": -7}


def listing(topic: str, *times: tuple[int, int], **more: Any) -> dict[str, Any]:
    parts = [{"partition_index": at, "timestamp": time, "current_leader_epoch": -1} for at, time in times]
    return {
        "replica_id": -1,
        "isolation_level": 0,
        "topics": [{"name": topic, "partitions": parts}],
        "timeout": 5_000,
        **more,
    }


def filled(side: Side) -> str:
    topic = side.create("topic", 2)
    for at in range(4):
        side.produce(topic, batch(["a", "b", "c"], time=NOW + at * 1000, time_step=10))
    side.produce(topic, batch(["late"], time=NOW + 500))
    return topic


@scenario("list_offsets")
def list_offsets(side: Side, version: int) -> None:
    topic = filled(side)
    for case, time in {**SPECIAL, **SPECIAL_TOO}.items():
        side.ask("list_offsets", version, listing(topic, (0, time)), case)
        side.ask("list_offsets", version, listing(topic, (1, time)), f"{case} of an empty partition")
    for delta in (-1, 0, 5, 10, 20, 21, 500, 999, 1000, 2015, 3020, 3021):
        side.ask("list_offsets", version, listing(topic, (0, NOW + delta)), f"time {delta:+}")
    side.ask("list_offsets", version, listing(topic, (1, NOW)), "time in an empty partition")
    side.ask("list_offsets", version, listing(topic, (0, 0)), "time 0")
    side.ask("list_offsets", version, listing(topic, (0, -1), (1, -2)), "two partitions")
    side.ask("list_offsets", version, listing(topic, (0, -1), (0, -2)), "one partition twice")
    side.ask("list_offsets", version, listing(topic, (5, -1)), "no such partition")
    side.ask("list_offsets", version, listing(topic, (-1, -1)), "negative partition")
    side.ask("list_offsets", version, listing(side.name("unknown"), (0, -1)), "unknown topic")
    side.ask("list_offsets", version, listing("", (0, -1)), "empty topic name")
    side.ask("list_offsets", version, listing("a/b", (0, -1)), "impossible topic name")
    side.ask("list_offsets", version, {**listing(topic), "topics": []}, "nothing")
    side.ask("list_offsets", version, listing(topic, (0, -1), isolation_level=1), "read committed")
    side.ask("list_offsets", version, listing(topic, (0, -1), isolation_level=3), "isolation level 3")
    side.ask("list_offsets", version, listing(topic, (0, -1), replica_id=-2), "as debugging replica")
    side.ask("list_offsets", version, listing(topic, (0, -1), replica_id=8), "as unknown follower")
    for epoch in (0, 7):
        body = listing(topic, (0, -1))
        body["topics"][0]["partitions"][0]["current_leader_epoch"] = epoch
        side.ask("list_offsets", version, body, f"current leader epoch {epoch}")


@scenario("list_offsets", versions=(11,))
def max_timestamp(side: Side, version: int) -> None:
    """KIP-734: the offset of the record with the largest timestamp."""
    topic = side.create("topic")
    side.produce(topic, batch(["a", "b", "c"], time=NOW, time_step=10))
    side.produce(topic, batch(["d", "e"], time=NOW - 500, time_step=10))
    side.ask("list_offsets", version, listing(topic, (0, -3)), "not the last batch")
    side.produce(topic, batch(["f", "g"], time=NOW + 20))
    side.ask("list_offsets", version, listing(topic, (0, -3)), "same largest time again")
    side.produce(topic, batch(["h", "i", "j"] * 20, time=NOW + 100, time_step=1, codec="gzip"))
    side.ask("list_offsets", version, listing(topic, (0, -3)), "compressed")
    side.ask("list_offsets", version, listing(topic, (0, NOW + 130)), "time inside a compressed batch")
    append_time = side.create("append", configs={"message.timestamp.type": "LogAppendTime"})
    side.produce(append_time, batch(["a", "b", "c"]))
    answer = side.quiet("list_offsets", version, listing(append_time, (0, -3)))
    offset = answer["topics"][0]["partitions"][0]["offset"]
    side.note("list_offsets", version, "log append time", {"offset": offset})


@scenario("offset_for_leader_epoch")
def epochs(side: Side, version: int) -> None:
    topic = filled(side)

    def body(name: str, partition: int, epoch: int, current: int = -1, replica: int = -2) -> dict[str, Any]:
        parts = [{"partition": partition, "leader_epoch": epoch, "current_leader_epoch": current}]
        return {"replica_id": replica, "topics": [{"topic": name, "partitions": parts}]}

    asks = {
        "epoch 0": body(topic, 0, 0),
        "epoch 0 of an empty partition": body(topic, 1, 0),
        "epoch 1": body(topic, 0, 1),
        "epoch 1000": body(topic, 0, 1000),
        "epoch -1": body(topic, 0, -1),
        "epoch -2": body(topic, 0, -2),
        "right current epoch": body(topic, 0, 0, 0),
        "current epoch of the future": body(topic, 0, 0, 9),
        "no such partition": body(topic, 9, 0),
        "unknown topic": body(side.name("unknown"), 0, 0),
        "empty topic name": body("", 0, 0),
        "as a consumer": body(topic, 0, 0, replica=-1),
        "as a follower": body(topic, 0, 0, replica=4),
        "nothing": {"replica_id": -1, "topics": []},
    }
    for case, request in asks.items():
        side.ask("offset_for_leader_epoch", version, request, case)


@scenario("delete_records")
def delete_records(side: Side, version: int) -> None:
    topic = filled(side)

    def body(name: str, *parts: tuple[int, int]) -> dict[str, Any]:
        wanted = [{"partition_index": at, "offset": offset} for at, offset in parts]
        return {"topics": [{"name": name, "partitions": wanted}], "timeout": 5_000}

    asks = {
        "before 0": body(topic, (0, 0)),
        "before 4, inside a batch": body(topic, (0, 4)),
        "before 2, gone already": body(topic, (0, 2)),
        "past the end": body(topic, (0, 14)),
        "offset -2": body(topic, (0, -2)),
        "no such partition": body(topic, (7, 1)),
        "unknown topic": body(side.name("unknown"), (0, 1)),
        "empty topic name": body("", (0, 1)),
        "two partitions": body(topic, (0, 5), (1, 0)),
        "partition twice": body(topic, (0, 6), (0, 7)),
        "nothing": {"topics": [], "timeout": 5_000},
        "to the end": body(topic, (0, -1)),
    }
    for case, request in asks.items():
        side.ask("delete_records", version, request, case)
        side.ask("list_offsets", 5, listing(topic, (0, -2), (1, -2)), f"start after {case}")
    side.ask("list_offsets", 5, listing(topic, (0, NOW)), "time of what is deleted")
    side.ask("list_offsets", 7, listing(topic, (0, -3)), "max timestamp of what is deleted")
    compact = side.create("compact", configs={"cleanup.policy": "compact"})
    side.produce(compact, batch([(b"k", b"v")]))
    side.ask("delete_records", version, body(compact, (0, 1)), "compact topic")


@scenario("list_offsets")
def after_deletion(side: Side, version: int) -> None:
    """Timestamps of records before the log start offset, and around it; in one segment and in several."""
    layouts = {
        "one segment": ({}, (10,)),
        "three segments": ({"segment.ms": "5000"}, (6, 2, 2)),
        "sparse index": ({"index.interval.bytes": "1000000"}, (10,)),
    }
    deltas = (0, 10, 20, 1000, 2000, 3015, 4000, 4130, 5000, 5001, 12_000, 30_000)
    for case, (configs, segments) in layouts.items():
        topic = side.create(case.replace(" ", "-"), configs=configs)
        laid = [batch(["late"], time=NOW + 5000)]
        laid += [batch(["a", "b", "c"], time=NOW + at * 1000, time_step=10) for at in range(4)]
        laid.append(batch(["d", "e", "f"] * 30, time=NOW + 4000, time_step=10, codec="gzip"))
        laid.append(batch(["g"], time=NOW + 12_000))
        laid.append(batch(["h", "i"], time=NOW + 11_000))
        laid.append(batch(["j", "k"], time=NOW + 30_000, codec="lz4"))
        laid.append(batch(["l"], time=NOW))
        firsts = [side.produce(topic, one) for one in laid]
        for offset in (0, 1, 2, 4, 7, 102, 103, 104, 105, 107, 108, 109):
            parts = [{"partition_index": 0, "offset": offset}]
            gone = {"topics": [{"name": topic, "partitions": parts}], "timeout": 5_000}
            side.quiet("delete_records", 1, gone)
            _until_dropped(side, topic, offset, segments, firsts, [len(one) for one in laid])
            for time in (-3, *(NOW + delta for delta in deltas)):
                if time > 0 or version >= 7:
                    body = listing(topic, (0, time))
                    asked = time - NOW if time > 0 else time
                    side.ask("list_offsets", version, body, f"{case}, from {offset}, time {asked}")


def _until_dropped(
    side: Side, topic: str, offset: int, segments: tuple[int, ...], firsts: list[int], sizes: list[int]
) -> None:
    """Wait until the segments below an offset have gone, all but the last one. `segments` counts their batches."""
    at = 0
    for batches in segments[:-1]:
        if firsts[at + batches] > offset:
            break
        at += batches
    left = sum(sizes[at:])

    def dropped(answer: dict[str, Any]) -> bool:
        return bool(answer["results"][0]["topics"][0]["partitions"][0]["partition_size"] == left)

    side.until("describe_log_dirs", 4, {"topics": [{"topic": topic, "partitions": [0]}]}, dropped)
