"""A part of a plugin that holds the loop is named, with its stack, while it does; the broker's own work is not;
checking costs an idle loop next to nothing.

What is watched over is real time. The loop is held until the watchdog has checked so often, or has told: a busy machine
makes that later, and changes nothing else.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio

from leafcuttr.plugins.services.order import Planned
from leafcuttr.plugins.services.supervisor import Supervisor
from leafcuttr.plugins.services.watchdog import CHECK_S, LIMIT_S, Watchdog
from leafcuttr.runtime.plugin_parts import Part, call, call_async
from leafcuttr_sdk import ServiceSpec
from support.waiting import eventually, until

NO_BROKER: Any = None


CHECKS = round(2 * LIMIT_S / CHECK_S)
"""Each counts for CHECK_S at least: after so many of one step the watchdog has told of it, or will not."""


@pytest.fixture
async def watchdog() -> AsyncIterator[Watchdog]:
    """The one that watches over this loop."""
    watchdog = Watchdog({"acme_plugin": "acme"})
    watchdog.start()
    yield watchdog
    watchdog.stop()


def hold_the_loop(watchdog: Watchdog, checks: int = CHECKS) -> None:
    enough = watchdog.checks + checks
    until(lambda: watchdog.checks >= enough, "the watchdog's checks")


def compute_without_a_break(watchdog: Watchdog) -> None:
    """In C, with the interpreter's lock held: no other thread runs meanwhile, and one check has to be enough."""
    began, size = time.thread_time(), 1 << 19
    sum(range(size))
    size = round(size * 2.5 * LIMIT_S / (time.thread_time() - began))
    hold_the_loop(watchdog, 1)
    sum(range(size))
    hold_the_loop(watchdog, 1)


class Holder:
    """Holds the loop by `act` whenever it is told to, in a task of its own."""

    def __init__(self, act: Callable[[], None]) -> None:
        self.act = act
        self.send, self.receive = trio.open_memory_channel[None](0)
        self.done = trio.Event()

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.hold)
            task_status.started()

    async def hold(self) -> None:
        async for _ in self.receive:
            self.act()
            self.done.set()

    async def now(self) -> None:
        self.done = trio.Event()
        await self.send.send(None)
        with trio.fail_after(60):
            await self.done.wait()


def supervised(holder: Holder, name: str = "web") -> Supervisor:
    return Supervisor([Planned("acme", ServiceSpec(name, lambda _: holder), NO_BROKER)])


@contextmanager
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    found: list[str] = []
    with caplog.at_level(logging.WARNING, logger="leafcuttr"):
        yield found
    found += [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("act", [hold_the_loop, compute_without_a_break])
async def test_a_service_that_holds_the_loop_is_named_with_its_stack(
    act: Callable[[Watchdog], None], watchdog: Watchdog, caplog: pytest.LogCaptureFixture
) -> None:
    """The task of a nursery of the service."""
    holder = Holder(lambda: act(watchdog))
    part = Part("acme", "service web")
    with warnings(caplog) as found:
        async with supervised(holder).running():
            for times in (1, 2):
                await holder.now()
                await eventually(lambda times=times: watchdog.holds[part] == times, "the watchdog to tell")
    (line,) = found  # one a minute
    assert line.startswith("the service web of plugin acme has held the event loop for over 100 ms, ")
    assert "test_watchdog.py:" in line and " in hold" in line


async def test_it_is_told_while_it_goes_on(watchdog: Watchdog, caplog: pytest.LogCaptureFixture) -> None:
    told_after: list[float] = []

    def hold_until_told() -> None:
        began = time.monotonic()
        until(lambda: bool(caplog.records), "the warning", pause=0.005)
        told_after.append(time.monotonic() - began)

    holder = Holder(hold_until_told)
    async with supervised(holder).running():
        await holder.now()
    # The step may have begun right after a check, which comes every 25 ms, or on a busy machine later.
    assert told_after[0] > LIMIT_S - 2 * CHECK_S


@pytest.mark.parametrize("module", ["leafcuttr.handlers", "acme_plugin.filters"])
async def test_code_outside_of_calls_is_told_by_its_plugin(
    module: str, watchdog: Watchdog, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker's own work is not told."""
    with warnings(caplog) as found:
        exec("hold(watchdog)", {"hold": hold_the_loop, "watchdog": watchdog, "__name__": module})
    start = "the code of plugin acme has held the event loop for over 100 ms"
    assert [line[: len(start)] for line in found] == ([start] if module.startswith("acme") else [])


async def test_the_innermost_part_that_is_called_is_told(
    watchdog: Watchdog, caplog: pytest.LogCaptureFixture
) -> None:
    """A route of one plugin that produces to a topic with a filter of another."""
    route, record_filter = Part("acme", "route /x"), Part("other", "record filter mask of topic t")

    async def handle() -> None:
        await trio.lowlevel.checkpoint()
        call(record_filter, hold_the_loop, watchdog)
        await trio.lowlevel.checkpoint()
        hold_the_loop(watchdog)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)

    async def child() -> None:
        hold_the_loop(watchdog)

    with warnings(caplog) as found:
        await call_async(route, handle)
        await trio.lowlevel.checkpoint()
        hold_the_loop(watchdog)  # of nobody
    assert [line.partition(" has held ")[0] for line in found] == [f"the {record_filter}", f"the {route}"]
    assert (watchdog.holds[record_filter], watchdog.holds[route]) == (1, 2)


async def test_a_line_says_how_many_there_were_since_the_one_before(
    watchdog: Watchdog, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = Part("acme", "route /x")
    monkeypatch.setattr(watchdog._repeats, "count", {part: " (7 more since the last line)"}.get)
    with warnings(caplog) as found:
        call(part, hold_the_loop, watchdog)
    (line,) = found
    assert line.endswith(" (7 more since the last line)")


async def test_until_the_broker_serves_a_part_may_take_longer(
    watchdog: Watchdog, caplog: pytest.LogCaptureFixture
) -> None:
    watchdog.limit_s = 60
    with warnings(caplog) as found:
        call(Part("acme", "service web"), hold_the_loop, watchdog)
    assert found == []


async def test_an_idle_loop_does_not_wake_the_watchdog(watchdog: Watchdog) -> None:
    await trio.sleep(2 * CHECK_S)
    before = watchdog.checks
    await trio.sleep(20 * CHECK_S)  # what is tested is that nothing happens while time passes
    assert watchdog.checks - before <= 3
