"""A real broker, without sockets, whose clock is trio's: tests move it with MockClock."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

from leafcuttr.state.broker import Broker
from support.live_broker import opening


class TrioClock:
    """Both times follow trio's clock; outside of trio it is the start. The time of day has been `set_by_ms`."""

    def __init__(self) -> None:
        self.set_by_ms = 0

    def now_ms(self) -> int:
        return 1_700_000_000_000 + self.set_by_ms + round(self.monotonic() * 1000)

    def monotonic(self) -> float:
        try:
            return trio.current_time()
        except RuntimeError:
            return 0.0


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    """Open the broker on the test's directory; calling it again closes the one before: a restart."""
    with opening(tmp_path / "data", TrioClock()) as opened:
        yield lambda **settings: opened({name.replace("_", "."): value for name, value in settings.items()})
