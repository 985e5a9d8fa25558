"""Fetch: plain, sessions, limits, long polls."""

from __future__ import annotations

from typing import Any

from parity.batches import batch, headers
from parity.codec import ZERO_UUID
from parity.scenario import scenario
from parity.side import Answer, Connection, Side

UNKNOWN_ID = "00000000-0000-4000-8000-00000000abcd"


def part(partition: int, offset: int, *, limit: int = 1 << 20, **more: Any) -> dict[str, Any]:
    return {"partition": partition, "fetch_offset": offset, "partition_max_bytes": limit, **more}


def fetch(side: Side, topics: dict[str, list[dict[str, Any]]], **more: Any) -> dict[str, Any]:
    asked = [
        {"topic": name, "topic_id": side.topic_ids.get(name, UNKNOWN_ID), "partitions": parts}
        for name, parts in topics.items()
    ]
    body = {"max_wait": 0, "min_bytes": 0, "max_bytes": 1 << 22, "session_id": 0, "session_epoch": -1}
    return {
        "replica_id": -1,
        "isolation_level": 0,
        **body,
        "topics": asked,
        "forgotten_topics_data": [],
        **more,
    }


def ask(side: Side, version: int, body: dict[str, Any], case: str, on: Connection | None = None) -> Answer:
    """Asks, and puts what the batches say of themselves in the place of their bytes."""
    answer = side.ask("fetch", version, body, case, on)
    readable(side, answer)
    return answer


def readable(side: Side, answer: Answer) -> None:
    for topic in answer.get("responses", []):
        for one in topic["partitions"]:
            data = one.pop("records")
            # Kafka cuts the last batch where the limit is, LeafCuttr ends at a whole one: sizes differ, batches do not.
            one["records"] = None if data is None else "some" if data else "empty"
            one["batches"] = [{**head, "leader_epoch": "masked"} for head in headers(data)]
    if answer.get("session_id"):
        side.labels[str(answer["session_id"])] = "<session>"
        answer["session_id"] = "<session>"


def filled(side: Side, partitions: int = 2) -> str:
    topic = side.create("topic", partitions)
    for at in range(5):
        side.produce(topic, batch([f"{at}-{n}" for n in range(at + 1)]))
    side.produce(topic, batch([b"z" * 5000] * 20, codec="gzip"))
    if partitions > 1:
        side.produce(topic, batch([b"y" * 3000]), 1)
        side.produce(topic, batch([b"x" * 3000]), 1)
    return topic


@scenario("fetch")
def read(side: Side, version: int) -> None:
    topic = filled(side)
    asks: dict[str, Any] = {
        "from the start": fetch(side, {topic: [part(0, 0)]}),
        "both partitions": fetch(side, {topic: [part(0, 0), part(1, 0)]}),
        "inside a batch": fetch(side, {topic: [part(0, 8)]}),
        "at the end": fetch(side, {topic: [part(0, 35)]}),
        "past the end": fetch(side, {topic: [part(0, 36)]}),
        "far past the end": fetch(side, {topic: [part(0, 1 << 40)]}),
        "negative offset": fetch(side, {topic: [part(0, -1)]}),
        "partition limit 0": fetch(side, {topic: [part(0, 0, limit=0)]}),
        "partition limit 1": fetch(side, {topic: [part(0, 0, limit=1)]}),
        "partition limit of a batch and a half": fetch(side, {topic: [part(0, 0, limit=120)]}),
        "limit 0": fetch(side, {topic: [part(0, 0), part(1, 0)]}, max_bytes=0),
        "limit 1": fetch(side, {topic: [part(0, 0), part(1, 0)]}, max_bytes=1),
        "limit 100": fetch(side, {topic: [part(0, 0), part(1, 0)]}, max_bytes=100),
        "limit that ends with a batch": fetch(side, {topic: [part(1, 0), part(0, 0)]}, max_bytes=3070),
        "first one larger than its limit": fetch(side, {topic: [part(1, 0, limit=10), part(0, 0, limit=10)]}),
        "empty partition before": fetch(side, {topic: [part(1, 2), part(0, 0, limit=1)]}, max_bytes=1),
        "read committed": fetch(side, {topic: [part(0, 0)]}, isolation_level=1),
        "isolation level 2": fetch(side, {topic: [part(0, 0)]}, isolation_level=2),
        "negative limit": fetch(side, {topic: [part(0, 0)]}, max_bytes=-1),
        "negative partition limit": fetch(side, {topic: [part(0, 0, limit=-1)]}),
        "no such partition": fetch(side, {topic: [part(7, 0)]}),
        "negative partition": fetch(side, {topic: [part(-1, 0)]}),
        "unknown topic": fetch(side, {side.name("unknown"): [part(0, 0)]}),
        "good and unknown": fetch(side, {topic: [part(0, 0)], side.name("unknown"): [part(0, 0)]}),
        "same partition twice": fetch(side, {topic: [part(0, 0), part(0, 30)]}),
        "no topics": fetch(side, {}),
        "min bytes there are": fetch(side, {topic: [part(0, 0)]}, min_bytes=100, max_wait=3000),
        "error ends the wait": fetch(side, {topic: [part(0, 99)]}, min_bytes=100, max_wait=3000),
        "wait in vain": fetch(side, {topic: [part(0, 35)]}, min_bytes=1, max_wait=50),
        "from a follower": fetch(
            side, {topic: [part(0, 0)]}, replica_id=7, replica_state={"replica_id": 7, "replica_epoch": -1}
        ),
        "current leader epoch": fetch(side, {topic: [part(0, 0, current_leader_epoch=0)]}),
        "leader epoch of the future": fetch(side, {topic: [part(0, 0, current_leader_epoch=9)]}),
        "last fetched epoch": fetch(side, {topic: [part(0, 4, last_fetched_epoch=0)]}),
        "last fetched epoch of the future": fetch(side, {topic: [part(0, 4, last_fetched_epoch=4)]}),
        "rack": fetch(side, {topic: [part(0, 0)]}, rack_id="r1"),
    }
    if version < 13:
        asks["empty topic name"] = fetch(side, {"": [part(0, 0)]})
        asks["impossible topic name"] = fetch(side, {"a/b": [part(0, 0)]})
    else:
        zero = fetch(side, {topic: [part(0, 0)]})
        zero["topics"][0]["topic_id"] = ZERO_UUID
        asks["id of zeros"] = zero
    for case, body in asks.items():
        ask(side, version, body, case)


@scenario("fetch")
def long_poll(side: Side, version: int) -> None:
    topic = side.create("topic", 2)
    waiting = side.connect()
    body = fetch(side, {topic: [part(0, 0), part(1, 0)]}, min_bytes=1, max_wait=15_000)
    side.quiet("metadata", 12, {"topics": []})
    waiting.post("fetch", version, body)
    side.produce(topic, batch(["wakes it"]))
    woken = side.take("fetch", version, "woken by a produce", waiting)
    readable(side, woken)
    for topic_answer in woken.get("responses", []):
        for one in topic_answer["partitions"]:
            # Kafka may answer when the records are in the log, just before its high watermark moves.
            one["high_watermark"] = "masked"
    waiting.post(
        "fetch", version, fetch(side, {topic: [part(0, 1), part(1, 0)]}, min_bytes=300, max_wait=15_000)
    )
    side.produce(topic, batch([b"x" * 200]))
    side.produce(topic, batch([b"x" * 200]), 1)
    readable(side, side.take("fetch", version, "woken when enough is there", waiting))


@scenario("fetch", versions=range(7, 19))
def session(side: Side, version: int) -> None:
    topic, other = filled(side), side.create("other")
    first = fetch(side, {topic: [part(0, 0), part(1, 0)]}, session_epoch=0)
    answer = side.ask("fetch", version, first, "new session")
    number = answer["session_id"]
    readable(side, answer)

    def more(case: str, epoch: int, topics: dict[str, Any], **fields: Any) -> None:
        ask(side, version, fetch(side, topics, session_id=number, session_epoch=epoch, **fields), case)

    def forget(name: str, *partitions: int) -> list[dict[str, Any]]:
        return [{"topic": name, "topic_id": side.topic_ids[name], "partitions": list(partitions)}]

    more("nothing new asked", 1, {})
    more("again from the end", 2, {topic: [part(0, 35), part(1, 2)]})
    more("nothing changed", 3, {})
    side.produce(topic, batch(["news"]))
    more("one partition has news", 4, {})
    more("caught up", 5, {topic: [part(0, 36)]})
    more("another topic", 6, {other: [part(0, 0)]})
    more("forgotten", 7, {}, forgotten_topics_data=forget(topic, 0, 1))
    side.produce(topic, batch(["unseen"]))
    more("after forgetting", 8, {})
    more("forget what is not there", 9, {}, forgotten_topics_data=forget(topic, 5))
    more("partition out of range", 10, {topic: [part(0, 999)]})
    more("still out of range", 11, {})
    more("unknown partition", 12, {topic: [part(9, 0)]})
    more("still unknown", 13, {})
    more("epoch left out", 20, {})
    more("epoch repeated", 13, {})
    more("right epoch after wrong ones", 14, {})
    ask(side, version, fetch(side, {}, session_id=number + 1, session_epoch=1), "a session of nobody")
    ask(side, version, fetch(side, {}, session_id=0, session_epoch=5), "session 0 with an epoch")
    more("a new session in place of this one", 0, {topic: [part(0, 36)]})
    more("the old one is gone", 15, {})
    closing = fetch(side, {topic: [part(0, 36)]}, session_id=0, session_epoch=0)
    renewed = side.ask("fetch", version, closing, "yet another")
    number = renewed["session_id"]
    readable(side, renewed)
    more("closed by epoch -1", -1, {topic: [part(0, 36)]})
    more("after closing", 1, {})
    ask(side, version, fetch(side, {}, session_epoch=0), "new session with nothing in it")
