"""Time in which this process stood still: SIGSTOP, a frozen container, a paused virtual machine.

When it goes on, what peers have sent meanwhile is in the sockets, unread. Timeouts that look for silence of a peer (a
session, a transaction, an idle connection) wait a moment first, so that it is read before they are judged.
"""

from typing import Final

import trio

_NOTICED_S: Final = 1.0
_MOMENT_S: Final = 5.0


async def hear_first(late_s: float) -> None:
    """What was due came `late_s` too late: if the process stood still, let what has arrived be read, for as long as it
    stood still but not for longer than a moment."""
    if late_s > _NOTICED_S:
        await trio.sleep(min(late_s, _MOMENT_S))


async def sleep(seconds: float) -> None:
    """Sleep, and `hear_first`."""
    due = trio.current_time() + seconds
    await trio.sleep(seconds)
    await hear_first(trio.current_time() - due)
