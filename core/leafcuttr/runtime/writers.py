"""Threads that write for logs and stay awake for the next write.

An acknowledgement in topic sync mode waits for one trip to a worker and back. `trio.to_thread` wakes the loop through
its queue of callbacks and starts each job in a fresh context; here a thread takes the job from a queue of its own and
says that it is done by an eventfd, and no task has to run for the next step to begin: the watcher of the eventfd
(the server's reactor, beside its sockets; else a task for as long as something is under way) calls `complete`, which
runs the callbacks.
"""

import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Final

import trio

logger = logging.getLogger(__name__)

AT_ONCE: Final = 8

Then = Callable[[Any, BaseException | None], None]
"""What a job returned, or what it raised. Called on the loop; may begin the next job; does not raise."""


class _Job:
    __slots__ = ("_arguments", "_function", "error", "result", "then", "writers")

    def __init__(
        self, function: Callable[..., Any], arguments: tuple[Any, ...], then: Then, writers: "Writers"
    ) -> None:
        self._function = function
        self._arguments = arguments
        self.then = then
        self.writers = writers  # alive, and with it its descriptor, until the job is done
        self.result: Any = None
        self.error: BaseException | None = None

    def do(self) -> None:
        try:
            self.result = self._function(*self._arguments)
        except BaseException as error:
            self.error = error


class _Thread:
    def __init__(self) -> None:
        self.jobs: SimpleQueue[_Job] = SimpleQueue()
        threading.Thread(target=self._run, name="log writer", daemon=True).start()

    def _run(self) -> None:
        while True:
            job = self.jobs.get()
            job.do()
            job.writers.done(job, self)
            del job  # it has the buffers of connections: they must not wait for the next one


_IDLE: Final[list[_Thread]] = []
"""Of the whole process. The one that was busy last is taken first: it is the warmest."""


class Writers:
    """What the logs of one data directory have given to threads. Used on one loop."""

    def __init__(self) -> None:
        self._most = AT_ONCE
        self._event = -1
        self._busy = 0
        self._waiting: deque[_Job] = deque()
        self._done: deque[tuple[_Job, _Thread]] = deque()
        self._watched = False
        self._pumping = False

    def __del__(self) -> None:
        if self._event >= 0:
            os.close(self._event)

    @property
    def busy(self) -> bool:
        return self._busy > 0

    def fileno(self) -> int:
        """Readable when a job is done. Raises OSError when there is no descriptor."""
        if self._event < 0:
            self._event = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        return self._event

    def start(self, function: Callable[..., Any], arguments: tuple[Any, ...], then: Then) -> None:
        """Call it in a thread, at once or when one is free, then call `then` on the loop. Raises OSError when there is
        no descriptor, or no thread, to do it with."""
        self.fileno()
        job = _Job(function, arguments, then, self)
        if self._busy >= self._most:
            self._waiting.append(job)
            return
        self._begin(job)
        self._watch()

    def _begin(self, job: _Job) -> None:
        try:
            thread = _IDLE.pop()  # which another broker of the process may do too, on a loop of its own
        except IndexError:
            thread = _new_thread()
        self._busy += 1
        thread.jobs.put(job)

    def done(self, job: _Job, thread: _Thread) -> None:
        """In the thread: the job has been done."""
        self._done.append((job, thread))
        os.eventfd_write(self._event, 1)

    def complete(self) -> None:
        """Run the callbacks of the jobs that are done."""
        try:
            os.eventfd_read(self._event)
        except BlockingIOError:
            return
        while self._done:
            job, thread = self._done.popleft()
            if self._waiting and self._busy <= self._most:
                thread.jobs.put(self._waiting.popleft())
            else:
                _IDLE.append(thread)
                self._busy -= 1
            try:
                job.then(job.result, job.error)
            except Exception:
                logger.exception("the callback of a write failed")

    def limit(self, most: int) -> None:
        """How many jobs may be under way at once; with 0 they wait. Those under way go on."""
        self._most = most
        while self._waiting and self._busy < most:
            self._begin(self._waiting.popleft())
        self._watch()

    def watched(self, by_reactor: bool) -> None:
        """Whether the reactor calls `complete` whenever the descriptor is readable; if not, a task does it."""
        self._watched = by_reactor
        self._watch()

    def _watch(self) -> None:
        if self._busy and not self._watched and not self._pumping:
            self._pumping = True
            trio.lowlevel.spawn_system_task(self._pump)

    async def _pump(self) -> None:
        try:
            while self._busy and not self._watched:
                await trio.lowlevel.wait_readable(self._event)
                self.complete()
        finally:
            self._pumping = False


def _new_thread() -> _Thread:
    try:
        return _Thread()
    except RuntimeError as error:
        raise OSError(str(error)) from None
