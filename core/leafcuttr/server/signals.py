"""SIGTERM and SIGINT of `leafcuttr serve`, in each of its states.

- No event loop runs (settings are read, plugins are imported, or the broker has stopped): the process ends by the
  signal.
- The loop runs: `stop` is called on it. A second signal changes nothing, and so does not shorten a clean stop.
- Something holds the loop: if it has not taken the signal within `PATIENCE_S`, a thread says what holds it, and ends
  the process with the status of the signal; with a second signal, once the loop has not taken the first for `AGAIN_S`.
  What was acknowledged is on the log, as after a kill.

The last has to work whatever the main thread does, and handlers of Python run in the main thread, between two of its
steps. So while the loop runs the interpreter's own handler, in C, writes each signal into a pipe
(`signal.set_wakeup_fd`), which that thread reads. Code that keeps the interpreter's lock keeps the thread waiting too.
"""

import logging
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Final, NoReturn

from leafcuttr.runtime.frames import place_of_thread
from leafcuttr.state.plugged import LoopHolder

if TYPE_CHECKING:
    import trio

PATIENCE_S: Final = 5.0
"""How long the loop may take until it takes a signal."""
AGAIN_S: Final = 1.0
"""The same where there is a second one: people press Ctrl-C twice, and a loop that is only busy stops cleanly. One
that comes later than this after the first acts at once."""
LEAVE_S: Final = 3.0
"""How long the event loop may take to end, once the broker has stopped: it waits for tasks of plugins."""
END_S: Final = 2.0
"""The same for the interpreter, once the loop has ended."""
_SLICE_S: Final = 0.25
_SAY_S: Final = 1.0
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

logger = logging.getLogger("leafcuttr")


class StopSignals:
    """For the main thread of a process that ends with the broker."""

    def __init__(self) -> None:
        self._loop_runs = False
        self._writable = -1
        self._stopping = False
        self._taken = threading.Event()

    def install(self) -> None:
        """From now on until the process ends."""
        for number in _SIGNALS:
            signal.signal(number, self._handle)

    @contextmanager
    def on_loop(self, stop: Callable[[], None], holder: Callable[[], LoopHolder | None]) -> Iterator[None]:
        """Call `stop` on this loop when a signal comes. `holder` says, in any thread, which part of a plugin holds the
        loop; None is the broker itself."""
        import trio

        token = trio.lowlevel.current_trio_token()
        readable, writable = os.pipe()
        os.set_blocking(writable, False)
        threading.Thread(
            target=self._watch, args=(readable, token, stop, holder), name="leafcuttr-signals", daemon=True
        ).start()
        # trio has one of its own, by which signals wake the loop. Here the thread does so.
        of_trio = signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
        self._writable, self._loop_runs = writable, True
        try:
            yield
        finally:
            self._loop_runs = False
            signal.set_wakeup_fd(of_trio)
            os.close(writable)  # which ends the thread

    # In the main thread

    def _handle(self, number: int, _: FrameType | None) -> None:
        if not self._loop_runs:
            _end_by(number)
        if signal.set_wakeup_fd(self._writable, warn_on_full_buffer=False) != self._writable:
            with suppress(OSError):  # a plugin had put another one in its place, and that one got this signal
                os.write(self._writable, bytes((number,)))

    # In a thread of its own

    def _watch(
        self,
        readable: int,
        token: "trio.lowlevel.TrioToken",
        stop: Callable[[], None],
        holder: Callable[[], LoopHolder | None],
    ) -> None:
        poll = select.poll()
        poll.register(readable, select.POLLIN)
        pending, left_s = 0, 0.0
        again = False  # there was a second one; those that follow it shorten nothing further
        while True:
            before = time.monotonic()
            arrived = poll.poll(1000 * min(left_s, _SLICE_S) if pending else None)
            # A process that stood still, or whose turn on a busy machine comes late, has not been patient meanwhile.
            left_s -= min(time.monotonic() - before, _SLICE_S)
            numbers = os.read(readable, 64) if arrived else b""
            if arrived and not numbers:
                os.close(readable)
                return
            if numbers:
                _soon(token, _nothing)  # trio's own handlers of signals rely on it
            for number in filter(_SIGNALS.__contains__, numbers):
                if pending and not self._taken.is_set():
                    if not again:
                        left_s -= PATIENCE_S - AGAIN_S
                    again = True
                    continue
                pending, left_s, again = number, PATIENCE_S, False
                self._taken.clear()
                _soon(token, partial(self._take, stop))
            if pending and self._taken.is_set():
                pending = 0
            elif pending and left_s <= 0:
                held = holder()
                # A clean stop that the broker itself is at is not cut short.
                if held or not self._stopping:
                    _end(
                        pending,
                        held or LoopHolder("the broker itself", place_of_thread(threading.main_thread())),
                    )
                left_s = _SLICE_S

    def _take(self, stop: Callable[[], None]) -> None:
        """On the loop."""
        self._taken.set()
        self._stopping = True
        stop()


def _end(number: int, held: LoopHolder) -> NoReturn:
    name, status = signal.Signals(number).name, 128 + number
    _say(
        f"{name} ends the process with status {status}, because {held.part} holds the event loop and it cannot stop as "
        f"it should: {held.place}"
    )
    os._exit(status)


def end_soon(status: int, tasks: Callable[[], Iterable[str]] = tuple) -> None:
    """The data is closed: give the loop `LEAVE_S` to end, and then the interpreter `END_S`. They wait for tasks,
    threads and child processes that plugins have left behind, and call what they have registered with `atexit`.
    `tasks` names those tasks, in any thread."""
    threading.Thread(target=_end_soon, args=(status, tasks), name="leafcuttr-end", daemon=True).start()


def _end_soon(status: int, tasks: Callable[[], Iterable[str]]) -> None:
    main = threading.main_thread()
    main.join(LEAVE_S)
    if main.is_alive():
        left, kind = list(tasks()), "tasks"
    else:
        time.sleep(END_S)
        left, kind = (
            [each.name for each in threading.enumerate() if not each.daemon and each is not main],
            "threads",
        )
    what = f"{kind} that were left behind ({', '.join(left)})" if left else "what was left behind"
    _say(f"the process ends without waiting for {what}: {place_of_thread(main)}")
    os._exit(status)


def _end_by(number: int) -> NoReturn:
    """End as a process that has no handler: by the signal. Process 1 of a container is not ended by it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)


def _soon(token: "trio.lowlevel.TrioToken", call: Callable[[], None]) -> None:
    import trio

    with suppress(trio.RunFinishedError):
        token.run_sync_soon(call)


def _nothing() -> None:
    pass


def _say(line: str) -> None:
    """In a thread: the one that is held may have the lock of the log, or standard error may be a pipe that is full."""
    with suppress(RuntimeError):
        saying = threading.Thread(target=logger.critical, args=("%s", line), daemon=True)
        saying.start()
        saying.join(_SAY_S)
