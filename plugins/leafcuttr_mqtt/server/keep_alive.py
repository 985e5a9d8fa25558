"""Connections whose clients have been silent for 1.5 times their keep alive ([MQTT-3.1.2-22]): one sweeper for all of
them."""

from typing import Final, Protocol

import trio

SWEEP_S: Final = 1.0
"""Between two sweeps over all connections: so much later than due a connection may end."""
_PIECE: Final = 5000
"""Connections that are checked in one step of the loop: half a millisecond."""


class Watched(Protocol):
    """A connection, as the sweeper sees it."""

    silent_s: float
    """How long its client may be silent; 0: for ever."""
    heard: float
    """By trio's clock, when something came from it last."""

    def keep_alive_is_over(self) -> None:
        """End the connection. It does not wait."""
        ...


class KeepAlive:
    """The sweeper. Connections are `added` once they are accepted, and `removed` at their end."""

    def __init__(self) -> None:
        self._watched: dict[Watched, None] = {}

    def add(self, connection: Watched) -> None:
        if connection.silent_s:
            self._watched[connection] = None

    def remove(self, connection: Watched) -> None:
        self._watched.pop(connection, None)

    async def run(self) -> None:
        """Sweep once a second."""
        while True:
            await trio.sleep(SWEEP_S)
            await self.sweep()

    async def sweep(self) -> None:
        now = trio.current_time()
        all_of_them = list(self._watched)
        for start in range(0, len(all_of_them), _PIECE):
            for each in all_of_them[start : start + _PIECE]:
                if now - each.heard > each.silent_s and each in self._watched:
                    self.remove(each)
                    each.keep_alive_is_over()
            await trio.lowlevel.checkpoint()
