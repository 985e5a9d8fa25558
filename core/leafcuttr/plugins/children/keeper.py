"""The process between the broker and a child: it starts the child's program, and sees to it that nothing of it outlives
the child or the broker.

    python -I -S keeper.py ORDERS REPORTS MEMORY_BYTES COMMAND ...

ORDERS and REPORTS are descriptors of pipes. The broker starts this file by its path, so that a keeper has nothing of
the broker: the standard library alone. Environment, working folder and standard streams are those of the child.

Orders are single bytes: `t`, SIGTERM to the program, and `k`, kill all. The end of the pipe is the end of the broker,
however it ends, SIGKILL too: the kernel closes its only writing end, and then all is killed. Which thread of the broker
has started the keeper does not matter.

Reports are lines of JSON: `{"pid": N}` once the program runs, or `{"failed": WHY}`; `{"memory": BYTES}` from time to
time, `{"over": BYTES}` before all is killed for it; `{"status": N}` at the end, a negative one for a signal, once all
that the program has started has ended too, or `"left"` with the ids of what the kernel does not end.

What belongs to the child is found by its parents. The keeper is a subreaper (PR_SET_CHILD_SUBREAPER, Linux 3.4), so
whatever loses its parent becomes a child of it: also what has left the process group or the session of the program, as
daemons do. If the keeper itself is killed, the kernel kills the program (PR_SET_PDEATHSIG: the keeper has one thread
only, which starts it and lasts as long), and the broker the process group.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NoReturn

TERMINATE: Final = b"t"
KILL: Final = b"k"

_SET_PDEATHSIG: Final = 1
_SET_CHILD_SUBREAPER: Final = 36
_LIMITED_S: Final = 0.5
_UNLIMITED_S: Final = 5.0
"""How often memory is counted, with a limit and without."""
_KILLED_S: Final = 5.0
_PAUSE_S: Final = 0.01
_OOM_SCORE: Final = 500
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")


class Keeper:
    """One program. `orders` and `reports` are descriptors."""

    def __init__(self, orders: int, reports: int, memory_bytes: int) -> None:
        self._orders = orders
        self._reports = reports
        self._memory_bytes = memory_bytes
        self._pid = 0
        self._status: int | None = None
        self._prctl = _prctl()

    def run(self, command: list[str]) -> None:
        """Until the program, and all that it has started, has ended."""
        self._prctl(_SET_CHILD_SUBREAPER, 1)
        woken = _on_signals()
        try:
            process = subprocess.Popen(
                command,
                start_new_session=True,
                preexec_fn=self._preparing(os.getpid()),  # noqa: PLW1509 - this process has one thread
            )
        except OSError as error:
            self._report(failed=f"{error.strerror}: {error.filename or command[0]}")
            return
        except (ValueError, subprocess.SubprocessError) as error:
            self._report(failed=str(error))
            return
        self._pid = process.pid
        self._report(pid=self._pid)
        self._watch(woken)
        left = self._end_all()
        self._report(status=self._status, **({"left": left} if left else {}))

    def _watch(self, woken: int) -> None:
        """Until the program has ended, or all is to be killed."""
        every_s = _LIMITED_S if self._memory_bytes else _UNLIMITED_S
        count_at = time.monotonic() + _LIMITED_S
        poll = select.poll()  # descriptors have the numbers that they have in the broker, which may be large
        poll.register(self._orders, select.POLLIN)
        poll.register(woken, select.POLLIN)
        while self._status is None:
            left_s = max(count_at - time.monotonic(), 0)
            ready = {descriptor for descriptor, _ in poll.poll(left_s * 1000)}
            if woken in ready:
                os.read(woken, 512)
                self._reap()
            if self._orders in ready:
                order = os.read(self._orders, 1)
                if order != TERMINATE:
                    return
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._pid, signal.SIGTERM)
            if time.monotonic() >= count_at:
                count_at = time.monotonic() + every_s
                memory = self._memory()
                if self._memory_bytes and memory > self._memory_bytes:
                    self._report(over=memory)
                    return
                self._report(memory=memory)

    def _memory(self) -> int:
        """Of the program and all that it has started. What they share is counted once, which takes longer: so only
        where it matters."""
        pids = list(descendants(os.getpid()))
        memory = sum(map(resident, pids))
        if self._memory_bytes and memory > self._memory_bytes:
            memory = sum(map(proportional, pids))
        return memory

    def _end_all(self) -> list[int]:
        """Kill what there is until there is nothing. Returns what is left of it."""
        until = time.monotonic() + _KILLED_S
        while True:
            left = list(descendants(os.getpid()))
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._reap()
            if not left or time.monotonic() > until:
                return left
            time.sleep(_PAUSE_S)

    def _reap(self) -> None:
        """Wait for what has ended, of which the kernel keeps the status."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                if pid == self._pid:
                    self._status = os.waitstatus_to_exitcode(status)

    def _preparing(self, keeper: int) -> Callable[[], None]:
        prctl = self._prctl

        def prepare() -> None:
            """In the process that becomes the program."""
            prctl(_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != keeper:
                os._exit(1)  # the keeper has ended before that
            with contextlib.suppress(OSError):
                descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
                os.write(descriptor, b"%d" % _OOM_SCORE)
                os.close(descriptor)

        return prepare

    def _report(self, **report: Any) -> None:
        """A broker that does not read for long misses some."""
        with contextlib.suppress(OSError):
            os.write(self._reports, json.dumps(report).encode() + b"\n")


def descendants(of: int) -> Iterator[int]:
    """The ids of all that this process has started, and those have, but for what has ended and was not waited for."""
    children: dict[int, list[int]] = {}
    for pid, parent in _processes():
        children.setdefault(parent, []).append(pid)
    waiting = [of]
    while waiting:
        found = children.get(waiting.pop(), ())
        yield from found
        waiting += found


def _processes() -> Iterator[tuple[int, int]]:
    """Id and parent of each that runs."""
    for name in os.listdir("/proc"):  # noqa: PTH208 - names only
        if name.isdigit():
            try:
                # proc(5): pid (name) state parent ...; a name may have spaces and brackets.
                state, parent = _contents(f"/proc/{name}/stat").rpartition(b")")[2].split(None, 2)[:2]
            except (OSError, ValueError):
                continue  # it has ended meanwhile
            if state not in b"ZX":
                yield int(name), int(parent)


def resident(pid: int) -> int:
    """Bytes of memory that it has, shared ones included."""
    try:
        return int(_contents(f"/proc/{pid}/statm").split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def proportional(pid: int) -> int:
    """The same with its part of what it shares with others."""
    try:
        _, found, rest = _contents(f"/proc/{pid}/smaps_rollup").partition(b"\nPss:")
        return int(rest.split(None, 1)[0]) * 1024 if found else resident(pid)
    except OSError:
        return resident(pid)


def _contents(path: str) -> bytes:
    """Of a small file of the kernel. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 14)
    finally:
        os.close(descriptor)


def _prctl() -> Callable[[int, int], int]:
    call = ctypes.CDLL(None).prctl
    call.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)

    def prctl(option: int, value: int) -> int:
        return int(call(option, value, 0, 0, 0))

    return prctl


def _on_signals() -> int:
    """A descriptor that can be read once a child has ended. What ends programs is for the broker to send: of a
    terminal, or of a service manager, the keeper takes nothing."""

    def ignore(*_: object) -> None:
        """Not SIG_IGN, which the program would inherit."""

    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (
        signal.SIGCHLD,
        signal.SIGTERM,
        signal.SIGINT,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGPIPE,
    ):
        signal.signal(number, ignore)
    return reading


def main() -> NoReturn:
    orders, reports, memory_bytes, *command = sys.argv[1:]
    for descriptor in (int(orders), int(reports)):
        os.set_inheritable(descriptor, False)
    os.set_blocking(int(reports), False)
    Keeper(int(orders), int(reports), int(memory_bytes)).run(command)
    os._exit(0)


if __name__ == "__main__":
    main()
