"""What calls into plugins and does not end when it is cancelled is left behind, and its parts are named."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from leafcuttr.runtime.apart import STOP_S, run_apart
from leafcuttr.runtime.plugin_parts import Part, call_async

ROUTE = Part("acme", "route /x")


async def test_what_ends_is_waited_for() -> None:
    done: list[str] = []

    async def work() -> None:
        try:
            await trio.lowlevel.checkpoint()
            done.append("work")
            await trio.sleep_forever()
        finally:
            done.append("end")

    left: list[list[Part]] = []
    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_apart, work, "work", left.append)
            await trio.testing.wait_all_tasks_blocked()
            scope.cancel()
    assert (done, left) == (["work", "end"], [])


@pytest.mark.parametrize("error", [OSError("disk"), KeyboardInterrupt(), SystemExit(3)])
async def test_what_it_raises_is_raised(error: BaseException) -> None:
    async def work() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        await run_apart(work, "work", lambda _: None)
    assert caught.value is error


async def test_what_it_raises_when_it_is_cancelled_is_raised() -> None:
    async def work() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        with trio.move_on_after(0):
            await run_apart(work, "work", lambda _: None)


async def test_what_does_not_end_is_left_and_its_parts_are_named(autojump_clock: MockClock) -> None:
    go = trio.Event()

    async def stubborn() -> None:
        with trio.CancelScope(shield=True):
            await go.wait()

    async def work() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call_async, ROUTE, stubborn)
            nursery.start_soon(call_async, ROUTE, stubborn)
            nursery.start_soon(trio.sleep_forever)

    left: list[list[Part]] = []
    began = trio.current_time()
    with trio.move_on_after(10) as scope:
        await run_apart(work, "work", left.append)
    assert scope.cancelled_caught
    assert left == [[ROUTE]]
    assert trio.current_time() - began == pytest.approx(10 + STOP_S)
    go.set()
