"""Named points of a flow at which a test may end it, to show that an end there loses nothing and doubles nothing.

`LEAFCUTTR_FLOW_CRASH_POINT=name` or `name:n` (the n-th time it is reached) in the environment makes the process send
itself SIGKILL there. `LEAFCUTTR_FLOW_CRASH_POINT=@FILE` leaves that to the file: from when it is there, its content is
the name, so that a flow can be armed while it runs. A test in the same process sets `watch`. Otherwise a point costs
one comparison.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

POINTS: Final = frozenset(
    {
        "read",  # records have come from the source, nothing is made of them
        "made",  # batches for the target are made, none is sent
        "transaction-begun",  # a transaction is open, nothing is in it
        "transaction-appended",  # records are in it, their position is not
        "transaction-positioned",  # the position is in it too, it is not committed
        "transaction-committed",  # it is committed, nothing else knows
        "sent",  # at least once: a call of the appender is under way
        "acknowledged",  # at least once: records are acknowledged, the position is not stored
        "position-stored",  # at least once: the position is stored, nothing else knows
        "group-committed",  # the position is committed as a group at the source
        "dead-letter-begun",  # a poison record is found, its dead letter is not written
    }
)

VARIABLE: Final = "LEAFCUTTR_FLOW_CRASH_POINT"

Watch = Callable[[str], None]


def armed(text: str | None) -> Watch | None:
    """What ends the process at the point that `text`, the value of `VARIABLE`, names; None for no text.

    Raises ValueError for a name that is none; where a file has it, at the next point."""
    if not text:
        return None
    if text.startswith("@"):
        return _armed_by(Path(text[1:]))
    name, _, count = text.strip().partition(":")
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


def _armed_by(file: Path) -> Watch:
    kill: Watch | None = None

    def look(reached: str) -> None:
        nonlocal kill
        if kill is None:
            try:
                kill = armed(file.read_text())
            except FileNotFoundError:
                return
        if kill is not None:
            kill(reached)

    return look


watch: Watch | None = armed(os.environ.get(VARIABLE))
"""For tests: called with the name of each point that is reached."""


def reach(name: str) -> None:
    """This point is reached."""
    if watch is not None:
        watch(name)
