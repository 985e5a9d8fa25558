"""What a part of a function may take of the processor, for functions that `Broker.run_in_worker` calls.

Python's regular expressions, and other long work in C that looks for signals, can be ended by an alarm, so that one
value of many does not cost the process. What looks for none goes on: the deadline of the call ends it, with its
process.
"""

import signal
from collections.abc import Generator
from contextlib import contextmanager
from time import process_time
from types import FrameType


class ProcessorLimitError(BaseException):
    """The limit is reached. No Exception: code that catches those, as a library's does, must not go on."""


class _Alarm:
    """Of this process: when it may raise, by the time that `process_time` gives; None outside a limit."""

    due: float | None = None


@contextmanager
def processor_limit(seconds: float) -> Generator[None]:
    """Raises ProcessorLimitError within, and not behind it, once the process has used so many seconds of the processor.

    A machine with other work lets no limit come sooner. In the main thread of a process; not one within another. The
    process's handler of SIGPROF is as before afterwards.
    """
    before = signal.signal(signal.SIGPROF, _ring)
    try:
        _Alarm.due = process_time() + seconds
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            yield
        finally:
            _Alarm.due = None
            signal.setitimer(signal.ITIMER_PROF, 0)
    finally:
        signal.signal(signal.SIGPROF, before)


def _ring(_: int, __: FrameType | None) -> None:
    if _Alarm.due is None:
        return
    left_s = _Alarm.due - process_time()
    if left_s > 0:
        # The timer counts whole ticks of the kernel, of which other processes may have had a part.
        signal.setitimer(signal.ITIMER_PROF, left_s)
    else:
        raise ProcessorLimitError
