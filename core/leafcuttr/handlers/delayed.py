"""An answer that comes later, and for which no task has to wait: the server parks the connection and looks again when
the answer is notified. It may be awaited as well.

Members of groups are waited for by tasks: see `join_group` and `sync_group`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from typing import Any

import trio


class DelayedAnswer(ABC):
    """What it waits for calls `notify`. `deadline` is when it answers at the latest, in trio's time; `over` is whether
    it answers at the next look; `has_to_be_awaited` whether a look needs the disk, or more than one turn."""

    __slots__ = ("_notified", "_then", "deadline", "has_to_be_awaited", "over")

    def __init__(self, at_most_s: float) -> None:
        self.deadline = trio.current_time() + at_most_s
        self.over = False
        self.has_to_be_awaited = False
        self._notified = False
        self._then: Callable[[], None] | None = None

    def notify(self) -> None:
        """There is something new."""
        self._notified = True
        then, self._then = self._then, None
        if then is not None:
            then()

    def give_up(self) -> None:
        """Answer with what there is."""
        self.over = True
        self.notify()

    def when_notified(self, then: Callable[[], None]) -> None:
        """Have this called once: at once if it has been notified since the last look. It replaces an earlier one."""
        if self._notified:
            then()
        else:
            self._then = then

    @abstractmethod
    def answer(self) -> Any:
        """Look: the answer, which ends the wait, or None. Does not block; see `has_to_be_awaited`."""

    @abstractmethod
    def close(self) -> None:
        """The wait is over, with an answer or without. Closing twice is harmless."""

    @abstractmethod
    def __await__(self) -> Generator[Any, Any, Any]: ...

    async def _notification(self) -> None:
        notified = trio.Event()
        self.when_notified(notified.set)
        await notified.wait()
