"""Names services that hold the event loop for too long, while they hold it.

The loop runs one turn after the other: it waits for I/O, then gives each task that can go on one step. A thread looks
every 25 ms which step is being taken, and once it has been the same one for 100 ms, its stack is a warning. While the
loop waits for I/O the thread is parked: an idle broker wakes it a few times a second (`tests/plugins/test_watchdog.py`
counts).

Only trio's public parts are used: an instrument tells of the turns; a step is known by the frame of its task's
coroutine, which lies right above the frame of trio's own loop.
"""

import logging
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Final

import trio

from leafcuttr.plugins.services.service import SupervisedService

logger = logging.getLogger(__name__)

LIMIT_S: Final = 0.1
LOOK_S: Final = 0.025
QUIET_S: Final = 60.0
"""At most one warning in this time for each service."""
_INNER, _OUTER = 9, 3  # of a long stack


class Watchdog(trio.abc.Instrument):
    """Watches over the loop that it is started from. `looks` counts how often its thread has looked."""

    def __init__(self, services: Sequence[SupervisedService]) -> None:
        self._services = services
        self._packages = {package: each.plugin for each in services if (package := each.package)}
        self._warned: dict[str, float] = {}
        self._wake = threading.Event()
        self._turn = 0
        self._working = True
        self._parked = False
        self._ended = True
        self._loop_thread = 0
        self._loop_frame: FrameType | None = None
        self._thread = threading.Thread(target=self._watch, name="leafcuttr-watchdog", daemon=True)
        self.looks = 0

    def start(self) -> None:
        """Watch from now on."""
        coroutine = trio.lowlevel.current_task().coro
        frame = getattr(coroutine, "cr_frame", None)
        self._loop_frame = frame.f_back if frame is not None else None
        self._loop_thread = threading.get_ident()
        self._ended = False
        trio.lowlevel.add_instrument(self)
        self._thread.start()

    def stop(self) -> None:
        """Watch no longer. May be called before `start`."""
        if not self._ended:
            self._ended = True
            trio.lowlevel.remove_instrument(self)
            self._wake.set()
            self._loop_frame = None

    # On the loop's thread, once a turn

    def before_io_wait(self, timeout: float) -> None:
        self._working = False

    def after_io_wait(self, timeout: float) -> None:
        self._turn += 1
        self._working = True
        if self._parked:
            self._parked = False
            self._wake.set()

    # On a thread of its own

    def _watch(self) -> None:
        try:
            while not self._ended:
                self._watch_turns()
                self._parked = True
                if not self._working:  # looked at again: a turn that has begun meanwhile will wake nobody
                    self._wake.wait()
                self._parked = False
                self._wake.clear()
        except Exception:
            logger.exception("nobody watches over the event loop any longer")

    def _watch_turns(self) -> None:
        """Look until the loop waits for I/O."""
        step: tuple[int, FrameType] | None = None
        held_s, reported = 0.0, False
        looked, used = time.monotonic(), self._cpu()
        while not self._ended:
            time.sleep(LOOK_S)
            self.looks += 1
            before_looked, before_used = looked, used
            looked, used = time.monotonic(), self._cpu()
            if not self._working:
                return
            since_s = looked - before_looked
            if since_s > 2 * LOOK_S:
                # Either what is called holds the interpreter, and then it computes, or the process stood still.
                since_s = min(since_s, max(used - before_used, LOOK_S))
            frames = self._frames()
            before, step = step, (self._turn, frames[-1]) if frames else None
            if step is None or before is None or step[0] != before[0] or step[1] is not before[1]:
                held_s, reported = 0.0, False
            # The step has begun some time after the look before.
            held_s += since_s
            if frames and held_s >= LIMIT_S and not reported:
                reported = True
                self._report(frames, held_s)

    def _cpu(self) -> float:
        """Seconds that the loop's thread has computed."""
        try:
            return time.clock_gettime(time.pthread_getcpuclockid(self._loop_thread))
        except OSError:
            return 0.0

    def _frames(self) -> list[FrameType]:
        """Of the step that is being taken, from the innermost to that of its task's coroutine; none between steps."""
        frame = sys._current_frames().get(self._loop_thread)
        frames: list[FrameType] = []
        while frame is not None and frame is not self._loop_frame:
            frames.append(frame)
            frame = frame.f_back
        return frames if frame is not None else []

    def _report(self, frames: Sequence[FrameType], held_s: float) -> None:
        service = self._owner(frames[-1])
        if service is not None:
            service.blocks += 1
            who = str(service)
        else:
            plugin = self._plugin_of(frames)
            if plugin is None:
                return  # the broker's own doing
            who = f"plugin {plugin}, called by the broker,"
        now = time.monotonic()
        if now - self._warned.get(who, -QUIET_S) >= QUIET_S:
            self._warned[who] = now
            logger.warning(
                "the %s has held the event loop for over %d ms, and nothing else could run: %s",
                who,
                min(held_s, LIMIT_S) * 1000,
                " < ".join(_places(frames)),
            )

    def _owner(self, outermost: FrameType) -> SupervisedService | None:
        for service in self._services:
            if service.task is not None and any(
                getattr(task.coro, "cr_frame", None) is outermost for task in _tasks(service.task)
            ):
                return service
        return None

    def _plugin_of(self, frames: Sequence[FrameType]) -> str | None:
        for frame in frames:
            package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
            if package in self._packages:
                return self._packages[package]
        return None


def _tasks(root: trio.lowlevel.Task) -> Iterator[trio.lowlevel.Task]:
    """The task and those in its nurseries, and in theirs. The loop stands still meanwhile."""
    found = [root]
    while found:
        task = found.pop()
        yield task
        for nursery in list(task.child_nurseries):
            found.extend(list(nursery.child_tasks))


def _places(frames: Sequence[FrameType]) -> Iterator[str]:
    """`file:line in function`, the innermost first; of a long stack the middle is left out."""
    left_out = len(frames) - _INNER - _OUTER
    shown = list(frames)
    if left_out > 0:
        shown[_INNER : _INNER + left_out] = []
    for number, frame in enumerate(shown):
        if left_out > 0 and number == _INNER:
            yield f"{left_out} more"
        yield f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
