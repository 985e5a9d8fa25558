"""A service that holds the loop is named, with its stack, while it does; the broker's own work is not; looking costs
an idle loop next to nothing. The clock is the real one: what is watched over is real time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio

from leafcuttr.plugins.services.order import Planned
from leafcuttr.plugins.services.supervisor import Supervisor
from leafcuttr.plugins.services.watchdog import LOOK_S, Watchdog
from leafcuttr_sdk import ServiceSpec

NO_BROKER: Any = None


def hold_the_loop(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.005)


def compute_without_a_break(seconds: float) -> None:
    """In C, with the interpreter's lock held: no other thread runs meanwhile."""
    size = 1 << 20
    while True:
        began = time.monotonic()
        sum(range(size))
        if time.monotonic() - began > seconds:
            return
        size *= 2


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
        await trio.sleep(2 * LOOK_S)  # the thread's next look


def supervised(holder: Holder, name: str = "web") -> Supervisor:
    return Supervisor([Planned("acme", ServiceSpec(name, lambda _: holder), NO_BROKER)])


@contextmanager
def warnings(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    found: list[str] = []
    with caplog.at_level(logging.WARNING, logger="leafcuttr"):
        yield found
    found += [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("act", [lambda: hold_the_loop(0.4), lambda: compute_without_a_break(0.4)])
async def test_who_holds_the_loop_is_named_with_its_stack(
    act: Callable[[], None], caplog: pytest.LogCaptureFixture
) -> None:
    holder = Holder(act)
    with warnings(caplog) as found:
        async with (supervisor := supervised(holder)).running():
            await holder.now()
            await holder.now()
            assert supervisor.services[0].blocks == 2
    (line,) = found  # one a minute
    assert line.startswith("the service web of plugin acme has held the event loop for over 100 ms, ")
    assert "test_watchdog.py:" in line and " in hold" in line


async def test_it_is_told_while_it_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    told_after: list[float] = []

    def hold_until_told() -> None:
        began = time.monotonic()
        while not caplog.records and time.monotonic() - began < 30:
            time.sleep(0.005)
        told_after.append(time.monotonic() - began)

    holder = Holder(hold_until_told)
    async with supervised(holder).running():
        await holder.now()
    assert caplog.records and 0.07 < told_after[0] < 30


@pytest.mark.parametrize("module", ["leafcuttr.handlers", "acme_plugin.filters"])
async def test_code_outside_services_is_told_by_its_plugin(
    module: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A filter in the path of a client's request, say. The broker's own work is not told."""
    holder = Holder(lambda: None)

    def make(_: Any) -> Holder:
        return holder

    make.__module__ = "acme_plugin.services"
    with warnings(caplog) as found:
        async with Supervisor([Planned("acme", ServiceSpec("web", make), NO_BROKER)]).running():
            await trio.sleep(0)
            exec("hold(0.4)", {"hold": hold_the_loop, "__name__": module})
            await trio.sleep(2 * LOOK_S)
    start = "the plugin acme, called by the broker, has held the event loop for over 100 ms"
    assert [line[: len(start)] for line in found] == ([start] if module.startswith("acme") else [])


async def test_an_idle_loop_wakes_nobody() -> None:
    supervisor = supervised(Holder(lambda: None))
    watchdog = Watchdog(supervisor.services)
    watchdog.start()
    try:
        await trio.sleep(2 * LOOK_S)
        before = watchdog.looks
        await trio.sleep(1.5)
        assert watchdog.looks - before <= 3
    finally:
        watchdog.stop()
