"""A real broker, without sockets, whose clock is trio's: tests move it with MockClock."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import trio

from leafcuttr.config.settings import Settings
from leafcuttr.state.broker import Broker, open_broker


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
    opened: list[Broker] = []

    def close() -> None:
        while opened:
            broker = opened.pop()
            broker.logs.close()
            broker.metadata.close()

    def start(**settings: str) -> Broker:
        close()
        given = {name.replace("_", "."): value for name, value in settings.items()}
        own = {"log.dirs": str(tmp_path / "data"), "node.id": "1", "group.initial.rebalance.delay.ms": "0"}
        broker = open_broker(Settings({**own, **given}), TrioClock())
        opened.append(broker)
        return broker

    yield start
    close()
