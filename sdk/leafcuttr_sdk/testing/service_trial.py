"""One run of the checks of a service, on the loop of a real broker: it is made and run as the broker's supervisor does
it, several times, so that what one run leaves behind is in the way of the next."""

import gc
import inspect
import time
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING, Final, cast

import trio

from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.testing import watch
from leafcuttr_sdk.testing.record_trial import takes_one
from leafcuttr_sdk.testing.report import Notes, Report

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker

PROMISES: Final = {
    "made": "it can be made, and made anew for each start",
    "called": "run is an async method that takes task_status",
    "starts": "it says by task_status.started() that it serves",
    "runs": "it runs until it is cancelled, and raises nothing meanwhile",
    "stops": "it ends soon after it is cancelled, also while it starts",
    "restarts": "it runs again, made anew in the same broker",
    "does not block": "it leaves the loop to others: no step of it is long",
    "leaves nothing": "it leaves no tasks, threads or open descriptors behind",
}
START_S: Final = 10.0
STOP_S: Final = 5.0
_RUNS: Final = 3
_STAYS_S: Final = 0.1
"""How long it is watched after it has said that it serves."""
_COUNTED: Final = ("tasks", "threads", "descriptors")

Run = Callable[..., Awaitable[None]]


class ServiceTrial:
    """`stuck` is told what there is to report when the service does not stop in time; `run` waits for it then."""

    def __init__(
        self,
        name: str,
        make: "Callable[[Broker], object]",
        broker: "Broker",
        stuck: Callable[[Report], None],
    ) -> None:
        self._make = make
        self._broker = broker
        self._stuck = stuck
        self.notes: Final = Notes("service", name, PROMISES)

    async def run(self) -> Report:
        """Check everything that can be checked."""
        counts: list[list[int]] = []
        slow: list[float] = []
        made: list[object] = []
        for number in range(_RUNS):
            service = self._new()
            method = self._method(service) if service is not None else None
            if method is None:
                return self.notes.report(["made"] if service is None else ["made", "called"])
            if any(service is other for other in made):
                self.notes.add("made", "what makes it returns the same object again: make a new one")
            made.append(service)
            steps = _Steps()
            if not await self._live(method, steps, number):
                return self.notes.report(name for name in PROMISES if number or name != "restarts")
            slow.append(steps.longest_s)
            del service, method
            made = made[-1:]
            counts.append(await _census())
        if min(slow) > watch.PATIENCE_S:
            self.notes.add(
                "does not block",
                f"each time it ran, one step of it took over {min(slow) * 1000:.0f} ms, and the whole broker waited: "
                "give long work to trio.to_thread.run_sync, and sleep with trio.sleep",
            )
        self._compare(counts)
        await self._stopped_at_once()
        return self.notes.report()

    def _new(self) -> object | None:
        try:
            service = self._make(self._broker)
        except Exception as error:
            self.notes.add("made", _why_not_made(self._make, error))
            return None
        if service is None:
            self.notes.add("made", "what makes it returned None: return the service")
        return service

    def _method(self, service: object) -> Run | None:
        method: object = getattr(service, "run", None)
        wrong = None
        if inspect.iscoroutine(service):
            service.close()
            wrong = "what makes it is an async function: write `def`, and do what has to wait in run"
        elif not callable(method):
            near = get_close_matches("run", [one for one in dir(service) if not one.startswith("_")], 1, 0.3)
            wrong = f"{type(service).__name__} has no method run" + (
                f" (is {near[0]} meant to be it?)" if near else ""
            )
        elif inspect.isasyncgenfunction(method) or inspect.isgeneratorfunction(method):
            wrong = "run is a generator: do not yield in it"
        elif not inspect.iscoroutinefunction(method):
            wrong = "run is no async function: write `async def run`"
        else:
            try:
                inspect.signature(method).bind(task_status=trio.TASK_STATUS_IGNORED)
            except TypeError as error:
                wrong = f"run cannot be called as run(task_status=...): {error}"
        if wrong is not None:
            self.notes.add("called", wrong)
            return None
        return cast("Run", method)

    async def _live(self, run: Run, steps: "_Steps", number: int) -> bool:
        """Start it, look at it for a moment, stop it. Whether all of that went well."""
        life = _Life(run)
        trio.lowlevel.add_instrument(steps)
        try:
            async with trio.open_nursery() as nursery:
                steps.root = trio.lowlevel.current_task()
                nursery.start_soon(life.run)
                with trio.move_on_after(START_S):
                    await life.started_or_ended.wait()
                if life.started and not life.ended.is_set():
                    with trio.move_on_after(_STAYS_S):
                        await life.ended.wait()
                self._judge_before_stop(life, number)
                await self._stop(life)
        finally:
            trio.lowlevel.remove_instrument(steps)
        return life.started and not life.early

    def _judge_before_stop(self, life: "_Life", number: int) -> None:
        life.early = life.ended.is_set()
        again = " when it was run again in the same broker" if number else ""
        check = "restarts" if number else ("runs" if life.started else "starts")
        if life.early:
            if life.error is not None:
                self.notes.add(check, f"run raised {_told(life.error)}{again}")
            elif life.started:
                self.notes.add(
                    check,
                    f"run returned{again}: it goes on until it is cancelled (await trio.sleep_forever())",
                )
            else:
                self.notes.add(check, f"run returned{again} without calling task_status.started()")
        elif not life.started:
            self.notes.add(
                check,
                f"it has not called task_status.started() after {START_S:.0f} s{again}: the broker is not ready before",
            )

    async def _stop(self, life: "_Life") -> None:
        if life.ended.is_set():
            return
        life.scope.cancel()
        with trio.move_on_after(STOP_S, shield=True):
            await life.ended.wait()
        if not life.ended.is_set():
            self.notes.add(
                "stops",
                f"it goes on {STOP_S:.0f} s after it was cancelled: let trio.Cancelled through (as `except Exception` "
                "does and `except BaseException` does not), and shield nothing that may wait for ever",
            )
            self._stuck(self.notes.report())
            await life.ended.wait()
        if life.error is not None:
            self.notes.add("stops", f"it raised {_told(life.error)} when it was cancelled")

    def _compare(self, counts: list[list[int]]) -> None:
        for at, what in enumerate(_COUNTED):
            least = min(after[at] - before[at] for before, after in pairwise(counts))
            if least > 0:
                self.notes.add(
                    "leaves nothing",
                    f"each time it was run and cancelled, {least} more {what if least > 1 else what[:-1]} "
                    f"{'were' if least > 1 else 'was'} left: close all in a `finally`, or use `async with`",
                )

    async def _stopped_at_once(self) -> None:
        """A broker that is stopped while it starts."""
        service = self._new()
        method = self._method(service) if service is not None else None
        if method is None:
            return
        life = _Life(method)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(life.run)
            await trio.lowlevel.checkpoint()
            await self._stop(life)


class _Life:
    """One run of a service, and how it went."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.scope = trio.CancelScope()
        self.started_or_ended = trio.Event()
        self.ended = trio.Event()
        self.started = False
        self.early = False
        self.error: BaseException | None = None
        self._returned = False

    async def run(self) -> None:
        try:
            with self.scope:
                async with trio.open_nursery() as nursery:
                    await nursery.start(self._to_its_end)
                    self.started = True
                    self.started_or_ended.set()
        except Exception as error:
            # One that returns before it has started is trio's RuntimeError.
            self.error = None if self._returned else error
        finally:
            self.started_or_ended.set()
            self.ended.set()

    async def _to_its_end(self, *, task_status: trio.TaskStatus[None]) -> None:
        await self._run(task_status=task_status)
        self._returned = True


class _Steps(trio.abc.Instrument):
    """The longest step of a task and of all that it has started."""

    def __init__(self) -> None:
        self.root: trio.lowlevel.Task | None = None
        self.longest_s = 0.0
        self._began: tuple[float, float, int] | None = None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if self._is_of_it(task):
            self._began = time.perf_counter(), time.thread_time(), watch.times_waited()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if self._began is None:
            return
        (began, worked, waited), self._began = self._began, None
        taken = time.perf_counter() - began
        # Not one that a busy machine has kept from going on: that neither works nor waits.
        if time.thread_time() - worked > watch.PATIENCE_S or watch.times_waited() > waited:
            self.longest_s = max(self.longest_s, taken)

    def _is_of_it(self, task: trio.lowlevel.Task) -> bool:
        nursery = task.parent_nursery
        while nursery is not None:
            if nursery.parent_task is self.root:
                return True
            nursery = nursery.parent_task.parent_nursery
        return False


async def _census() -> list[int]:
    """Tasks, threads and descriptors, once what is about to end has ended."""
    gc.collect()
    least = _counts()
    for _ in range(5):
        await trio.sleep(0.01)
        least = [min(both) for both in zip(least, _counts(), strict=True)]
    return least


def _counts() -> list[int]:
    return [
        trio.lowlevel.current_statistics().tasks_living,
        len(watch.threads()),
        watch.open_descriptors() or 0,
    ]


def _why_not_made(make: Callable[..., object], error: Exception) -> str:
    if isinstance(error, PluginError):
        return f"it refuses to be made: {error}"
    if isinstance(error, KeyError):
        return (
            f"it reads {error}, which is not declared: do so in leafcuttr_register_settings, and give the check the "
            "module of the plugin (plugin=...)"
        )
    if not takes_one(make):
        return f"it cannot be made with the broker as its one argument: {_told(error)}"
    return (
        f"to make it raised {_told(error)}: raise PluginError with one line that says what the person can do"
    )


def _told(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        inside = cast("tuple[BaseException, ...]", error.exceptions)  # pyright: ignore[reportUnknownMemberType]
        error = inside[0]
    text = str(error).partition("\n")[0][:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
