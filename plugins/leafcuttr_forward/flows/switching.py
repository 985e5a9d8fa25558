"""A source that can be exchanged for another one while the flow runs: sources that are copies of each other.

The face that watches the sources calls `switch`; the flow then ends what it has begun, checks that the new source has
what it copied last, and goes on there. What it finds wrong with a source is in `refused`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leafcuttr_sdk.peers import Peer


class SourceSwitch:
    """The source that a flow reads now. All of it is of the loop's thread."""

    def __init__(self, peer: "Peer") -> None:
        import trio

        self._peer = peer
        self._event = trio.Event()
        self.number = 0
        """How often the source was exchanged."""
        self.refused: dict[str, str] = {}
        """By the name of a source why the flow does not read it: it lacks what was copied last, or has something else
        in that place. A source that ends before the position is not refused: it is waited for."""
        self.on_refused: list[Callable[[Peer, str], None]] = []
        """Called with the source and the reason; must not wait."""

    @property
    def peer(self) -> "Peer":
        """The source as it is now."""
        return self._peer

    def switch(self, peer: "Peer") -> None:
        """Read this one from now on. The same one again begins anew with it."""
        import trio

        self._peer = peer
        self.number += 1
        self.refused.pop(peer.name, None)
        event, self._event = self._event, trio.Event()
        event.set()

    def refuse(self, peer: "Peer", why: str) -> None:
        """For the flow: it does not read this source."""
        self.refused[peer.name] = why
        for call in self.on_refused:
            call(peer, why)

    async def changed(self, number: int) -> None:
        """Wait until the source is not the one any more that it was at this number."""
        while self.number == number:
            await self._event.wait()
