"""Time in which this process stood still: SIGSTOP, a frozen container, a paused virtual machine.

When it goes on, what peers have sent meanwhile is in the sockets, unread. Timeouts for silent peers (a
session, a transaction, an idle connection) wait a moment first, so that it is read before they end.
"""

from typing import Final

import trio

_NOTICED_S: Final = 1.0
_MOMENT_S: Final = 5.0


async def wait_for_peers(late_s: float) -> None:
    """What was due came `late_s` too late: if the process stood still, let what has arrived be read, for as long as it
    stood still but not for longer than a moment."""
    if late_s > _NOTICED_S:
        await trio.sleep(min(late_s, _MOMENT_S))


async def sleep(seconds: float) -> None:
    """Sleep, and `wait_for_peers`."""
    due = trio.current_time() + seconds
    await trio.sleep(seconds)
    await wait_for_peers(trio.current_time() - due)
