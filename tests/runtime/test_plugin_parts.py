"""Calls into parts of plugins: what is their failure, and what goes on."""

from __future__ import annotations

import gc
import logging
import signal
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn

import pytest
import trio
import trio.testing

from leafcuttr.runtime.frames import outward
from leafcuttr.runtime.plugin_parts import (
    Failures,
    Part,
    PartError,
    call,
    call_async,
    interrupts_are_failures,
    owner,
    part_in,
)
from leafcuttr_sdk import PluginError

PART = Part("acme", "health check disk")
OTHER = Part("other", "record filter mask of topic t")
CONTAINED: list[Callable[[], BaseException]] = [
    lambda: ValueError("no"),
    lambda: SystemExit(3),
    lambda: StopIteration(1),
    StopAsyncIteration,
    GeneratorExit,
    lambda: BaseExceptionGroup("both", [SystemExit(1), ValueError("no")]),
    MemoryError,
]


def throw(error: BaseException) -> NoReturn:
    raise error


async def throw_async(error: BaseException) -> NoReturn:
    await trio.lowlevel.checkpoint()
    raise error


def test_what_a_part_returns() -> None:
    assert call(PART, int, "12", base=8) == 10


@pytest.mark.parametrize("make", CONTAINED)
def test_whatever_a_part_raises_is_its_failure(make: Callable[[], BaseException]) -> None:
    with pytest.raises(PartError) as caught:
        call(PART, throw, make())
    assert caught.value.part == PART
    assert str(caught.value).startswith("plugin acme: health check disk failed: ")
    assert caught.value.__cause__ is caught.value.cause is not None


@pytest.mark.parametrize("make", CONTAINED)
async def test_whatever_an_asynchronous_part_raises_is_its_failure(
    make: Callable[[], BaseException],
) -> None:
    if isinstance(make(), StopIteration | StopAsyncIteration):
        pytest.skip("Python makes RuntimeError of it")
    with pytest.raises(PartError):
        await call_async(PART, throw_async, make())


def test_an_error_of_a_part_that_it_called_names_that_one() -> None:
    with pytest.raises(PartError) as caught:
        call(PART, call, OTHER, throw, ValueError("no"))
    assert caught.value.part == OTHER
    with pytest.raises(PartError) as caught:
        call(PART, throw, ExceptionGroup("a nursery", [PartError(OTHER, "it returned")]))
    assert str(caught.value) == "plugin other: record filter mask of topic t failed: it returned"


class Unsplit(BaseExceptionGroup[BaseException]):
    def split(self, *_: Any) -> NoReturn:
        raise OSError("no")


def test_an_interrupt_in_a_group_that_cannot_be_split_goes_on() -> None:
    interrupt = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt) as caught:
        call(PART, throw, Unsplit("g", [ValueError("x"), interrupt]))
    assert caught.value is interrupt


def test_what_is_known_of_a_failure() -> None:
    failed = PartError.of(PART, OSError("no disk"))
    assert (failed.kind, failed.words, failed.brief, failed.is_said) == (
        "OSError", "no disk", "OSError: no disk", False,
    )  # fmt: skip
    said = PartError.of(PART, PluginError("install it"))
    assert (said.why, said.is_said) == ("install it", True)
    other = PartError(PART, "it returned None", at="record 3")
    assert str(other) == "plugin acme: health check disk failed at record 3: it returned None"
    assert (other.brief, other.words, other.is_said) == ("it returned None", "it returned None", False)


# What goes on


async def test_a_cancellation_goes_on(autojump_clock: trio.testing.MockClock) -> None:
    with trio.move_on_after(1) as scope:
        await call_async(PART, trio.sleep_forever)
    assert scope.cancelled_caught


async def test_a_cancellation_goes_on_without_what_came_with_it(
    autojump_clock: trio.testing.MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def part() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise BaseExceptionGroup("as it ends", [SystemExit(3), *_cancelled()])

    def _cancelled() -> list[BaseException]:
        error = sys.exc_info()[1]
        return [error] if error else []

    with trio.move_on_after(1) as scope:
        await call_async(PART, part)
    assert scope.cancelled_caught
    (line,) = caplog.messages
    assert line == "plugin acme: health check disk failed: SystemExit: 3"


async def test_a_cancellation_that_is_over_is_a_failure() -> None:
    """There is no scope any more that would catch it: it would end the whole program."""
    kept: list[trio.Cancelled] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as error:
            kept.append(error)
            raise
    raised: BaseException | None = None
    try:
        call(PART, throw, kept[0])
    except BaseException as error:  # the test's own nursery would take a Cancelled in silence
        raised = error
    assert isinstance(raised, PartError) and raised.kind == "Cancelled"


async def test_a_cancellation_goes_on_in_a_worker_thread() -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        await trio.to_thread.run_sync(call, PART, trio.from_thread.check_cancelled, abandon_on_cancel=False)
    assert scope.cancelled_caught


@pytest.mark.parametrize("wrap", [lambda error: error, lambda error: BaseExceptionGroup("g", [error])])
def test_an_interrupt_is_the_programs(wrap: Callable[[BaseException], BaseException]) -> None:
    with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)) as caught:
        call(PART, throw, wrap(KeyboardInterrupt()))
    assert not isinstance(caught.value, PartError)


@pytest.fixture
def sigint_is_received(monkeypatch: pytest.MonkeyPatch) -> None:
    """As within `trio.open_signal_receiver`."""
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)


@pytest.mark.usefixtures("sigint_is_received")
@pytest.mark.parametrize("wrap", [lambda error: error, lambda error: BaseExceptionGroup("g", [error])])
def test_where_sigint_is_received_an_interrupt_is_a_failure(
    wrap: Callable[[BaseException], BaseException],
) -> None:
    with interrupts_are_failures(), pytest.raises(PartError, match="KeyboardInterrupt"):
        call(PART, throw, wrap(KeyboardInterrupt()))
    with pytest.raises((KeyboardInterrupt, BaseExceptionGroup)):
        call(PART, throw, wrap(KeyboardInterrupt()))


def test_ctrl_c_goes_on_where_python_raises_it() -> None:
    """In the main thread, before a receiver is there; another thread never gets Ctrl-C."""
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    found: list[BaseException] = []

    def in_thread() -> None:
        try:
            call(PART, throw, KeyboardInterrupt())
        except BaseException as error:
            found.append(error)

    with interrupts_are_failures():
        with pytest.raises(KeyboardInterrupt):
            call(PART, throw, KeyboardInterrupt())
        thread = threading.Thread(target=in_thread)
        thread.start()
        thread.join()
    assert [type(error) for error in found] == [PartError]


# Which part it is


async def test_the_tasks_of_a_part_are_known() -> None:
    found: list[Part | None] = []

    async def note() -> None:
        found.append(owner.get())

    async def part() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(note)
        await call_async(OTHER, note)
        await note()

    await call_async(PART, part)
    await note()
    assert found == [PART, OTHER, PART, None]


def frames() -> Any:
    return part_in(outward(sys._getframe(1)))


async def test_the_part_in_frames_is_the_innermost_one() -> None:
    async def part() -> Part | None:
        await trio.lowlevel.checkpoint()
        found: Part | None = frames()
        return found

    assert frames() is None
    assert call(PART, call, OTHER, frames) == OTHER
    assert await call_async(PART, part) == PART


# The log


def test_repeats_are_counted_for_each_part_and_type(caplog: pytest.LogCaptureFixture) -> None:
    tell = Failures()
    for _ in range(3):
        for part in (PART, OTHER):
            tell(PartError.of(part, ValueError("no")))
        tell(PartError.of(PART, OSError("of another kind")))
    assert caplog.messages == [
        "plugin acme: health check disk failed: ValueError: no",
        "plugin other: record filter mask of topic t failed: ValueError: no",
        "plugin acme: health check disk failed: OSError: of another kind",
    ]


def test_a_later_line_says_how_many_there_were(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tell, failed = Failures(), PartError.of(PART, ValueError("no"))
    ends = iter(["", None, " (1 more since the last line)"])
    monkeypatch.setattr(tell._repeats, "count", lambda _: next(ends))
    for _ in range(3):
        tell(failed)
    assert caplog.messages == [str(failed), f"{failed} (1 more since the last line)"]


@pytest.mark.parametrize("words", ["short", "x" * 100_000_000])
def test_the_traceback_is_logged_at_debug_level_and_never_a_long_text(
    words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(PartError) as caught:
        call(PART, partial(throw, ValueError(words)))
    with caplog.at_level(logging.DEBUG):
        Failures()(caught.value)
    line, details = caplog.records
    assert len(line.getMessage()) < 2000
    text = logging.Formatter().format(details)
    assert "in throw" in text and len(text) < 10_000


async def test_a_failure_leaves_no_cycle() -> None:
    """What is in the frames below would stay until the collector comes, which a broker hardly ever calls."""

    class Held:
        pass

    held: list[weakref.ref[Held]] = []

    def fails() -> None:
        kept = Held()
        held.append(weakref.ref(kept))
        raise ValueError("no")

    async def fails_too() -> None:
        fails()

    gc.disable()
    try:
        with suppress(PartError):
            call(PART, fails)
        with suppress(PartError):
            await call_async(PART, fails_too)
        assert [one() for one in held] == [None, None]
    finally:
        gc.enable()
