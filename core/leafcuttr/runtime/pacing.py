"""Long work on the event loop in short turns."""

import time
from collections.abc import AsyncIterator, Generator, Iterable
from typing import ClassVar, Final, TypeVar

import trio

TURN_S: Final = 0.002  # how long the loop is held at most, give or take one item
_LEAST_S: Final = 0.0002  # a shorter turn would go on little but changing turns

T = TypeVar("T")


class Pace:
    """Lets other tasks run: `await pace.turn()` in a long loop waits whenever the turn is over.

    Several at once have shorter turns, so that all of theirs together stay short for everybody else.
    """

    __slots__ = ("_until",)

    _waiting: ClassVar[int] = 0  # how many are between two turns

    def __init__(self) -> None:
        self._until = time.monotonic() + TURN_S

    @staticmethod
    def share() -> float:
        """How long a turn may be now, in seconds."""
        return max(TURN_S / (1 + Pace._waiting), min(_LEAST_S, TURN_S))

    @staticmethod
    async def give_way() -> None:
        """Let others have their turn: what `turn` does once it is time."""
        Pace._waiting += 1
        try:
            await trio.lowlevel.checkpoint()
        finally:
            Pace._waiting -= 1

    async def turn(self) -> None:
        if time.monotonic() >= self._until:
            await Pace.give_way()
            self._until = time.monotonic() + Pace.share()

    async def over(self, items: Iterable[T]) -> AsyncIterator[T]:
        """The items, with a turn before each: `[f(item) async for item in pace.over(items)]`."""
        for item in items:
            await self.turn()
            yield item

    async def through(self, steps: Generator[None, None, T]) -> T:
        """What the generator returns; between its steps others have their turn when it is time."""
        while True:
            try:
                next(steps)
            except StopIteration as done:
                result: T = done.value
                return result
            await self.turn()
