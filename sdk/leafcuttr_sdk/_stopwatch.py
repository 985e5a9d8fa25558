"""The time that the event loop spends on one connection, for the quota of it (`request_percentage`, KIP-124)."""

from collections.abc import Callable, Coroutine, Generator
from time import perf_counter
from typing import Any


class Stopwatch:
    """The time that the loop has spent on one connection."""

    __slots__ = ("_since", "_spent")

    def __init__(self) -> None:
        self._spent = 0.0
        self._since: float | None = None

    def start(self) -> None:
        self._since = perf_counter()

    def stop(self) -> None:
        if self._since is not None:
            self._spent += perf_counter() - self._since
            self._since = None

    def add(self, seconds: float) -> None:
        self._spent += seconds

    def take(self) -> float:
        """What was spent since this was called last, in seconds; also if it runs."""
        spent, self._spent = self._spent, 0.0
        if self._since is not None:
            now = perf_counter()
            spent += now - self._since
            self._since = now
        return spent

    def measured(self, work: Coroutine[Any, Any, Any]) -> "_MeasuredWork":
        """An awaitable that does the work and measures it, without what it waits for."""
        return _MeasuredWork(self, work)


class ChargingStopwatch(Stopwatch):
    """Tells what each step has spent as soon as it is over."""

    __slots__ = ("_charge",)

    def __init__(self, charge: Callable[[float], None]) -> None:
        super().__init__()
        self._charge = charge

    def stop(self) -> None:
        super().stop()
        self._charge(self.take())


class _MeasuredWork:
    def __init__(self, stopwatch: Stopwatch, work: Coroutine[Any, Any, Any]) -> None:
        self._stopwatch = stopwatch
        self._work = work

    def __await__(self) -> Generator[Any, Any, Any]:
        # What the work yields and gets passes through: the loop does not notice.
        step: Callable[[Any], Any] = self._work.send
        value: Any = None
        while True:
            self._stopwatch.start()
            try:
                waits_for = step(value)
            except StopIteration as done:
                return done.value
            finally:
                value = None  # an exception would keep this frame, which would keep it
                self._stopwatch.stop()
            try:
                value = yield waits_for
                step = self._work.send
            except BaseException as error:
                step, value = self._work.throw, error
