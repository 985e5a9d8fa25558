"""Transactional ids as their coordinator keeps them: who gets which epoch, who is fenced, what may follow what."""

from __future__ import annotations

from typing import Any

from parity.batches import batch
from parity.scenario import scenario
from parity.scenarios.produce import produce
from parity.side import CONCURRENT_TRANSACTIONS, Answer, Side

TRANSACTIONAL = 0x10
COORDINATOR_NOT_READY = (14, 15, 16)


class Id:
    """One transactional id: asks for it, and gives its producer ids names that are the same on both sides."""

    def __init__(self, side: Side, hint: str = "id") -> None:
        self.side = side
        self.name = side.name(hint)
        self.known: list[int] = []
        self.producer_id = self.epoch = -1
        side.until("find_coordinator", 2, {"key": self.name, "key_type": 1}, lambda a: not a["error_code"])

    def ask(self, api: str, version: int, body: dict[str, Any], case: str) -> Answer:
        """As `Side.ask`, again while an earlier end is still being completed; how often is counted."""
        again = (CONCURRENT_TRANSACTIONS, *COORDINATOR_NOT_READY)
        answer = self.side.until(api, version, body, lambda a: a.get("error_code") not in again)
        return self.keep(api, version, answer, case)

    def keep(self, api: str, version: int, answer: Answer, case: str) -> Answer:
        given = answer.get("producer_id", -1)
        self.side.note(api, version, case, {**answer, **self.masked(answer)})
        if given >= 0 and not answer["error_code"]:
            self.producer_id, self.epoch = given, answer["producer_epoch"]
        return answer

    def masked(self, answer: Answer) -> Answer:
        given = answer.get("producer_id", -1)
        if given < 0:
            return {}
        if given not in self.known:
            self.known.append(given)
        return {"producer_id": f"producer id {self.known.index(given)}"}

    def init(self, version: int, case: str, timeout: int = 60_000, **more: Any) -> Answer:
        body = {"transactional_id": self.name, "transaction_timeout": timeout, **more}
        return self.ask("init_producer_id", version, body, case)

    def init_once(self, version: int, case: str, **more: Any) -> Answer:
        """Without asking again: an ongoing transaction is aborted, and the answer says to come back."""
        body = {"transactional_id": self.name, "transaction_timeout": 60_000, **more}
        return self.keep(
            "init_producer_id", version, self.side.quiet("init_producer_id", version, body), case
        )

    def who(self, **more: Any) -> dict[str, Any]:
        return {
            "transactional_id": self.name,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            **more,
        }

    def add(self, version: int, case: str, topics: dict[str, list[int]], **more: Any) -> Answer:
        named = [{"name": name, "partitions": parts} for name, parts in topics.items()]
        who = self.who(**more)
        if version >= 4:
            body: dict[str, Any] = {"transactions": [{"verify_only": False, **who, "topics": named}]}
        else:
            body = {f"v3_and_below_{key}": value for key, value in who.items()} | {
                "v3_and_below_topics": named
            }
        return self.side.ask("add_partitions_to_txn", version, body, case)

    def end(self, version: int, case: str, *, commit: bool, **more: Any) -> Answer:
        answer = self.ask("end_txn", version, self.who(committed=commit, **more), case)
        self.settled()
        return answer

    def settled(self) -> None:
        """Wait until what was prepared is complete."""
        self.side.until(
            "describe_transactions",
            0,
            {"transactional_ids": [self.name]},
            lambda a: not a["transaction_states"][0]["transaction_state"].startswith("Prepare"),
        )

    def describe(self, case: str) -> None:
        answer = self.side.quiet("describe_transactions", 0, {"transactional_ids": [self.name]})
        for one in answer["transaction_states"]:
            one.update(self.masked(one))
            if one["transaction_start_time"] > 0:
                one["transaction_start_time"] = "some time"
        self.side.note("describe_transactions", 0, case, answer)

    def transactional(self, sequence: int = 0, **more: Any) -> bytes:
        fields = {"producer_id": self.producer_id, "producer_epoch": self.epoch, **more}
        return batch(["x"], sequence=sequence, attributes=TRANSACTIONAL, **fields)


@scenario("init_producer_id", versions=range(6))
def transactional(side: Side, version: int) -> None:
    topic = side.create("topic", 2)
    one = Id(side)
    one.init(version, "timeout 0", timeout=0)
    one.init(version, "timeout too long", timeout=900_001)
    one.describe("nothing yet")
    one.init(version, "first")
    one.describe("after the first")
    one.init(version, "second")
    one.add(min(version, 3), "add", {topic: [0]})
    one.describe("ongoing")
    one.init_once(version, "while a transaction goes on")
    one.settled()
    one.describe("after it was aborted")
    one.init(version, "after that")
    if version < 3:
        return
    producer, epoch = one.producer_id, one.epoch
    one.init(version, "goes on", producer_id=producer, producer_epoch=epoch)
    one.init(version, "says so again", producer_id=producer, producer_epoch=epoch)
    one.init(version, "an epoch of before", producer_id=producer, producer_epoch=0)
    one.init(version, "an epoch to come", producer_id=producer, producer_epoch=99)
    one.init(version, "another producer id", producer_id=producer + 1_000_000, producer_epoch=0)
    one.init(version, "an id without an epoch", producer_id=producer)
    new = Id(side, "new")
    new.init(version, "unknown to the coordinator", producer_id=1 << 40, producer_epoch=5)


@scenario("end_txn", versions=range(6))
def ending(side: Side, version: int) -> None:
    topic = side.create("topic", 2)
    one = Id(side)
    one.end(version, "nothing is known", commit=True, producer_id=1, producer_epoch=0)
    one.end(version, "empty id", commit=True, transactional_id="", producer_id=1, producer_epoch=0)
    one.init(4, "init")
    one.end(version, "commit out of empty", commit=True)
    one.end(version, "abort out of empty", commit=False)
    one.describe("after that")
    for commit in (True, False):
        word = "commit" if commit else "abort"
        one.add(3, "add", {topic: [0, 1]})
        before = one.who()
        one.end(version, f"{word} with another producer id", commit=commit, producer_id=1 << 40)
        one.end(version, f"{word} with an old epoch", commit=commit, producer_epoch=one.epoch - 1)
        one.end(version, f"{word} with an epoch to come", commit=commit, producer_epoch=one.epoch + 3)
        one.end(version, word, commit=commit)
        one.describe(f"after {word}")
        epoch = one.epoch
        one.end(version, f"{word} again", commit=commit, producer_epoch=before["producer_epoch"])
        one.end(
            version, f"the opposite of {word}", commit=not commit, producer_epoch=before["producer_epoch"]
        )
        one.epoch = epoch
        one.end(version, f"{word} with nothing after {word}", commit=commit)
        one.end(version, f"the opposite with nothing after {word}", commit=not commit)
        one.describe("at the end")
        one.init(4, "init")


@scenario("end_txn", versions=range(6))
def followed_at_once(side: Side, version: int) -> None:
    """The next request while markers may be on their way, when Kafka often says CONCURRENT_TRANSACTIONS."""
    topic = side.create("topic", 3)
    one = Id(side)
    one.init(4, "init")
    for commit in (True, False, True):
        one.add(3, "add", {topic: [0, 1, 2]})
        one.keep("end_txn", version, side.quiet("end_txn", version, one.who(committed=commit)), "end")
        one.init(4, "init at once")
    one.describe("at the end")


@scenario("add_partitions_to_txn", versions=range(6))
def adding(side: Side, version: int) -> None:
    topic = side.create("topic", 3)
    one = Id(side)
    one.add(version, "nothing is known", {topic: [0]}, producer_id=1, producer_epoch=0)
    one.init(4, "init")
    one.add(version, "one", {topic: [0]})
    one.add(version, "the same", {topic: [0]})
    one.add(version, "two more", {topic: [1, 2]})
    one.add(version, "no such partition", {topic: [0, 9]})
    one.add(version, "no such topic", {topic: [0], side.name("unknown"): [0]})
    one.add(version, "another producer id", {topic: [0]}, producer_id=1 << 40)
    one.add(version, "an old epoch", {topic: [0]}, producer_epoch=one.epoch - 1)
    one.add(version, "an epoch to come", {topic: [0]}, producer_epoch=one.epoch + 1)
    one.add(version, "empty id", {topic: [0]}, transactional_id="")
    one.describe("ongoing")
    if version >= 4:
        other = side.create("other")
        one.add(version, "verify", {topic: [0, 1]}, verify_only=True)
        one.add(version, "verify what is not in it", {topic: [0], other: [0]}, verify_only=True)
        one.add(version, "verify with an old epoch", {topic: [0]}, verify_only=True, producer_epoch=7)
        one.add(version, "verify another producer", {topic: [0]}, verify_only=True, producer_id=1 << 40)
    one.end(4, "commit", commit=True)
    if version >= 4:
        one.add(version, "verify after the end", {topic: [0]}, verify_only=True)
    one.add(version, "a new one", {topic: [0]})
    one.describe("a new one")


@scenario("produce", versions=(3, 8, 10, 11, 12, 13))
def in_transactions(side: Side, version: int) -> None:
    side.verify(True)
    topic = side.create("topic", 3)
    one = Id(side)

    def send(case: str, data: bytes, partition: int = 0, **more: Any) -> None:
        body = produce(side, topic, data, partition, **{"transactional_id": one.name, **more})
        side.ask("produce", version, body, case)

    one.init(4, "init")
    send("no transactional id", one.transactional(), transactional_id=None)
    if version < 12:
        send("not added", one.transactional())
        one.add(3, "add", {topic: [0, 1]})
    send("first", one.transactional())
    send("second", one.transactional(1))
    send("other partition", one.transactional(), 1)
    send("another transactional id", one.transactional(), 2, transactional_id=side.name("unknown"))
    send("another producer", one.transactional(producer_id=1 << 40), 2)
    send("an old epoch", one.transactional(producer_epoch=one.epoch - 1), 2)
    send("an epoch to come", one.transactional(producer_epoch=one.epoch + 1), 2)
    one.describe("ongoing")
    one.end(5 if version >= 12 else 4, "commit", commit=True)
    if version < 12:
        send("after the end, not added", one.transactional(2))
    else:
        send("after the end", one.transactional())
        send("with the epoch of before", one.transactional(2, producer_epoch=one.epoch - 1))
    one.describe("after the end")


@scenario("txn_offset_commit", versions=range(6))
def offsets(side: Side, version: int) -> None:
    topic = side.create("topic", 2)
    group = side.coordinator(side.name("group"))
    one = Id(side)
    one.init(4, "init")

    def commit(case: str, offset: int, group_id: str = group, partition: int = 0, **more: Any) -> None:
        part = {"partition_index": partition, "committed_offset": offset, "committed_metadata": "m"}
        topics = [{"name": topic, "partitions": [{**part, "committed_leader_epoch": -1}]}]
        body = one.who(**{"group_id": group_id, "topics": topics, **more})
        side.ask("txn_offset_commit", version, body, case)

    def look(case: str) -> None:
        for stable in (False, True):
            named = [{"name": topic, "partition_indexes": [0, 1]}]
            body = {"group_id": group, "topics": named, "require_stable": stable}
            side.ask("offset_fetch", 7, body, f"{case}, stable {stable}")
            everything = {"group_id": group, "topics": None, "require_stable": stable}
            side.ask("offset_fetch", 7, everything, f"{case}, everything, stable {stable}")

    if version < 5:
        commit("not added", 1)
        body = one.who(group_id=group)
        side.ask("add_offsets_to_txn", min(version, 4), body, "add the group")
        side.ask("add_offsets_to_txn", min(version, 4), {**body, "producer_epoch": 9}, "wrong epoch")
        side.ask("add_offsets_to_txn", min(version, 4), {**body, "producer_id": 1 << 40}, "wrong producer")
    commit("first", 5)
    look("open")
    commit("again", 6)
    commit("no such partition", 1, partition=9)
    commit("an old epoch", 7, producer_epoch=one.epoch - 1)
    commit("another producer", 7, producer_id=1 << 40)
    commit("no group", 7, group_id="")
    if version >= 3:
        commit("a member nobody knows", 7, generation_id=1, member_id="stranger")
        commit("a generation without member", 7, generation_id=4)
    one.end(5 if version >= 5 else 4, "commit", commit=True)
    side.until(
        "offset_fetch",
        7,
        {"group_id": group, "topics": None, "require_stable": True},
        lambda a: bool(a["topics"]) and not a["topics"][0]["partitions"][0]["error_code"],
    )
    look("committed")
    if version < 5:
        side.quiet("add_offsets_to_txn", 3, one.who(group_id=group))
    commit("in another transaction", 9)
    look("open again")
    one.end(5 if version >= 5 else 4, "abort", commit=False)
    side.until(
        "offset_fetch",
        7,
        {"group_id": group, "topics": None, "require_stable": True},
        lambda a: not a["topics"][0]["partitions"][0]["error_code"],
    )
    look("aborted")


@scenario("list_transactions", versions=range(3))
def listing(side: Side, version: int) -> None:
    topic = side.create("topic")
    open_one, idle, done = Id(side, "open"), Id(side, "idle"), Id(side, "done")
    for one in (open_one, idle, done):
        one.init(4, "init")
    open_one.add(3, "add", {topic: [0]})
    done.add(3, "add", {topic: [0]})
    done.end(4, "commit", commit=True)
    names = {one.producer_id: one.name for one in (open_one, idle, done)}

    def ask(case: str, **filters: Any) -> None:
        body = {"state_filters": [], "producer_id_filters": list(names), "duration_filter": -1, **filters}
        answer = side.quiet("list_transactions", version, {"transactional_id_pattern": None, **body})
        states = [one for one in answer["transaction_states"] if one["transactional_id"] in names.values()]
        for one in states:
            one["producer_id"] = f"that of {names[one['producer_id']]}"
        answer["transaction_states"] = states
        side.note("list_transactions", version, case, answer)

    ask("all")
    ask("no producer id", producer_id_filters=[1 << 40])
    ask("one state", state_filters=["Ongoing"])
    ask("two states", state_filters=["Empty", "CompleteCommit"])
    ask("unknown states", state_filters=["Nothing", "ongoing", "Empty"])
    ask("only unknown states", state_filters=["Nothing"])
    if version >= 1:
        ask("of some time", duration_filter=0)
        ask("of long", duration_filter=600_000)
    if version >= 2:
        for pattern in ("", ".*open", "open", ".*(open|idle)", "[", "*", "(?i).*OPEN"):
            ask(f"pattern {pattern!r}", transactional_id_pattern=pattern)
    answer = side.quiet("describe_transactions", 0, {"transactional_ids": ["", side.name("unknown")]})
    side.note("describe_transactions", 0, "unknown", answer)


@scenario("find_coordinator", versions=range(7))
def of_transactions(side: Side, version: int) -> None:
    Id(side)
    body = {"key": side.name("id"), "key_type": 1, "coordinator_keys": [side.name("id"), ""]}
    if version:
        side.ask("find_coordinator", version, body, "transactional id")
