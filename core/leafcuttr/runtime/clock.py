"""The clock of a running broker. Tests pass their own `leafcuttr_sdk.Clock`."""

import time

import trio


class SystemClock:
    """Wall time from the machine, monotonic time from trio, so that trio's test clocks move the timeouts too. One that
    is made on the loop can be asked in any thread, which filters and validators do."""

    __slots__ = ("_of_loop",)

    def __init__(self) -> None:
        try:
            self._of_loop: trio.abc.Clock | None = trio.lowlevel.current_clock()
        except RuntimeError:
            self._of_loop = None

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        try:
            return trio.current_time()
        except RuntimeError:
            if self._of_loop is None:
                raise
            return self._of_loop.current_time()
