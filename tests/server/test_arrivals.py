"""Sockets of clients that are not served yet: a few of them are readable in one turn of the loop."""

from __future__ import annotations

import errno
import gc
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from math import inf
from pathlib import Path

import pytest
import trio

from leafcuttr.server import arrivals
from leafcuttr.server.arrivals import extended, wait_for_arrival
from support.waiting import within

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pairs() -> Iterator[list[Pair]]:
    with ExitStack() as stack:
        found = [socket.socketpair() for _ in range(5 * arrivals._AT_ONCE)]
        for pair in found:
            for each in pair:
                stack.enter_context(each)
        yield found


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def wait_for_all(pairs: list[Pair], came: list[int], until: float = inf) -> None:
    async def wait(number: int, descriptor: int) -> None:
        await wait_for_arrival(descriptor, until)
        came.append(number)

    async with trio.open_nursery() as nursery:
        for number, (ours, _) in enumerate(pairs):
            nursery.start_soon(wait, number, ours.fileno())


async def test_a_few_go_on_in_each_turn(pairs: list[Pair]) -> None:
    came: list[int] = []
    before = 0
    with within(60, "all of them"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_for_all, pairs, came)
            await trio.testing.wait_all_tasks_blocked()
            assert not came
            for _, theirs in pairs:
                theirs.send(b"x")
            while len(came) < len(pairs):
                await trio.lowlevel.checkpoint()
                # Those of one turn, and of a part of the next: the order within a turn is any.
                assert len(came) - before <= 2 * arrivals._AT_ONCE
                before = len(came)
    assert sorted(came) == list(range(len(pairs)))


async def test_the_end_of_a_stream_is_one(pairs: list[Pair]) -> None:
    (ours, theirs), *_ = pairs
    theirs.close()
    with within(60, "the end"):
        await wait_for_arrival(ours.fileno())
    assert ours.recv(1) == b""


async def test_one_that_is_cancelled_waits_no_more_and_may_wait_again(pairs: list[Pair]) -> None:
    (ours, theirs), (other, _), *_ = pairs
    with trio.CancelScope() as scope:
        scope.cancel()
        await wait_for_arrival(ours.fileno())
    assert scope.cancelled_caught
    theirs.send(b"x")
    with within(60, "what has come"):
        await wait_for_arrival(ours.fileno())
    with trio.move_on_after(0.01) as late:
        await wait_for_arrival(other.fileno())
    assert late.cancelled_caught


async def test_one_that_does_not_come_in_time(
    pairs: list[Pair], autojump_clock: trio.testing.MockClock
) -> None:
    began = trio.current_time()
    with pytest.raises(trio.TooSlowError):
        await wait_for_arrival(pairs[0][0].fileno(), began + 5)
    assert trio.current_time() - began == pytest.approx(5)
    with pytest.raises(trio.TooSlowError):
        await wait_for_arrival(pairs[0][0].fileno(), began + 5)
    assert trio.current_time() - began == pytest.approx(5)
    # An answer has a moment, also of one whose time is over.
    with pytest.raises(trio.TooSlowError):
        await wait_for_arrival(pairs[0][0].fileno(), extended(began + 5))
    assert trio.current_time() - began == pytest.approx(6)


async def test_those_that_have_come_are_not_late_however_long_their_turn_takes(
    pairs: list[Pair], mock_clock: trio.testing.MockClock
) -> None:
    """And still a few go on in each turn."""
    came: list[int] = []
    before = 0
    for _, theirs in pairs:
        theirs.send(b"x")
    with within(60, "all of them"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_for_all, pairs, came, mock_clock.current_time() + 5)
            while len(came) < len(pairs):
                await trio.lowlevel.checkpoint()
                assert len(came) - before <= 2 * arrivals._AT_ONCE
                before = len(came)
                mock_clock.jump(6)
    assert sorted(came) == list(range(len(pairs)))


async def test_it_keeps_no_descriptor_while_none_waits(pairs: list[Pair]) -> None:
    gc.collect()  # what tests before this one have left is closed now, and not in the middle
    before = descriptors()
    with trio.CancelScope() as scope:
        scope.cancel()
        await wait_for_arrival(pairs[0][0].fileno())
    for _, theirs in pairs:
        theirs.send(b"x")
    with within(60, "all of them"):
        await wait_for_all(pairs[1:], [])
    await trio.testing.wait_all_tasks_blocked()
    assert descriptors() == before


async def test_without_a_descriptor_each_waits_by_itself(
    pairs: list[Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> select.epoll:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(arrivals.select, "epoll", none)
    for _, theirs in pairs[1:]:
        theirs.send(b"x")
    with within(60, "all but the first"):
        await wait_for_all(pairs[1:], [])
    with trio.move_on_after(0.01) as late:
        await wait_for_arrival(pairs[0][0].fileno())
    assert late.cancelled_caught


async def test_what_comes_for_one_that_was_cancelled_wakes_nobody(pairs: list[Pair]) -> None:
    (one, to_one), (other, to_other), *_ = pairs
    with within(60, "what has come for the other"):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_for_arrival, other.fileno())
            with trio.CancelScope() as scope:
                scope.cancel()
                await wait_for_arrival(one.fileno())
            to_one.send(b"x")
            await trio.testing.wait_all_tasks_blocked()
            to_other.send(b"x")
