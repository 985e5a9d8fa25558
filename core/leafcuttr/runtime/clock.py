"""The clock of a running broker. Tests pass their own `leafcuttr_sdk.Clock`."""

import time

import trio


class SystemClock:
    """Wall time from the machine, monotonic time from trio, so that trio's test clocks move the timeouts too."""

    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return trio.current_time()
