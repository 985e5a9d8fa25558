"""Batches that are sent without waiting: their order, their bound, and what is told of them. The appender is one whose
answers the test gives; a real one is behind it in test_peer.py and test_blocking_contract.py."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from leafcuttr.client.blocking.appending import Sending, open_sending
from leafcuttr.errors import BrokerError, MessageTooLarge, OutOfOrderSequence
from leafcuttr_sdk.records import Appended, NewBatch
from leafcuttr_sdk.types import TopicPartition
from support.remote_peers import new_batch

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
SIZE = len(new_batch(FIRST, b"a").batch)


class Held:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.calls: list[list[NewBatch]] = []
        self._answers: list[tuple[trio.Event, list[Appended | BrokerError]]] = []

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Held]:
        yield self

    async def append(self, batches: Sequence[NewBatch]) -> list[Appended | BrokerError]:
        self.calls.append(list(batches))
        event, answers = trio.Event(), list[Appended | BrokerError]()
        self._answers.append((event, answers))
        await event.wait()
        return answers

    def answer(self, call: int, *answers: Appended | BrokerError) -> None:
        event, found = self._answers[call]
        found.extend(answers)
        event.set()


@pytest.fixture
def held() -> Held:
    return Held()


@pytest.fixture
async def sending(held: Held) -> AsyncIterator[Sending]:
    async with open_sending(held.opened(), 2 * SIZE) as sending:
        yield sending


async def blocks(nursery: trio.Nursery, sending: Sending, *batches: NewBatch) -> trio.CancelScope:
    """A call of `send` that has not returned; its scope says when it has."""
    scope, returned = trio.CancelScope(), list[bool]()

    async def send() -> None:
        with scope:
            await sending.send(batches)
        returned.append(True)

    nursery.start_soon(send)
    await wait_all_tasks_blocked()
    assert not returned
    return scope


async def test_it_returns_at_once_in_the_order_of_the_calls(held: Held, sending: Sending) -> None:
    first, second = new_batch(FIRST, b"a"), new_batch(FIRST, b"b")
    await sending.send([first])
    await sending.send([second])
    assert held.calls == [[first], [second]]


async def test_above_the_bound_it_waits_for_an_answer(held: Held, sending: Sending) -> None:
    await sending.send([new_batch(FIRST, b"a")])
    await sending.send([new_batch(FIRST, b"b")])
    async with trio.open_nursery() as nursery:
        await blocks(nursery, sending, new_batch(FIRST, b"c"))
        held.answer(1, Appended(1, 1))
    assert len(held.calls) == 3


async def test_what_is_larger_than_the_bound_goes_alone(held: Held, sending: Sending) -> None:
    large = new_batch(FIRST, b"x" * 3 * SIZE)
    await sending.send([large])
    async with trio.open_nursery() as nursery:
        await blocks(nursery, sending, new_batch(FIRST, b"c"))
        held.answer(0, Appended(0, 0))


async def test_flush_waits_for_all_and_counts_records(held: Held, sending: Sending) -> None:
    await sending.send([new_batch(FIRST, b"a")])
    await sending.send([new_batch(SECOND, b"b")])
    counts: list[dict[TopicPartition, int]] = []

    async def flush() -> None:
        counts.append(await sending.flush())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(flush)
        held.answer(1, Appended(7, 7))
        await wait_all_tasks_blocked()
        assert not counts
        held.answer(0, Appended(0, 0))
    assert counts == [{FIRST: 1, SECOND: 1}]
    more = NewBatch(FIRST, new_batch(FIRST, b"c", b"d", b"e").batch)
    async with trio.open_nursery() as nursery:
        await sending.send([more])
        nursery.start_soon(flush)
        held.answer(2, Appended(-1, -1, duplicate=True))
    assert counts[1] == {FIRST: 4, SECOND: 1}


async def test_the_first_error_is_raised_by_all_that_comes_later(held: Held, sending: Sending) -> None:
    await sending.send([new_batch(FIRST, b"a"), new_batch(FIRST, b"b")])
    async with trio.open_nursery() as nursery:
        held.answer(0, MessageTooLarge("large"), OutOfOrderSequence("behind"))
        nursery.start_soon(wait_all_tasks_blocked)
    for _ in range(2):
        with pytest.raises(MessageTooLarge, match="large"):
            await sending.send([new_batch(FIRST, b"c")])
        with pytest.raises(MessageTooLarge, match="large"):
            await sending.flush()
    assert len(held.calls) == 1


async def test_an_error_ends_what_waits(held: Held, sending: Sending) -> None:
    await sending.send([new_batch(FIRST, b"a")])
    await sending.send([new_batch(FIRST, b"b")])
    raised: list[str] = []

    async def noted(call: object) -> None:
        try:
            await (sending.flush() if call == "flush" else sending.send([new_batch(FIRST, b"c")]))
        except MessageTooLarge as error:
            raised.append(str(error))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(noted, "flush")
        nursery.start_soon(noted, "send")
        await wait_all_tasks_blocked()
        held.answer(0, MessageTooLarge("large"))
    assert raised == ["large", "large"]


async def test_its_end_waits_for_nothing(held: Held) -> None:
    async with open_sending(held.opened(), SIZE) as sending:
        await sending.send([new_batch(FIRST, b"a")])
    assert len(held.calls) == 1
