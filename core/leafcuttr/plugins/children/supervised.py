"""The life of a child: started, started again after a pause, stopped.

It runs in a task that only its own scope cancels: a service that is cancelled, or fails, ends the block, and then the
child is told to end and waited for, for its own time. `plugged.children` has those that there are, for `/health`,
metrics, and the stop of services, which waits longer for those that have one.
"""

import logging
import os
import random
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from leafcuttr.plugins.children.output import BoundedLines
from leafcuttr.plugins.children.process import KeptProcess, Program
from leafcuttr.plugins.services.backoff import Backoff
from leafcuttr.runtime.block_nursery import open_block_nursery
from leafcuttr.runtime.described import first_line
from leafcuttr_sdk.children import ChildError, Restart
from leafcuttr_sdk.trouble import exhausted

if TYPE_CHECKING:
    from leafcuttr.state.plugged import Plugged

_CRASH_POINT: Final = "LEAFCUTTR_CRASH_POINT"  # the broker's
_SETTINGS: Final = "KAFKA_"
"""Variables that are settings of the broker, passwords among them."""
_LATER_S: Final = 0.05
_PIECE: Final = 1 << 16
_OUTPUT_S: Final = 1.0
"""How long the output of a child that has ended is read."""
_LONGEST_TROUBLE: Final = 800
"""Characters of its last line: there may be the path of a file in it, and a message of 500."""


class ChildOptions(NamedTuple):
    """See `leafcuttr_sdk.Broker.child`."""

    name: str
    command: Sequence[str | os.PathLike[str]]
    environment: Mapping[str, str | None]
    folder: str | os.PathLike[str] | None
    stop_s: float
    memory_bytes: int | None
    restart: Restart
    final_statuses: frozenset[int] = frozenset()


@asynccontextmanager
async def open_child(
    plugged: "Plugged", plugin: str, options: ChildOptions
) -> AsyncIterator["SupervisedChild"]:
    """See `leafcuttr_sdk.Broker.child`."""
    program, key = _program(options), (plugin, options.name)
    if key in plugged.children:
        raise ValueError(f"plugin {plugin} has a child {options.name!r} already")
    child = SupervisedChild(plugin, options, program)
    plugged.children[key] = child
    try:
        async with open_block_nursery() as nursery:
            nursery.start_soon(child.run)
            try:
                await child.first_started()
                yield child
            finally:
                with trio.CancelScope(shield=True):
                    await child.stop()
    finally:
        del plugged.children[key]


class SupervisedChild:
    """See `leafcuttr_sdk.children.Child`. `restarts` may be read by any thread."""

    def __init__(self, plugin: str, options: ChildOptions, program: Program) -> None:
        self.plugin: Final = plugin
        self.name: Final = options.name
        self.stop_s: Final = options.stop_s
        self.trouble = ""
        self.restarts = 0
        self.lines_left_out = 0
        self._restart = options.restart
        self._final_statuses = options.final_statuses
        self._program = program
        self._logger = logging.getLogger(f"leafcuttr.plugin.{plugin}")
        self._scope = trio.CancelScope(shield=True)
        self._backoff = Backoff(random.Random())
        self._process: KeptProcess | None = None
        self._stopping = False
        self._refused: ChildError | None = None
        self._status: int | None = None
        self._first = trio.Event()
        self._over = trio.Event()

    def __str__(self) -> str:
        return f"child {self.name} of plugin {self.plugin}"

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    @property
    def up(self) -> bool:
        return self._process is not None

    @property
    def is_done(self) -> bool:
        """It has ended well, and is not started again."""
        return self._over.is_set() and not self.trouble

    @property
    def memory_bytes(self) -> int:
        return 0 if self._process is None else self._process.memory_bytes

    async def ended(self) -> int:
        await self._over.wait()
        return -signal.SIGKILL if self._status is None else self._status

    async def first_started(self) -> None:
        """Raises ChildError where it cannot be started."""
        await self._first.wait()
        if self._refused is not None:
            raise self._refused

    async def stop(self) -> None:
        """SIGTERM, and after `stop_s` seconds all is killed."""
        self._stopping = True
        if self._process is not None:
            self._process.terminate()
            with trio.move_on_after(self.stop_s):
                await self._over.wait()
            if not self._over.is_set():
                self._logger.warning(
                    "the %s has not ended %g s after SIGTERM: it is killed", self, self.stop_s
                )
                self._process.kill()
        self._scope.cancel()
        await self._over.wait()

    async def run(self) -> None:
        """Until it is stopped, or has ended for good."""
        try:
            with self._scope:
                while await self._once():
                    self.restarts += 1
        finally:
            self._first.set()
            self._over.set()

    # --- how ------------------------------------------------------------------------------------------------

    async def _once(self) -> bool:
        """One run, and the pause after it. Whether there is another."""
        began = trio.current_time()
        try:
            process = await KeptProcess.start(self._program)
        except (ChildError, OSError, RuntimeError) as error:
            why = f"it cannot be started: {first_line(exhausted(error) or str(error))}"
            if not self._first.is_set() and isinstance(error, ChildError):
                self._refused = ChildError(f"the {self}: {why}")
                return False
        else:
            why = await self._lived(process)
        self._first.set()
        up_s = trio.current_time() - began
        if self._stopping:
            return False
        if self._is_final():
            return self._over_for_good(why)
        self.trouble = why
        pause_s = self._backoff.pause_s(up_s)
        line = "the %s: %s; it is started again in %.1f s (restart %d)"
        self._logger.error(line, self, why, pause_s, self.restarts + 1)
        await trio.sleep(pause_s)
        return True

    def _is_final(self) -> bool:
        """Whether the end that it has come to is its last one."""
        if self._restart is Restart.NEVER or self._status in self._final_statuses:
            return True
        return self._restart is Restart.ON_FAILURE and self._status == 0

    def _over_for_good(self, why: str) -> bool:
        self.trouble = "" if self._status == 0 else why
        if self.trouble:
            self._logger.error("the %s: %s; it is not started again", self, why)
        return False

    async def _lived(self, process: KeptProcess) -> str:
        """From its start to its end, which is said in a line."""
        lines = BoundedLines(trio.current_time())
        self._process, self._status, self.trouble = process, None, ""
        self._first.set()
        if self.restarts:
            self._logger.warning("the %s is up again", self)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._log_output, process, lines)
                while await process.report() is not None:
                    pass
                await process.ended()
                nursery.cancel_scope.deadline = trio.current_time() + _OUTPUT_S
        finally:
            self._process = None
            self.lines_left_out += lines.left_out
            self._status = process.status
            await process.close()
        if process.left:
            self._logger.error("the %s has left processes that cannot be killed: %s", self, process.left)
        return _how_it_ended(process, self._program, lines.last)

    async def _log_output(self, process: KeptProcess, lines: BoundedLines) -> None:
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while True:
                if (most := lines.may_read(trio.current_time())) < 1:
                    await trio.sleep(_LATER_S)
                    continue
                data = await process.output.receive_some(min(most, _PIECE))
                if not data:
                    break
                for line in lines.received(data, trio.current_time()):
                    self._logger.info("%s: %s", self.name, line)
        for line in lines.ended(trio.current_time()):
            self._logger.info("%s: %s", self.name, line)


def _program(options: ChildOptions) -> Program:
    """Raises ValueError."""
    if not options.command:
        raise ValueError(f"the child {options.name!r} has an empty command")
    if not options.stop_s > 0:
        raise ValueError(f"stop_s={options.stop_s}: it has to be a number of seconds above 0")
    if options.memory_bytes is not None and options.memory_bytes < 1:
        raise ValueError(f"memory_bytes={options.memory_bytes}: it has to be a number of bytes above 0")
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_SETTINGS) and name != _CRASH_POINT
    }
    for name, value in options.environment.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    folder = None if options.folder is None else os.fspath(options.folder)
    return Program(
        [os.fspath(word) for word in options.command], environment, folder, options.memory_bytes or 0
    )


def _how_it_ended(process: KeptProcess, program: Program, last: str) -> str:
    if process.over is not None:
        return (
            f"it and what it has started had {process.over} bytes of memory, more than {program.memory_bytes}, and "
            "were killed"
        )
    status = process.status
    if status is None:
        return "it was killed"
    if status >= 0:
        how = f"it ended with status {status}"
    else:
        try:
            how = f"it was ended by {signal.Signals(-status).name}"
        except ValueError:
            how = f"it was ended by signal {-status}"
    return f"{how} ({last[:_LONGEST_TROUBLE]})" if last and status else how
