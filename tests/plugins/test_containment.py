"""System tasks of plugins end neither the run of trio nor the broker; an interrupt gets to the program whose it is."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import pytest
import trio

from leafcuttr.plugins.containment import Containment
from leafcuttr.plugins.loaded import Loaded, PluginState
from leafcuttr.plugins.origin import PluginOrigin
from leafcuttr.plugins.services.watchdog import LIMIT_S, STARTING_S
from leafcuttr.runtime.plugin_parts import Failures, Part, call, call_async
from support.waiting import eventually

ROUTE = Part("acme", "route /x")


@pytest.fixture
def containment() -> Containment:
    origin = PluginOrigin("/srv/acme", "leafcuttr-acme", "1.2")
    acme = Loaded("acme", origin, PluginState.ENABLED, "acme_package.plugin")
    return Containment([acme], Failures())


@pytest.fixture
def code() -> dict[str, Any]:
    """Code of the plugin's package."""
    names: dict[str, Any] = {"__name__": "acme_package.work", "trio": trio}
    exec(SOURCE, names)
    return names


SOURCE = """
async def task(error):
    await trio.lowlevel.checkpoint()
    raise error

def callback(error):
    raise error

async def spawn(error):
    trio.lowlevel.spawn_system_task(task, error)

def spawn_now(error):
    trio.lowlevel.spawn_system_task(task, error)
"""


def ways(code: dict[str, Any]) -> Iterator[tuple[str, Callable[[BaseException], Awaitable[object]]]]:
    """How a system task of a plugin comes to be."""
    task, token = code["task"], trio.lowlevel.current_trio_token()
    in_thread = partial(trio.from_thread.run_sync, code["spawn_now"])

    async def by_token(error: BaseException) -> None:
        token.run_sync_soon(code["callback"], error)

    async def without_owner(error: BaseException) -> None:
        trio.lowlevel.spawn_system_task(task, error)

    async def in_nursery(error: BaseException) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(code["spawn"], error)

    yield "an asynchronous part", partial(call_async, ROUTE, code["spawn"])
    yield "a synchronous part", partial(_awaited, partial(call, ROUTE, code["spawn_now"]))
    yield "a task of a part", partial(call_async, ROUTE, in_nursery)
    yield "a worker thread", partial(trio.to_thread.run_sync, in_thread)
    yield "nobody who is known", without_owner
    yield "a callback", by_token


async def _awaited(function: Callable[[BaseException], object], error: BaseException) -> None:
    function(error)


class Unreadable(Exception):
    @property
    def __traceback__(self) -> Any:  # type: ignore[override]
        raise SystemExit(3)

    __cause__ = __traceback__  # type: ignore[assignment]


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        SystemExit(3),
        StopIteration(),
        ExceptionGroup("g", [KeyError("id")]),
        Unreadable(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_what_a_system_task_raises_is_a_failure_of_the_plugin(
    error: BaseException,
    containment: Containment,
    code: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    with containment.active():
        for _, spawn in ways(code):
            containment._failures._repeats._said.clear()
            caplog.clear()
            await spawn(error)
            await eventually(lambda: len(caplog.messages) > 0, "the line")
            (line,) = caplog.messages
            assert line.startswith("plugin acme: system task ")
            assert " failed: " in line


async def test_a_part_of_it_is_known_within_a_system_task(containment: Containment) -> None:
    """So that it is named where it holds the loop, and what it spawns where that fails."""
    found: list[Part | None] = []

    async def task() -> None:
        from leafcuttr.runtime.plugin_parts import owner

        found.append(owner.get())

    with containment.active():
        call(ROUTE, trio.lowlevel.spawn_system_task, task)
        await eventually(lambda: bool(found), "the task")
    (part,) = found
    assert part is not None and part.plugin == "acme" and part.name.startswith("system task ")


def test_system_tasks_of_the_program_are_its_own(containment: Containment) -> None:
    async def main() -> None:
        async def task() -> None:
            raise ValueError("mine")

        with containment.active():
            trio.lowlevel.spawn_system_task(task)
            await trio.sleep_forever()

    with pytest.raises(trio.TrioInternalError):
        trio.run(main)


def test_system_tasks_of_the_broker_are_not_of_the_plugin_that_it_works_for(containment: Containment) -> None:
    names: dict[str, Any] = {"__name__": "leafcuttr.work", "trio": trio}
    exec(SOURCE, names)

    async def main() -> None:
        with containment.active():
            call(ROUTE, names["spawn_now"], ValueError("the broker's"))
            with trio.fail_after(60):
                await trio.sleep_forever()

    with pytest.raises(trio.TrioInternalError):
        trio.run(main)


def test_after_the_end_nothing_is_contained(containment: Containment, code: dict[str, Any]) -> None:
    async def main() -> None:
        with containment.active():
            pass
        call(ROUTE, trio.lowlevel.spawn_system_task, code["task"], ValueError("no"))
        await trio.sleep_forever()

    with pytest.raises(trio.TrioInternalError):
        trio.run(main)


@pytest.mark.parametrize("wrap", [lambda error: error, lambda error: BaseExceptionGroup("g", [error])])
async def test_an_interrupt_of_a_system_task_gets_to_the_program(
    wrap: Callable[[BaseException], BaseException], containment: Containment, code: dict[str, Any]
) -> None:
    with pytest.raises(KeyboardInterrupt), containment.active():
        call(ROUTE, code["spawn_now"], wrap(KeyboardInterrupt()))
        await trio.sleep_forever()


async def test_what_the_broker_raises_goes_on(containment: Containment) -> None:
    with pytest.raises(OSError, match="disk"), containment.active():
        raise OSError("disk")


async def test_starts_may_hold_the_loop_for_longer(containment: Containment) -> None:
    before = threading.active_count()
    with containment.active():
        assert containment.watchdog.limit_s == STARTING_S
        containment.started()
        assert containment.watchdog.limit_s == LIMIT_S
    await eventually(lambda: threading.active_count() <= before, "the thread to end")
