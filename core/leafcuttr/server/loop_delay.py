"""How late the event loop is: a task sleeps until a certain time, and measures when it runs.

A tenth of a second lies between two samples while the process works; a second while it does not, because a loop that
has nothing to do is not late, and sampling ten times a second would be most of what an idle broker costs.
"""

import time
from typing import Final

import trio

from leafcuttr.metrics.counts import Times

_BUSY_S: Final = 0.1
_IDLE_S: Final = 1.0
_WORKS: Final = 0.05  # of one core


async def sample(times: Times) -> None:
    """Sample until cancelled."""
    interval, used = _IDLE_S, time.process_time()
    while True:
        due = trio.current_time() + interval
        await trio.sleep_until(due)
        now, before = trio.current_time(), used
        used = time.process_time()
        times.add(max(now - due, 0.0))
        interval = _BUSY_S if used - before > _WORKS * (interval + now - due) else _IDLE_S
