"""Every call into what a plugin has given: a health check, a route, a filter, a callback, a hook, a service.

`call` and `call_async` are the one way to make it. Whatever the part raises, SystemExit and groups among it, becomes a
`PartError`, which the caller answers as it answers any failure of that part, and which says in one line which part of
which plugin has failed. Two things go on instead:

- a cancellation of trio that is under way;
- KeyboardInterrupt, which is the program's: Ctrl-C. Only `leafcuttr serve`, which takes SIGINT in another way, knows
  that a plugin has raised it (`interrupts_are_failures`), and then it is a failure too.

Nothing is noted while a part runs. The frame of such a call has the part in it, and `part_in` finds it: so the watchdog
names what holds the loop (`plugins.services.watchdog`), and a call costs nothing more.
"""

import logging
import signal
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from types import FrameType
from typing import ClassVar, Final, NamedTuple, ParamSpec, TypeVar

from leafcuttr.runtime.complaints import Repeats
from leafcuttr.runtime.described import (
    LONGEST,
    described,
    first_of,
    is_of,
    leaves_of,
    traceback_of,
    type_of,
    words_of,
)
from leafcuttr_sdk.errors import PluginError

P = ParamSpec("P")
T = TypeVar("T")


class Part(NamedTuple):
    """What a plugin has given, as people know it: `health check disk`, `record filter mask of topic t`."""

    plugin: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} of plugin {self.plugin}"


class PartError(Exception):
    """A part has failed. `str()` is a line for the log: `plugin acme: health check disk failed: OSError: no such disk
    (/srv/acme.py, line 12)`."""

    def __init__(self, part: Part, why: str, cause: BaseException | None = None, *, at: str = "") -> None:
        super().__init__(part, why)
        self.part: Final = part
        self.why: Final = why
        """What went wrong, in one line."""
        self.cause: Final = cause
        """What the part has raised; None if it has not done what it should in another way."""
        self._at = f" at {at}" if at else ""

    @classmethod
    def of(cls, part: Part, cause: BaseException) -> "PartError":
        return cls(part, described(cause), cause)

    @property
    def kind(self) -> str:
        """The type of what was raised."""
        return type_of(self.cause or self)

    @property
    def words(self) -> str:
        """What was raised says."""
        return words_of(self.cause) if self.cause is not None else self.why

    @property
    def said(self) -> PluginError | None:
        """By what the part has said itself what is wrong, if it has."""
        if self.cause is None:
            return None
        first = first_of(self.cause)
        return first if is_of(first, PluginError) else None

    @property
    def is_said(self) -> bool:
        return self.said is not None

    @property
    def brief(self) -> str:
        """What went wrong, without the place: for those who do not read the log."""
        return self.why if self.cause is None else described(self.cause, place=False)

    def __str__(self) -> str:
        return f"plugin {self.part.plugin}: {self.part.name} failed{self._at}: {self.why}"


owner: Final[ContextVar[Part | None]] = ContextVar("owner", default=None)
"""The part that the running task belongs to. Tasks that it starts inherit it."""


def call(part: Part, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What the function returns. Raises PartError for whatever it raises; see above for what goes on."""
    try:
        return function(*args, **kwargs)
    except BaseException as error:
        failed = failure(part, error)
        try:
            raise failed from failed.cause
        finally:
            del failed  # whose traceback has this frame: a cycle would keep what is in all frames below


async def call_async(part: Part, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same for what is awaited. Tasks that the part starts meanwhile are known to be its."""
    # Of ten thousand connections each would keep a context of its own for it.
    before = None if owner.get() is part else owner.set(part)
    try:
        awaitable = function(*args, **kwargs)
        del args, kwargs  # neither do they keep these
        return await awaitable
    except BaseException as error:
        failed = failure(part, error)
        try:
            raise failed from failed.cause
        finally:
            del failed  # whose traceback has this frame: a cycle would keep what is in all frames below
    finally:
        if before is not None:
            owner.reset(before)


_CALLS: Final = frozenset({call.__code__, call_async.__code__})


def part_in(frames: Iterable[FrameType]) -> Part | None:
    """The part that is called in these frames, the innermost first; None if there is none. Any thread."""
    frame = frame_of_call(frames)
    part = frame.f_locals.get("part") if frame is not None else None
    return part if isinstance(part, Part) else None


def frame_of_call(frames: Iterable[FrameType]) -> FrameType | None:
    """That of `call` or `call_async`."""
    return next((frame for frame in frames if frame.f_code in _CALLS), None)


def failure(part: Part, error: BaseException) -> PartError:
    """The failure that an exception of the part is. Raises what goes on; what is in one group with that is logged, and
    is its cause."""
    leaves = leaves_of(error)
    goes_on = next((leaf for leaf in leaves if _goes_on(leaf)), None)
    if goes_on is not None:
        on, rest = _split(error, goes_on)
        if rest is not None:
            beside = failure(part, rest)
            logger.error("%s", beside)
            raise on from beside
        raise on
    # Of a part that this one called: that one is to be named.
    return next((leaf for leaf in leaves if is_of(leaf, PartError)), None) or PartError.of(part, error)


def failure_beside(error: BaseException) -> PartError | None:
    """What a part has raised in one group with this, which goes on: it is logged already."""
    cause: BaseException | None = BaseException.__dict__["__cause__"].__get__(error)
    return cause if cause is not None and is_of(cause, PartError) else None


def _split(error: BaseException, goes_on: BaseException) -> tuple[BaseException, BaseException | None]:
    """What goes on, and the rest."""
    if not is_of(error, BaseExceptionGroup):
        return error, None
    try:
        on, rest = error.split(_goes_on)
    except Exception:  # a class of the plugin's, or groups in groups without end
        return goes_on, None
    return on or error, rest


def _goes_on(error: BaseException) -> bool:
    if is_of(error, KeyboardInterrupt):
        return not _raised_by_plugin()
    trio = sys.modules.get("trio")  # the command line does without
    return trio is not None and is_of(error, trio.Cancelled) and is_cancelled()


def is_cancelled() -> bool:
    """Whether the running task is being cancelled; in a worker thread it is taken for granted. A Cancelled that was
    kept and is raised again later is an error like any other: there may be no scope any more that catches it."""
    import trio

    try:
        return trio.current_effective_deadline() == -inf
    except RuntimeError:
        return True


# KeyboardInterrupt


class _Interrupts:
    are_failures: ClassVar[bool] = False


@contextmanager
def interrupts_are_failures() -> Iterator[None]:
    """For the time in which this process takes SIGINT by a receiver, so that KeyboardInterrupt is raised by plugins
    only. Where SIGINT raises it in this thread after all, it goes on."""
    before, _Interrupts.are_failures = _Interrupts.are_failures, True
    try:
        yield
    finally:
        _Interrupts.are_failures = before


def _raised_by_plugin() -> bool:
    return _Interrupts.are_failures and (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    )


# The log

logger: Final = logging.getLogger("leafcuttr.plugins")


class Failures:
    """Logs failures of parts: the first of a part at once, then a line a minute at most, which says how many there have
    been since the line before. Any thread may call it."""

    def __init__(self) -> None:
        self._repeats = Repeats()

    def __call__(self, failed: PartError) -> None:
        more = self._repeats.count((failed.part, failed.kind))
        if more is not None:
            logger.error("%s%s", failed, more)
            log_traceback(failed)


def log_traceback(failed: PartError) -> None:
    """At debug level; without the words where these are long."""
    if failed.cause is None or not logger.isEnabledFor(logging.DEBUG):
        return
    try:
        if len(failed.words) < LONGEST and traceback.format_exception(failed.cause):
            logger.debug("%s", failed.part, exc_info=failed.cause)
            return
    except BaseException:  # of the exception: it cannot be formatted
        pass
    frames = "".join(traceback.format_tb(traceback_of(failed.cause)))
    logger.debug("%s: %s\n%s", failed.part, failed.why, frames)
