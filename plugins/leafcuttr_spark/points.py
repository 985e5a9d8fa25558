"""Named points of a micro-batch at which a test may end a process, to show that an end there loses nothing and doubles
nothing.

`LEAFCUTTR_SPARK_CRASH_POINT=name` or `name:n` (the n-th time that the process reaches it) in the environment makes the
process send itself SIGKILL there: the driver, or the Python worker of a task. Otherwise a point costs one comparison.
"""

import os
import signal
from collections.abc import Callable
from typing import Final

DRIVER: Final = (
    "transaction-begun",  # a transaction is open, nothing is in it
    "records-written",  # all records are acknowledged; other sinks are not written
    "sinks-written",  # all sinks are written
    "batch-marked",  # the number of the batch is in the transaction, which is not committed
    "transaction-committed",  # it is committed, the checkpoint does not know
)
WORKER: Final = (
    "task-begun",  # a task has joined the transaction, and has written nothing
    "task-written",  # its records are acknowledged, the driver does not know
)
POINTS: Final = frozenset({*DRIVER, *WORKER})

VARIABLE: Final = "LEAFCUTTR_SPARK_CRASH_POINT"


def armed(text: str | None) -> Callable[[str], None] | None:
    """What is called at each point; None where no test wants an end. Raises ValueError."""
    if not text:
        return None
    name, _, count = text.partition(":")
    if name not in POINTS:
        raise ValueError(f"{VARIABLE}={text}: allowed are {', '.join(sorted(POINTS))}")
    left = int(count or "1")

    def kill(reached: str) -> None:
        nonlocal left
        if reached == name:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return kill


_watch = armed(os.environ.get(VARIABLE))


def reach(name: str) -> None:
    """This point is reached."""
    if _watch is not None:
        _watch(name)
