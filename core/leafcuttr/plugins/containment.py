"""What keeps plugins from harming a running broker beyond the calls into them (`runtime.plugin_parts`): the loop is
watched over, system tasks are caught, a forked process that comes back to the loop is ended, and KeyboardInterrupt of a
task without a parent gets to the program whose it is.
"""

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import FrameType
from typing import Final, NoReturn

import trio

from leafcuttr.plugins.loaded import Loaded
from leafcuttr.plugins.services.watchdog import LIMIT_S, STARTING_S, Watchdog
from leafcuttr.plugins.system_tasks import SystemTasks
from leafcuttr.runtime.frames import outward
from leafcuttr.runtime.plugin_parts import Failures, frame_of_call, owner, part_in

logger = logging.getLogger("leafcuttr.plugins")

_roots: Final[set[trio.lowlevel.Task]] = set()
"""Of the loops of this process that have plugins in them."""


class Containment:
    """For one broker and its enabled plugins."""

    def __init__(self, plugins: Sequence[Loaded], failures: Failures) -> None:
        packages = {one.package: one.name for one in plugins}
        self.watchdog: Final = Watchdog(packages, limit_s=STARTING_S)
        self._packages = packages
        self._failures = failures
        self._scope: Final = trio.CancelScope()
        self._interrupt: KeyboardInterrupt | None = None

    @contextmanager
    def active(self) -> Iterator[None]:
        """From before the first call into a plugin on the loop until after the last one. Raises KeyboardInterrupt after
        `interrupt`."""
        tasks = SystemTasks(self._packages, self._failures, self.interrupt)
        trio.lowlevel.add_instrument(tasks)
        self.watchdog.start()
        root = trio.lowlevel.current_root_task()
        assert root is not None
        _watch_forks()
        _roots.add(root)
        try:
            with self._scope:
                yield
        finally:
            _roots.discard(root)
            self.watchdog.stop()
            trio.lowlevel.remove_instrument(tasks)
        if self._interrupt is not None:
            raise self._interrupt

    def started(self) -> None:
        """The services have been started."""
        self.watchdog.limit_s = LIMIT_S

    @contextmanager
    def starting(self) -> Iterator[None]:
        """A service is made and run for the first time, as if the broker did not serve yet."""
        limit_s, self.watchdog.limit_s = self.watchdog.limit_s, STARTING_S
        try:
            yield
        finally:
            self.watchdog.limit_s = limit_s

    def interrupt(self, error: KeyboardInterrupt) -> None:
        """End the broker with it."""
        self._interrupt = error
        self._scope.cancel()


class _Forked(trio.abc.Instrument):
    """In a forked process: it ends before it does anything of the broker's, whose data and sockets it has as well.
    That is where it leaves the call into the plugin, or at the latest the step of its task."""

    def __init__(self, frames: list[FrameType]) -> None:
        self._part = part_in(frames)
        frame = frame_of_call(frames)
        if frame is not None:
            frame.f_trace = self._end
            sys.settrace(lambda *_: None)  # of new calls; that frame has its own

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self._part = self._part or task.context.get(owner)
        self._end()

    def _end(self, *_: object) -> NoReturn:
        logger.critical(
            "the process %d, forked by %s, has come back to the event loop of the broker: it is ended",
            os.getpid(),
            f"the {self._part}" if self._part else "a plugin",
        )
        os._exit(1)


@cache
def _watch_forks() -> None:
    os.register_at_fork(after_in_child=_in_child)


def _in_child() -> None:
    try:
        root = trio.lowlevel.current_root_task()
    except RuntimeError:
        return  # of a thread that runs no loop
    if root in _roots:
        trio.lowlevel.add_instrument(_Forked(list(outward(sys._getframe()))))
