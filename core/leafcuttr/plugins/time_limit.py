"""Calls into a plugin that may never return: imports and hooks, on a thread of their own and for a limited time.

A call that is not over in time is left to its thread, which is a daemon: it keeps neither the start nor the process,
and what it returns or raises later is ignored. The caller gets one line with the place where the call is.

Threads are used again by later calls, and end once there were none for `_IDLE_S`: a start has one of them.
"""

import contextvars
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import takewhile
from types import FrameType
from typing import Final, Generic, TypeVar

from leafcuttr.errors import TakesTooLong
from leafcuttr.runtime.frames import package_in, stack_of

T = TypeVar("T")

_IDLE_S: Final = 1.0
_SIGNALS_S: Final = 0.2
"""A signal that comes just before a wait begins does not end the wait: its handler runs at most this much later."""


def in_time(call: Callable[[], T], limit_s: float, package: str) -> T:
    """What `call` returns, or raises. Raises TakesTooLong.

    `package` is the top-level package of the plugin, or its file: where the call is, is said of its code too. Signals
    are handled meanwhile: what a handler raises ends this, and the call is left to its thread.
    """
    attempt = _Attempt(call)
    attempt.begin(attempt.over.release)
    end = time.monotonic() + limit_s
    while not attempt.over.acquire(timeout=max(0.0, min(_SIGNALS_S, end - time.monotonic()))):
        if time.monotonic() >= end:
            raise attempt.too_long(limit_s, package)
    return attempt.result()


async def in_time_on_loop(call: Callable[[], T], limit_s: float, package: str) -> T:
    """As `in_time`, for the loop's thread, which goes on meanwhile. Cancelled: the call is left to its thread."""
    import trio

    attempt, over, token = _Attempt(call), trio.Event(), trio.lowlevel.current_trio_token()

    def tell() -> None:
        with suppress(trio.RunFinishedError):  # it was left, and the loop has ended since
            token.run_sync_soon(over.set)

    attempt.begin(tell)
    with trio.move_on_after(limit_s):
        await over.wait()
    if not over.is_set():
        raise attempt.too_long(limit_s, package)
    return attempt.result()


class _Attempt(Generic[T]):
    """One call, on a thread of its own. `over` is locked until it is released by what was given to `begin`."""

    def __init__(self, call: Callable[[], T]) -> None:
        self.over: Final = threading.Lock()
        self.over.acquire()
        self._call = call
        self._context = contextvars.copy_context()
        self._tell: Callable[[], None] = _nothing
        self._thread: _Thread | None = None
        self._returned: list[T] = []
        self._raised: BaseException | None = None

    def begin(self, tell: Callable[[], None]) -> None:
        """`tell` is called by the thread, once the call is over."""
        self._tell = tell
        self._thread = _Thread.for_call()
        self._thread.calls.put(self._run)

    def result(self) -> T:
        if self._raised is not None:
            try:
                raise self._raised
            finally:
                self._raised = None  # the traceback has this frame: not in a circle
        return self._returned[0]

    def too_long(self, limit_s: float, package: str) -> TakesTooLong:
        assert self._thread is not None
        place = _place(stack_of(self._thread.ident), package)
        return TakesTooLong(f"has taken longer than {limit_s:g} s: it is {place}")

    def _run(self) -> None:
        try:
            self._returned.append(self._context.run(self._call))
        except BaseException as error:
            self._raised = error
        self._tell()


class _Thread:
    """A thread that makes one call after the other."""

    _spare: Final["deque[_Thread]"] = deque()

    def __init__(self) -> None:
        self.calls: Final[queue.SimpleQueue[Callable[[], None]]] = queue.SimpleQueue()
        thread = threading.Thread(target=self._work, name="leafcuttr-plugin", daemon=True)
        thread.start()
        self.ident: Final = thread.ident

    @classmethod
    def for_call(cls) -> "_Thread":
        """One that makes no call. Raises RuntimeError where the process may start no thread."""
        try:
            return cls._spare.pop()
        except IndexError:
            return cls()

    def _work(self) -> None:
        while True:
            try:
                call = self.calls.get(timeout=_IDLE_S)
            except queue.Empty:
                try:
                    self._spare.remove(self)
                except ValueError:
                    continue  # it was chosen for a call just now
                return
            call()
            del call
            self._spare.append(self)


def _place(stack: Iterable[FrameType], package: str) -> str:
    """Where the call is, and where in the plugin's own code if that is another place."""
    frames = list(_frames(stack))
    if not frames:
        return "at no place of Python's"
    own = next((each for each in frames if package in (each.f_code.co_filename, package_in(each))), frames[0])
    place = f"at {own.f_code.co_filename}, line {own.f_lineno}"
    if own is not frames[0]:
        place += f", in {frames[0].f_code.co_filename}, line {frames[0].f_lineno}"
    return place


def _frames(stack: Iterable[FrameType]) -> Iterator[FrameType]:
    """Of the call, the innermost first; without those of the import system, which have no file, and without ours."""
    for each in takewhile(lambda each: each.f_code is not _Attempt._run.__code__, stack):
        if not each.f_code.co_filename.startswith("<frozen importlib"):
            yield each


def _nothing() -> None:
    pass
