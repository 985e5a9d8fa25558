"""The broker's end of a cleaning process: starting it, sending and receiving lines, ending it. See `job`."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from typing import Any, Final

import trio

_END_S: Final = 2.0
_LONGEST_LINE: Final = 64 * 1024 * 1024
_CRASH_POINT: Final = "LEAFCUTTR_CRASH_POINT"  # the broker's: the child is killed in other ways


class ChildEndedError(Exception):
    """The process has ended. The message says how."""


class CleaningProcess:
    """A running process. It is ended by its starter, and ends by itself when the broker does."""

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._received = bytearray()
        self._sending = trio.Lock()

    @classmethod
    async def start(cls) -> "CleaningProcess":
        """Raises OSError."""
        environ = {name: value for name, value in os.environ.items() if name != _CRASH_POINT}
        command = [sys.executable, "-P", "-m", "leafcuttr.log.cleaner.compaction.child"]
        return cls(
            await trio.lowlevel.open_process(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ
            )
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    async def send(self, kind: str, fields: dict[str, Any]) -> None:
        """Raises ChildEndedError."""
        assert self._process.stdin is not None
        line = json.dumps({"type": kind, **fields}).encode() + b"\n"
        async with self._sending:
            try:
                await self._process.stdin.send_all(line)
                return
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
        raise await self._ended()

    async def receive(self) -> dict[str, Any]:
        """The next message. Raises ChildEndedError."""
        assert self._process.stdout is not None
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            more = await self._process.stdout.receive_some()
            if not more or searched > _LONGEST_LINE:
                raise await self._ended()
            self._received += more
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        message: dict[str, Any] = json.loads(line)
        return message

    async def end(self) -> None:
        """End it, at once, and wait for that."""
        with trio.CancelScope(shield=True):
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._close()

    async def _ended(self) -> ChildEndedError:
        with trio.move_on_after(_END_S):
            await self._process.wait()
        await self.end()
        status = self._process.returncode
        how = (
            f"was killed by signal {-status}" if status is not None and status < 0 else f"ended with {status}"
        )
        return ChildEndedError(f"the process that compacts {how}")

    async def _close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                await stream.aclose()
        await self._process.wait()
