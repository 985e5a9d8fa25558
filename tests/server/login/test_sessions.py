"""When a session ends, and which connections are cut."""

from __future__ import annotations

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from leafcuttr.runtime.clock import SystemClock
from leafcuttr.server.login.sessions import Sessions
from support.logs import HandClock


class Client:
    """A connection, and what has become of it."""

    def __init__(self, descriptor: int, ends: float | None = None) -> None:
        self.descriptor = descriptor
        self.listener = "IN"
        self.session_ends = ends
        self.seen: list[str] = []

    def end_session(self) -> None:
        self.seen.append("ended")

    def stop(self) -> None:
        self.seen.append("stopped")

    def abort(self) -> None:
        self.seen.append("aborted")


async def test_each_ends_at_its_time(autojump_clock: MockClock) -> None:
    sessions = Sessions(SystemClock())
    late, early, never = Client(1, trio.current_time() + 9), Client(2, trio.current_time() + 5), Client(3)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sessions.run)
        await wait_all_tasks_blocked()
        for each in (late, early, never):
            sessions.begin(each)
        await trio.sleep(4.99)
        assert (late.seen, early.seen) == ([], [])
        await trio.sleep(0.02)
        assert (late.seen, early.seen) == ([], ["ended"])
        await trio.sleep(100)
        assert (late.seen, early.seen, never.seen) == (["ended"], ["ended"], [])
        nursery.cancel_scope.cancel()


async def test_a_later_log_in_is_a_later_end(autojump_clock: MockClock) -> None:
    sessions, began = Sessions(SystemClock()), trio.current_time()
    client = Client(1, began + 5)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sessions.run)
        sessions.begin(client)
        await trio.sleep(4)
        client.session_ends = began + 9
        sessions.begin_again(client)
        await trio.sleep(4.9)
        assert not client.seen
        await trio.sleep(0.2)
        assert client.seen == ["ended"]
        nursery.cancel_scope.cancel()


async def test_a_clock_that_is_moved_is_noticed(autojump_clock: MockClock) -> None:
    clock = HandClock()
    sessions, client = Sessions(clock), Client(1, clock.monotonic() + 3600)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sessions.run)
        sessions.begin(client)
        await trio.sleep(10)
        assert not client.seen
        clock.ms += 3_600_000
        await trio.sleep(1.1)
        assert client.seen == ["ended"]
        nursery.cancel_scope.cancel()


async def test_what_is_withdrawn_ends_at_once_and_is_cut_soon(autojump_clock: MockClock) -> None:
    """Within the second that docs/how-to/log-in.md promises."""
    sessions = Sessions(HandClock())
    quick, slow = Client(1), Client(2)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sessions.run)
        await wait_all_tasks_blocked()
        for each in (quick, slow, slow):
            sessions.withdraw(each)
        assert (quick.seen, slow.seen) == (["stopped"], ["stopped"])
        await trio.sleep(0.4)
        sessions.forget(quick)
        await trio.sleep(0.2)
        assert (quick.seen, slow.seen) == (["stopped"], ["stopped", "aborted"])
        await trio.sleep(10)
        assert slow.seen == ["stopped", "aborted"]
        nursery.cancel_scope.cancel()


async def test_one_that_has_gone_is_forgotten(autojump_clock: MockClock) -> None:
    sessions = Sessions(SystemClock())
    gone, next_one = Client(1, trio.current_time() + 5), Client(1, trio.current_time() + 50)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(sessions.run)
        sessions.begin(gone)
        sessions.forget(gone)
        sessions.begin(next_one)
        await trio.sleep(10)
        assert (gone.seen, next_one.seen) == ([], [])
        nursery.cancel_scope.cancel()


async def test_what_is_counted() -> None:
    sessions, client = Sessions(HandClock()), Client(1)
    sessions.begin(client)
    sessions.begin_again(client)
    sessions.begin_again(client)
    assert (sessions.begun, sessions.begun_again) == ({"IN": 1}, {"IN": 2})
