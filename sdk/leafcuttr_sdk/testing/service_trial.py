"""One run of the checks of a service, on the loop of a real broker: it is made and run as the broker's supervisor does
it, several times, so that what one run leaves behind is in the way of the next."""

import gc
import inspect
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING, Final, cast

import trio

from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.testing import sending_trial, watch
from leafcuttr_sdk.testing.record_trial import takes_one
from leafcuttr_sdk.testing.report import Notes, Report, told
from leafcuttr_sdk.testing.serving_trial import CHECK, PROMISE, ServingTrial, plugged_of, try_listeners

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker

WAITS: Final = "waits for"
PROMISES: Final = {
    "made": "it can be made, and made anew for each start",
    "called": "run is an async method that takes task_status",
    "starts": "it says by task_status.started() that it serves",
    "runs": "it runs until it is cancelled, and raises nothing meanwhile",
    "stops": "it ends soon after it is cancelled, also while it starts",
    "restarts": "it runs again, made anew in the same broker",
    "does not block": "it leaves the loop to others: no step of it is long",
    "leaves nothing": "it leaves no tasks, threads, processes, descriptors and calls of on_change behind",
    WAITS: "what it says it waits for is one line, or None",
    CHECK: PROMISE,
    sending_trial.CHECK: sending_trial.PROMISE,
}
START_S: Final = 10.0
STOP_S: Final = 5.0
_RUNS: Final = 3
_STAYS_S: Final = 0.1
"""How long it is watched after it has said that it serves."""
_COUNTED: Final = {
    "task": "tasks",
    "thread": "threads",
    "descriptor": "descriptors",
    "process": "processes",
    "function that was given to on_change": "functions that were given to on_change",
}
"""What is counted after each run, one and several of it."""

_LACKS_NOTHING: Final = object()

Run = Callable[..., Awaitable[None]]


class ServiceTrial:
    """`stuck` is told what there is to report when the service does not stop in time; `run` waits for it then."""

    def __init__(
        self,
        name: str,
        make: "Callable[[Broker], object]",
        broker: "Broker",
        stuck: Callable[[Report], None],
        requests: Sequence[bytes] = (),
    ) -> None:
        self._make = make
        self._broker = broker
        self._stuck = stuck
        self._requests = requests
        self._registered = _Registered(broker.settings, broker.topics)
        self._says_what = False
        self.notes: Final = Notes("service", name, PROMISES)

    async def run(self) -> Report:
        """Check everything that can be checked."""
        counts: list[list[int]] = []
        slow: list[float] = []
        made: list[object] = []
        for number in range(_RUNS):
            # What it imports at its first start (a web framework) a broker has imported before it serves.
            with nullcontext() if number else plugged_of(self._broker).starting():
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
                self._look_what_it_waits_for(service)
            slow.append(steps.longest_s)
            del service, method
            made = made[-1:]
            counts.append(await self._census())
        if min(slow) > watch.PATIENCE_S:
            self.notes.add(
                "does not block",
                f"each time it ran, one step of it took over {min(slow) * 1000:.0f} ms, and the whole broker waited: "
                "give long work to trio.to_thread.run_sync, and sleep with trio.sleep",
            )
        self._compare(counts)
        await self._stopped_at_once()
        trials = await self._served()
        left_out = {
            WAITS: not self._says_what,
            CHECK: not trials,
            sending_trial.CHECK: not any(trial.sending.used for trial in trials),
        }
        return self.notes.report(name for name in PROMISES if not left_out.get(name))

    def _new(self) -> object | None:
        try:
            service = self._make(self._broker)
        except BaseException as error:
            if _is_cancelled(error):
                raise
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

    def _look_what_it_waits_for(self, service: object) -> None:
        """Which it need not have."""
        try:
            lacks: object = getattr(service, "waits_for", _LACKS_NOTHING)
        except BaseException as error:
            self._says_what = True
            self.notes.add(WAITS, f"waits_for raised {told(error)}: it says what is known, at any time")
            return
        if lacks is _LACKS_NOTHING:
            return
        self._says_what = True
        if lacks is not None and not isinstance(lacks, str):
            self.notes.add(WAITS, f"waits_for is {kind_of(lacks)}: it is one line of text, or None")
        elif lacks is not None and len(lacks.splitlines()) > 1:
            self.notes.add(WAITS, f"waits_for has several lines: it is one ({lacks.splitlines()[0]!r}...)")

    async def _served(self) -> list[ServingTrial]:
        """One more run, with clients that do badly, for each listener that it serves."""
        service = self._new()
        method = self._method(service) if service is not None else None
        if method is None:
            return []
        life = _Life(method)
        trials: list[ServingTrial] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(life.run)
            with trio.move_on_after(START_S):
                await life.started_or_ended.wait()
            if life.started and not life.ended.is_set():
                trials = await try_listeners(self._broker, self.notes, self._requests)
                if life.ended.is_set():
                    self.notes.add(
                        CHECK,
                        "run ended while clients did badly"
                        + (f": it raised {told(life.error)}" if life.error is not None else ""),
                    )
            await self._stop(life)
        for trial in trials:
            trial.close()
        return trials

    async def _live(self, run: Run, steps: "_Steps", number: int) -> bool:
        """Start it, watch it for a moment, stop it. Whether all of that went well."""
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
                self.notes.add(check, f"run raised {told(life.error)}{again}")
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
            self.notes.add("stops", f"it raised {told(life.error)} when it was cancelled")

    def _compare(self, counts: list[list[int]]) -> None:
        for at, (one, several) in enumerate(_COUNTED.items()):
            least = min(after[at] - before[at] for before, after in pairwise(counts))
            if least > 0:
                self.notes.add(
                    "leaves nothing",
                    f"each time it was run and cancelled, {least} more {several if least > 1 else one} "
                    f"{'were' if least > 1 else 'was'} left: close all in a `finally`, or use `async with`",
                )

    async def _census(self) -> list[int]:
        """What is counted, once what is about to end has ended."""
        gc.collect()
        least = self._counts()
        for _ in range(5):
            await trio.sleep(0.01)
            least = [min(both) for both in zip(least, self._counts(), strict=True)]
        return least

    def _counts(self) -> list[int]:
        return [
            trio.lowlevel.current_statistics().tasks_living,
            len(watch.threads()),
            watch.open_descriptors() or 0,
            len(watch.child_processes()),
            self._registered.count,
        ]

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
        except BaseException as error:
            # On this loop, which has no person at a terminal, also a KeyboardInterrupt is what the plugin raises.
            if _is_cancelled(error):
                raise
            # One that returns before it has started is trio's RuntimeError.
            self.error = None if self._returned else error
        finally:
            self.started_or_ended.set()
            self.ended.set()

    async def _to_its_end(self, *, task_status: trio.TaskStatus[None]) -> None:
        await self._run(task_status=task_status)
        self._returned = True


class _Registered:
    """Counts the functions that are registered by the `on_change` of these, and not taken back."""

    def __init__(self, *owners: object) -> None:
        self.count = 0
        for owner in owners:
            vars(owner)["on_change"] = self._counted(getattr(owner, "on_change"))  # noqa: B009 - of any class

    def _counted(
        self, register: Callable[[Callable[..., None]], Callable[[], None]]
    ) -> Callable[[Callable[..., None]], Callable[[], None]]:
        def on_change(call: Callable[..., None]) -> Callable[[], None]:
            end = register(call)
            self.count += 1
            ended = False

            def end_once() -> None:
                nonlocal ended
                end()
                self.count -= not ended
                ended = True

            return end_once

        return on_change


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


def _is_cancelled(error: BaseException) -> bool:
    """Whether it is trio's own, which is not kept."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return group.subgroup(trio.Cancelled) is not None
    return isinstance(error, trio.Cancelled)


def _why_not_made(make: Callable[..., object], error: BaseException) -> str:
    if isinstance(error, PluginError):
        return f"it refuses to be made: {error}"
    if isinstance(error, KeyError):
        return (
            f"it reads {error}, which is not declared: do so in leafcuttr_register_settings, and give the check the "
            "module of the plugin (plugin=...)"
        )
    if not takes_one(make):
        return f"it cannot be made with the broker as its one argument: {told(error)}"
    return f"making it raised {told(error)}: raise PluginError with one line that says what the person can do"
