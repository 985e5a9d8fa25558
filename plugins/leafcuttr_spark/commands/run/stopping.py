"""SIGTERM and SIGINT: the first one lets the batch under way be finished, a second one does not wait for it."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class StopRequest:
    """Whether the run is to end."""

    def __init__(self) -> None:
        self.count = 0

    @property
    def is_made(self) -> bool:
        return self.count > 0

    @property
    def is_urgent(self) -> bool:
        return self.count > 1


@contextmanager
def stop_by_signal() -> Iterator[StopRequest]:
    """For the main thread. The handlers of before are back at the end."""
    request = StopRequest()

    def handle(number: int, frame: FrameType | None) -> None:
        request.count += 1

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
