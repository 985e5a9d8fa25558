"""The broker's end of one worker process: started, told what to call, and ended. See `child` for the frames."""

import logging
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from typing import Any, Final

import trio

from leafcuttr.plugins.worker_processes import child
from leafcuttr.plugins.worker_processes.functions import FunctionPlace
from leafcuttr.plugins.worker_processes.pickling import pickled, unpickled
from leafcuttr.runtime.described import first_line
from leafcuttr_sdk.workers import (
    WorkerDeadlineError,
    WorkerDiedError,
    WorkerMemoryError,
    WorkerRaisedError,
    WorkerTransferError,
)

LOAD_S: Final = 60.0
"""How long a process may take to start, and to import the module of a function."""
_PYTHON: Final = (sys.executable, "-P", "-X", "faulthandler")
_END_S: Final = 2.0
_LINES: Final = 20  # what functions print, for each call
_PIECE: Final = 256 * 1024  # bytes that are sent or received at once
_PIPE: Final = 4  # times that a pipe is read which the process does not write to any more
_LONGEST_TEXT: Final = 1024 * 1024
_CRASH_POINT: Final = "LEAFCUTTR_CRASH_POINT"  # the broker's

Pickled = tuple[list[bytes], int]
"""Chunks, and their size."""


class _Ended(Exception):
    """The process has closed its end of the socket."""


class WorkerProcess:
    """A process that calls one function at a time. `takes_more` is whether it can be called again: it has answered, and
    is not to end. `idle_since` is a time of trio's clock."""

    def __init__(
        self, process: trio.Process, control: trio.socket.SocketType, lifeline: int, now: float
    ) -> None:
        self.idle_since = now
        self._process = process
        self._control = control
        self._lifeline = lifeline
        self._numbers: dict[FunctionPlace, int] = {}
        self._lines_left = 0
        self._line = b""
        self._logger = logging.getLogger(__name__)
        self.takes_more = True

    @classmethod
    async def start(cls) -> "WorkerProcess":
        """Raises OSError."""
        with ExitStack() as of_it, ExitStack() as of_us:
            ours, theirs = socket.socketpair()
            of_us.callback(ours.close)
            of_it.callback(theirs.close)
            reading, lifeline = os.pipe()
            of_us.callback(os.close, lifeline)
            of_it.callback(os.close, reading)
            ours.setblocking(False)
            process = await trio.lowlevel.open_process(
                [*_PYTHON, child.__file__, str(theirs.fileno()), str(reading)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(), reading),
                env={name: value for name, value in os.environ.items() if name != _CRASH_POINT},
                # What its functions start ends with it, and a Ctrl-C in a terminal is the broker's.
                process_group=0,
            )
            of_us.pop_all()
        return cls(process, trio.socket.from_stdlib_socket(ours), lifeline, trio.current_time())

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    async def call(
        self, plugin: str, function: FunctionPlace, arguments: Pickled, deadline_s: float, memory_bytes: int
    ) -> Any:
        """What the function returns. Raises what it raises, and WorkerError. Not twice at the same time.

        Afterwards it has to be ended, unless it `takes_more`.
        """
        self._read_what_is_printed()
        self._logger, self._lines_left = logging.getLogger(f"leafcuttr.plugin.{plugin}"), _LINES
        try:
            number = self._numbers.get(function)
            if number is None:
                number = await self._load(function)
            with trio.move_on_after(deadline_s):
                chunks, size = arguments
                with suppress(_Ended):
                    # If it has no memory for the arguments, it has answered and ended before it has read them.
                    await self._send(child.CALL, number, memory_bytes, chunks, size)
                return await self._outcome(function, memory_bytes)
        except _Ended:
            raise WorkerDiedError(f"{function}: {await self._how_it_ended()}") from None
        raise WorkerDeadlineError(f"{function} took longer than {deadline_s:g} s: its process was ended")

    async def _load(self, function: FunctionPlace) -> int:
        number = len(self._numbers)
        loading = await pickled(function.loading, sys.maxsize)
        assert loading is not None
        with trio.move_on_after(LOAD_S):
            await self._send(child.LOAD, number, 0, *loading)
            kind, body = await self._receive(_LONGEST_TEXT)
            if kind != child.LOADED:
                raise WorkerTransferError(f"{function} cannot be imported in a worker process: {_text(body)}")
            self._numbers[function] = number
            return number
        raise WorkerDeadlineError(f"the import of {function.module} took longer than {LOAD_S:g} s")

    async def _outcome(self, function: FunctionPlace, memory_bytes: int) -> Any:
        kind, body = await self._receive(max(memory_bytes, _LONGEST_TEXT))
        if kind == child.RETURNED and len(body) <= memory_bytes:
            try:
                return await unpickled(body)
            except Exception as error:
                raise WorkerTransferError(
                    f"{function}: its result cannot be read: {_words(error)}"
                ) from error
        if kind == child.RAISED:
            try:
                raised, where = await unpickled(body)
            except Exception as error:
                raise WorkerRaisedError(
                    f"{function}: what it raised cannot be read: {_words(error)}"
                ) from error
            raised.add_note(f"In a worker process:\n{where}")
            raise raised
        if kind == child.RAISED_TEXT:
            raise WorkerRaisedError(f"{function} raised {_text(body)}")
        if kind == child.UNSENDABLE:
            raise WorkerTransferError(f"{function}: {_text(body)}")
        if kind == child.NO_MEMORY:
            raise WorkerMemoryError(f"{function} needed more than {memory_bytes} bytes: {_text(body)}")
        self.takes_more = False
        raise WorkerMemoryError(f"the result of {function} is larger than {memory_bytes} bytes")

    async def _send(self, kind: int, number: int, memory_bytes: int, chunks: list[bytes], size: int) -> None:
        self.takes_more = False
        header = child.REQUEST.pack(kind, number, min(memory_bytes, 1 << 62), size)
        if len(chunks) == 1:
            chunks = [header + chunks[0]]
        else:
            chunks = [header, *chunks]
        try:
            for chunk in chunks:
                left = memoryview(chunk)
                while left:
                    left = left[await self._control.send(left[:_PIECE]) :]
        except (
            OSError,
            trio.ClosedResourceError,
        ):  # closed at the other end, or here because the broker stops
            raise _Ended from None

    async def _receive(self, most: int) -> tuple[int, bytearray]:
        """The kind of an answer, and its body; an empty one where that has more than `most` bytes."""
        received = bytearray()
        wanted = child.ANSWER.size
        while len(received) < wanted:
            received += await self._received()
        kind, last, length = child.ANSWER.unpack_from(received)
        if length > most:
            return _TOO_LARGE, bytearray()
        del received[:wanted]
        while len(received) < length:
            received += await self._received()
        self.takes_more = not last
        return kind, received

    async def _received(self) -> bytes:
        try:
            data = await self._control.recv(_PIECE)
        except (OSError, trio.ClosedResourceError):
            data = b""
        if not data:
            raise _Ended
        return data

    async def log_lines(self) -> None:
        """Log what it prints, until there is no more: the first lines of each call."""
        assert self._process.stdout is not None
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            async for data in self._process.stdout:
                self._print(data)
        if self._line:
            self._log(self._line)

    def _read_what_is_printed(self) -> None:
        """What the last call has printed and `log_lines` has not read yet: it has flushed it before its answer."""
        stdout = self._process.stdout
        if isinstance(stdout, trio.lowlevel.FdStream):
            with suppress(OSError):  # there is no more
                for _ in range(_PIPE):
                    self._print(os.read(stdout.fileno(), _PIECE))

    def _print(self, data: bytes | bytearray) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self._log(line)
        if len(self._line) > _PIECE:
            self._log(self._line)
            self._line = b""

    def _log(self, line: bytes) -> None:
        self._lines_left -= 1
        if self._lines_left >= 0:
            self._logger.info(
                "a worker process prints: %s", first_line(line.decode(errors="backslashreplace"))
            )
        elif self._lines_left == -1:
            self._logger.info("a worker process prints more, which is left out")

    async def ended(self) -> None:
        """Wait until it has ended, by itself or by `kill`."""
        await self._process.wait()

    def kill(self) -> None:
        """End it and what it has started, at once. Does not wait for that."""
        self.takes_more = False
        if self.running:
            # The group is its own from before it runs, and its number is not given again before it is waited for.
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    async def end(self) -> None:
        """End it, and wait for that, but for a moment only: the kernel may be busy for it."""
        self.kill()
        self._control.close()
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        with trio.move_on_after(_END_S, shield=True):
            await self._process.wait()

    async def close(self) -> None:
        """End it, and read no more of what it prints."""
        await self.end()
        if self._process.stdout is not None:
            await trio.aclose_forcefully(self._process.stdout)

    async def _how_it_ended(self) -> str:
        with trio.move_on_after(_END_S):
            await self._process.wait()
        status = self._process.returncode
        if status is None:
            return "its process has closed its connection"
        if status < 0:
            with suppress(ValueError):
                return f"its process was ended by {signal.Signals(-status).name}"
            return f"its process was ended by signal {-status}"
        return f"its process has ended with status {status}"


_TOO_LARGE: Final = 0


def _text(body: bytearray) -> str:
    return body.decode(errors="replace")


def _words(error: Exception) -> str:
    return first_line(f"{type(error).__name__}: {error}")
