"""Time in which this process stood still (SIGSTOP, a frozen container, a paused virtual machine) is nobody's silence.

When it goes on, whatever peers have sent meanwhile lies in the sockets, unread. Who is judged by what was not heard of
him (a session, a transaction's time, an idle connection) gets a moment for that to be read first.
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
