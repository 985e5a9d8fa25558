"""Checkpoints of groups, and what is committed of them at the target."""

from __future__ import annotations

from leafcuttr_forward.mm2.planning import read_plan
from leafcuttr_forward.mm2.records import Checkpoint, OffsetSync
from leafcuttr_forward.mm2.syncs import SyncStore
from leafcuttr_forward.mm2.translating import Checkpoints
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.types import TopicPartition

ON = "clusters=a,b\na.bootstrap.servers=x:1\nb.bootstrap.servers=y:1\na->b.enabled=true\n"
HERE, THERE = TopicPartition("orders", 0), TopicPartition("a.orders", 0)


def checkpoints(text: str = "", *syncs: OffsetSync) -> Checkpoints:
    plan, said = read_plan(ON + text)
    assert plan is not None, said
    store = SyncStore()
    for sync in syncs or (OffsetSync(HERE, 10, 3), OffsetSync(HERE, 20, 8)):
        store.add(sync)
    return Checkpoints(plan.flows[0], store)


def at(offset: int, topic: str = "orders", metadata: str = "m") -> dict[TopicPartition, CommittedOffset]:
    return {TopicPartition(topic, 0): CommittedOffset(offset, metadata)}


def test_a_position_is_translated_and_its_topic_renamed() -> None:
    found = checkpoints().due("readers", at(20))
    assert found == [Checkpoint("readers", THERE, 20, 8, "m")]


def test_what_cannot_be_translated_has_no_checkpoint() -> None:
    assert checkpoints().due("readers", {**at(9), **at(20, "bills"), **at(-1)}) == []


def test_only_topics_that_are_copied() -> None:
    only = checkpoints("topics = bills\n")
    assert only.due("readers", at(20)) == []
    assert only.is_relevant(at(1, "bills")) and not only.is_relevant(at(1)) and not only.is_relevant({})


def test_a_topic_that_came_from_the_target_has_its_own_name_there() -> None:
    sync = OffsetSync(TopicPartition("b.goods", 0), 1, 1)
    (found,) = checkpoints("", sync).due("readers", at(1, "b.goods"))
    assert found.partition == TopicPartition("goods", 0)


def test_only_news_are_written() -> None:
    known = checkpoints()
    (first,) = known.due("readers", at(20))
    known.written(first)
    assert known.due("readers", at(20)) == []
    assert known.due("others", at(20)) != []
    (further,) = known.due("readers", at(25))
    assert further.downstream == 9
    known.written(further)
    assert known.due("readers", at(26)) == [], "it is translated to the same"
    (back,) = known.due("readers", at(11))
    assert (back.upstream, back.downstream) == (11, 4)


def test_a_translation_that_became_less_exact_is_no_news() -> None:
    known = checkpoints()
    known.loaded(Checkpoint("readers", THERE, 25, 13))
    assert known.due("readers", at(25)) == []


def test_what_a_group_at_the_target_is_behind_is_committed() -> None:
    known = checkpoints()
    known.loaded(Checkpoint("readers", THERE, 20, 8, "m"))
    ours = {THERE: CommittedOffset(8, "m")}
    assert known.groups() == ["readers"]
    assert known.to_commit("readers", {}) == ours
    assert known.to_commit("readers", {THERE: CommittedOffset(7)}) == ours
    assert known.to_commit("readers", {THERE: CommittedOffset(8)}) == {}
    assert known.to_commit("readers", {THERE: CommittedOffset(9)}) == {}, "no group goes back"
    assert known.to_commit("readers", {TopicPartition("other", 0): CommittedOffset(99)}) == ours
    assert known.to_commit("others", {}) == {}
