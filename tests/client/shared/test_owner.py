"""The owner of transactions that other processes write to, by both versions of the protocol."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest
import trio

from leafcuttr.client import groups
from leafcuttr.client.calls import Calls
from leafcuttr.client.shared.owner import SharedProducer
from leafcuttr.client.shared.written import described
from leafcuttr.errors import ErrorCode, InvalidRequest, RequestTimedOut
from leafcuttr_sdk.blocking_peers import SharedTransaction
from leafcuttr_sdk.broker import LATEST
from leafcuttr_sdk.errors import (
    InvalidTransactionTimeout,
    ProducerFenced,
    TransactionAborted,
    TransactionTimedOut,
)
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.peers import Peer
from leafcuttr_sdk.types import TopicPartition
from support.shared_transactions import sees, write
from support.waiting import eventually

OpenOwner = Callable[..., AbstractAsyncContextManager[SharedProducer]]


@pytest.mark.one_in(2)
async def test_each_transaction_has_its_own_epoch(
    calls: Calls, opened: OpenOwner, peer: Peer, topic: str
) -> None:
    tp, seen = TopicPartition(topic, 0), list[tuple[int, int]]()
    async with opened(f"x-{topic}") as owner:
        for number in range(4):
            shared = await owner.begin_shared()
            seen.append((shared.producer_id, shared.epoch))
            assert shared.timeout_ms == 60_000
            if number % 2:
                await write(calls, shared, tp, b"%d" % number)
                await owner.commit({tp: 1})
            elif number:
                await write(calls, shared, tp, b"gone")
                await owner.abort()
            else:
                await owner.commit(None)  # nothing was written
    assert seen == sorted(set(seen))
    assert len(seen) == 4
    await sees(peer, tp, b"1", b"3")


async def test_what_it_begins_is_of_the_clusters_version(opened: OpenOwner, address: str, topic: str) -> None:
    async with opened(f"x-{topic}") as owner:
        shared = await owner.begin_shared()
        assert shared.version in (1, 2)
        assert owner.versions.adds_by_itself is (shared.version == 2)


async def test_without_an_open_transaction_nothing_can_be_done(opened: OpenOwner, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with opened(f"x-{topic}") as owner:
        for call in (
            partial(owner.commit, None),
            partial(owner.commit_offsets, "g", {tp: CommittedOffset(1)}),
        ):
            with pytest.raises(RuntimeError, match="no transaction open"):
                await call()
        await owner.abort()
        await owner.begin_shared()
        with pytest.raises(RuntimeError, match="has a transaction open"):
            await owner.begin_shared()


async def test_offsets_go_with_it(opened: OpenOwner, peer: Peer, topic: str) -> None:
    tp, group = TopicPartition(topic, 0), f"g-{topic}"
    async with opened(f"x-{topic}") as owner:
        await owner.begin_shared()
        await owner.commit_offsets(group, {})
        await owner.commit_offsets(group, {tp: CommittedOffset(1, "one")})
        await owner.commit_offsets(group, {tp: CommittedOffset(2, "two")})
        await owner.commit_offsets(f"{group}-2", {tp: CommittedOffset(3)})
        assert await peer.committed(group) == {}
        await owner.commit({})

        async def same() -> bool:
            return await peer.committed(group) == {tp: CommittedOffset(2, "two")}

        await eventually(same, "the offset", seconds=10)
        await owner.begin_shared()
        await owner.commit_offsets(group, {tp: CommittedOffset(9)})
        await owner.abort()
        await owner.begin_shared()
        assert await peer.committed(group) == {tp: CommittedOffset(2, "two")}


async def test_stable_offsets_wait_for_the_end_of_the_transaction(
    calls: Calls, opened: OpenOwner, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tp, group = TopicPartition(topic, 0), f"g-{topic}"
    codes, found, judge = list[int](), list[object](), groups._fetched

    def noted(response: Any) -> tuple[int, str | None]:
        answer = judge(response)
        codes.append(answer[0])
        return answer

    async def read() -> None:
        found.append(await groups.committed_offsets(calls, group, stable=[tp]))

    monkeypatch.setattr(groups, "_fetched", noted)
    async with opened(f"x-{topic}") as owner:
        await owner.begin_shared()
        await owner.commit_offsets(group, {tp: CommittedOffset(2, "two")})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await eventually(lambda: ErrorCode.UNSTABLE_OFFSET_COMMIT in codes, "an answer")
            assert found == []
            await owner.commit(None)
        assert found == [{tp: CommittedOffset(2, "two")}]


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ({0: 2}, r"has 1 records in \S+-0, not the 2 that were reported"),
        ({0: 1, 1: 1}, r"has 0 records in \S+-1, not the 1"),
        ({}, r"has 1 records in \S+-0, not the 0"),
        ({1: 0}, r"has 1 records in \S+-0, not the 0"),
    ],
)
async def test_what_was_not_reported_is_not_committed(
    calls: Calls, opened: OpenOwner, peer: Peer, topic: str, written: dict[int, int], says: str
) -> None:
    tp = TopicPartition(topic, 0)
    async with opened(f"x-{topic}") as owner:
        await write(calls, await owner.begin_shared(), tp, b"gone")
        with pytest.raises(TransactionAborted, match=says):
            await owner.commit({TopicPartition(topic, number): count for number, count in written.items()})
        with pytest.raises(TransactionAborted, match="can only be aborted: a call failed"):
            await owner.commit({tp: 1})
        with pytest.raises(TransactionAborted, match="can only be aborted"):
            await owner.commit_offsets("g", {tp: CommittedOffset(1)})
        await owner.abort()
        await write(calls, await owner.begin_shared(), tp, b"kept")
        await owner.commit({tp: 1})
    await sees(peer, tp, b"kept")


async def test_a_later_owner_fences_it_for_good(
    calls: Calls, opened: OpenOwner, peer: Peer, topic: str
) -> None:
    tp, name = TopicPartition(topic, 0), f"x-{topic}"
    async with opened(name) as first:
        await write(calls, await first.begin_shared(), tp, b"gone")
        async with opened(name) as second:
            await write(calls, await second.begin_shared(), tp, b"kept")
            with pytest.raises(
                ProducerFenced, match=f"Another producer has taken the transactional id '{name}'"
            ):
                await first.commit(None)
            for call in (first.begin_shared, partial(first.commit, None)):
                with pytest.raises(ProducerFenced):
                    await call()
            await first.abort()
            assert first.shared is None
            await second.commit({tp: 1})
    await sees(peer, tp, b"kept")


async def test_one_that_has_begun_nothing_is_fenced_too(opened: OpenOwner, topic: str) -> None:
    """Although its time is up: it must not take the epoch of the one that has the id now."""
    async with opened(f"x-{topic}", 1) as first, opened(f"x-{topic}") as second:
        with pytest.raises(ProducerFenced):
            await first.begin_shared()
            await trio.sleep(0.01)
            await first.commit_offsets("g", {TopicPartition(topic, 0): CommittedOffset(1)})
            await first.begin_shared()
        shared = await second.begin_shared()
        await second.commit_offsets(f"g-{topic}", {TopicPartition(topic, 0): CommittedOffset(1)})
        assert second.shared == shared
        await second.commit(None)


async def test_one_that_takes_too_long_is_aborted_and_the_owner_is_of_no_more_use(
    calls: Calls, opened: OpenOwner, peer: Peer, topic: str
) -> None:
    tp, name = TopicPartition(topic, 0), f"x-{topic}"
    async with opened(name, 100) as owner:
        await write(calls, await owner.begin_shared(), tp, b"gone")

        async def aborted() -> bool:
            return (await peer.offsets({tp: LATEST}, committed=True))[tp] == 2

        await eventually(aborted, "the abort", seconds=10)
        with pytest.raises(TransactionTimedOut, match="took longer than 100 ms"):
            await owner.commit({tp: 1})
        with pytest.raises(TransactionTimedOut):
            await owner.begin_shared()
    async with opened(name) as owner:
        await write(calls, await owner.begin_shared(), tp, b"kept")
        await owner.commit({tp: 1})
    await sees(peer, tp, b"kept")


async def test_another_process_ends_it(calls: Calls, opened: OpenOwner, peer: Peer, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with opened(f"x-{topic}", 30_000) as owner:
        shared = await owner.begin_shared()
    await write(calls, shared, tp, b"kept")
    async with opened(shared) as other:
        assert other.shared == shared
        await other.commit_offsets(f"g-{topic}", {tp: CommittedOffset(1)})
        await other.commit({tp: 1})
        async with opened(shared) as same:
            # That it is committed already, and so it is by this.
            await same.commit(None)
        following = await other.begin_shared()
        assert following.timeout_ms == 30_000
        await write(calls, following, tp, b"next")
        async with opened(shared) as late:
            with pytest.raises(ProducerFenced):
                await late.commit(None)
            await late.abort()
        await other.commit({tp: 1})
    await sees(peer, tp, b"kept", b"next")


async def test_another_process_learns_that_it_took_too_long(
    calls: Calls, opened: OpenOwner, peer: Peer, topic: str
) -> None:
    tp = TopicPartition(topic, 0)
    async with opened(f"x-{topic}", 100) as owner:
        shared = await owner.begin_shared()
    await write(calls, shared, tp, b"gone")

    async def aborted() -> bool:
        return (await peer.offsets({tp: LATEST}, committed=True))[tp] == 2

    await eventually(aborted, "the abort", seconds=10)
    for written in (None, {tp: 1}):
        async with opened(shared) as other:
            with pytest.raises(TransactionTimedOut):
                await other.commit(written)


async def test_what_is_left_open_is_aborted_by_the_next_owner(
    calls: Calls, opened: OpenOwner, peer: Peer, topic: str
) -> None:
    tp = TopicPartition(topic, 0)
    async with opened(f"x-{topic}") as owner:
        await write(calls, await owner.begin_shared(), tp, b"gone")
    state = await described(calls, f"x-{topic}")
    assert state is not None
    assert state.transaction_state == "Ongoing"
    async with opened(f"x-{topic}"):
        assert await peer.offsets({tp: LATEST}, committed=True) == {tp: 2}


async def test_a_commit_that_is_not_answered_says_that_nobody_knows(
    calls: Calls, opened: OpenOwner, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(*_: object, **__: object) -> None:
        raise RequestTimedOut("no answer")

    async with opened(f"x-{topic}") as owner:
        await owner.begin_shared()
        with monkeypatch.context() as patch, pytest.raises(RequestTimedOut, match="no answer"):
            patch.setattr(SharedProducer, "coordinator", silent)
            await owner.commit(None)
        assert owner.shared is None
        await owner.begin_shared()


async def test_what_cannot_be_an_id_or_a_timeout(opened: OpenOwner) -> None:
    for name in ("", "\ud800", "x" * 40_000):
        for transaction in (name, SharedTransaction(name, 1, 1, 2, 1000)):
            with pytest.raises(InvalidRequest):
                async with opened(transaction):
                    pass
    with pytest.raises(InvalidTransactionTimeout, match="is not from 1 ms"):
        async with opened("x", 0):
            pass


@pytest.mark.one_in(2)
async def test_many_write_to_one_at_once(calls: Calls, opened: OpenOwner, peer: Peer, topic: str) -> None:
    tps = [TopicPartition(topic, number) for number in range(3)]
    async with opened(f"x-{topic}") as owner:
        shared = await owner.begin_shared()
        async with trio.open_nursery() as nursery:
            for tp in tps:
                nursery.start_soon(write, calls, shared, tp, *(b"%d" % number for number in range(20)))
        await owner.commit(dict.fromkeys(tps, 20))
    for tp in tps:
        await sees(peer, tp, *(b"%d" % number for number in range(20)))
