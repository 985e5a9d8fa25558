"""Who is called when a delayed answer is notified. Fetches that wait: `test_fetch_wait`; connections:
`tests/server/test_connection_delayed.py`."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import trio
import trio.testing

from leafcuttr.handlers.delayed import DelayedAnswer


class Counting(DelayedAnswer):
    """Is there once it is over."""

    closed = 0

    def answer(self) -> str | None:
        self._notified = False
        return "what there is" if self.over else None

    def close(self) -> None:
        self.closed += 1

    def __await__(self) -> Generator[Any, Any, str]:
        return self._wait().__await__()

    async def _wait(self) -> str:
        while (found := self.answer()) is None:
            await self._notification()
        return found


async def test_it_is_called_once(autojump_clock: trio.testing.MockClock) -> None:
    delayed, called = Counting(5.0), list[str]()
    assert delayed.deadline == trio.current_time() + 5
    delayed.when_notified(lambda: called.append("first"))
    assert called == []
    for _ in range(2):
        delayed.notify()
        assert called == ["first"]


async def test_it_is_called_at_once_where_something_came_since_the_last_look() -> None:
    delayed, called = Counting(5.0), list[str]()
    delayed.notify()
    delayed.when_notified(lambda: called.append("at once"))
    assert called == ["at once"]
    assert delayed.answer() is None
    delayed.when_notified(lambda: called.append("later"))
    assert called == ["at once"]


async def test_the_last_one_that_asks_is_called() -> None:
    delayed, called = Counting(5.0), list[str]()
    delayed.when_notified(lambda: called.append("before"))
    delayed.when_notified(lambda: called.append("after"))
    delayed.notify()
    assert called == ["after"]


async def test_a_task_waits_until_it_is_given_up(autojump_clock: trio.testing.MockClock) -> None:
    delayed = Counting(5.0)
    async with trio.open_nursery() as nursery:

        async def others() -> None:
            for _ in range(3):
                await trio.sleep(1)
                delayed.notify()
            await trio.sleep(1)
            delayed.give_up()

        nursery.start_soon(others)
        began = trio.current_time()
        assert await delayed == "what there is"
        assert trio.current_time() - began == 4
