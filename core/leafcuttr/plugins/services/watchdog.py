"""Names what of plugins holds the event loop for too long, while it holds it.

The loop runs one turn after the other: it waits for I/O, then gives each task that can go on one step. A thread checks
every 25 ms which step is being taken, and once it has been the same one for 100 ms, it logs its stack as a warning,
with the part of the plugin that is being called or whose task it is (`runtime.plugin_parts`). While the loop waits for
I/O the thread waits too: an idle broker wakes it a few times a second (`tests/plugins/services/test_watchdog.py`
counts).

Only trio's public parts are used: an instrument tells of the turns; a step is known by the frame of its task's
coroutine, which lies right above the frame of trio's own loop.
"""

import logging
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Final

import trio

from leafcuttr.runtime.apart import tasks_below
from leafcuttr.runtime.complaints import Repeats
from leafcuttr.runtime.frames import first_named, places_in, stack_of
from leafcuttr.runtime.plugin_parts import Part, owner, part_in
from leafcuttr.state.plugged import LoopHolder

logger = logging.getLogger(__name__)

LIMIT_S: Final = 0.1
STARTING_S: Final = 2.0
"""The same until the broker serves: services and filters import what is heavy when they are made."""
CHECK_S: Final = 0.025


class Watchdog(trio.abc.Instrument):
    """Watches over the loop that it is started from. `checks` counts how often its thread has checked, `holds` how
    often a part has held the loop."""

    def __init__(self, packages: Mapping[str, str] = {}, *, limit_s: float = LIMIT_S) -> None:
        """`packages` are those of plugins, with the names of the plugins. `limit_s` may be changed at any time."""
        self.limit_s = limit_s
        self.holds: Counter[Part] = Counter()
        self._packages = packages
        self._root: trio.lowlevel.Task | None = None
        self._repeats = Repeats()
        self._wake = threading.Event()
        self._turn = 0
        self._working = True
        self._parked = False
        self._ended = True
        self._loop_thread = 0
        self._loop_frame: FrameType | None = None
        self._thread = threading.Thread(target=self._watch, name="leafcuttr-watchdog", daemon=True)
        self.checks = 0

    def start(self) -> None:
        """Watch from now on."""
        coroutine = trio.lowlevel.current_task().coro
        frame = getattr(coroutine, "cr_frame", None)
        self._loop_frame = frame.f_back if frame is not None else None
        self._root = trio.lowlevel.current_root_task()
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
            self._loop_frame = self._root = None

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
                if not self._working:  # checked again: a turn that has begun meanwhile wakes no thread
                    self._wake.wait()
                self._parked = False
                self._wake.clear()
        except Exception:
            logger.exception("the watchdog of the event loop has ended")

    def _watch_turns(self) -> None:
        """Check until the loop waits for I/O."""
        step: tuple[int, FrameType] | None = None
        held_s, reported = 0.0, False
        checked, used = time.monotonic(), self._cpu()
        while not self._ended:
            time.sleep(CHECK_S)
            self.checks += 1
            before_checked, before_used = checked, used
            checked, used = time.monotonic(), self._cpu()
            if not self._working:
                return
            since_s = checked - before_checked
            if since_s > 2 * CHECK_S:
                # Either what is called holds the interpreter, and then it computes, or the process stood still.
                since_s = min(since_s, max(used - before_used, CHECK_S))
            frames = self._frames()
            before, step = step, (self._turn, frames[-1]) if frames else None
            if step is None or before is None or step[0] != before[0] or step[1] is not before[1]:
                held_s, reported = 0.0, False
            # The step has begun some time after the check before.
            held_s += since_s
            if frames and held_s >= self.limit_s and not reported:
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
        frames, of_loop = stack_of(self._loop_thread), self._loop_frame
        return frames[: frames.index(of_loop)] if of_loop in frames else []

    def holder(self) -> LoopHolder | None:
        """The part of a plugin that holds the loop now, and its place; None if none does. Any thread."""
        frames = self._frames()
        part = self._part_of(frames) if frames else None
        return LoopHolder(f"the {part}", places_in(frames)) if part is not None else None

    def _part_of(self, frames: Sequence[FrameType]) -> Part | None:
        return part_in(frames) or self._owner(frames[-1]) or self._of_package(frames)

    def _report(self, frames: Sequence[FrameType], held_s: float) -> None:
        part = self._part_of(frames)
        if part is None:
            return  # the broker's own doing
        self.holds[part] += 1
        more = self._repeats.count(part)
        if more is not None:
            logger.warning(
                "the %s has held the event loop for over %d ms, and nothing else could run: %s%s",
                part,
                min(held_s, self.limit_s) * 1000,
                places_in(frames),
                more,
            )

    def _owner(self, outermost: FrameType) -> Part | None:
        """That of the task whose step it is."""
        if self._root is None:
            return None
        for task in tasks_below(self._root):
            if getattr(task.coro, "cr_frame", None) is outermost:
                return task.context.get(owner)
        return None

    def _of_package(self, frames: Sequence[FrameType]) -> Part | None:
        plugin = first_named(frames, self._packages)
        return Part(plugin, "code") if plugin is not None else None
