"""What the admission of a client sees of its connection, which imports it."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leafcuttr_mqtt.packets.frames import PublishFrames
    from leafcuttr_mqtt.packets.types import Packet, ReasonCode, Version
    from leafcuttr_mqtt.routing.clients import Client
    from leafcuttr_mqtt.server.running import Running
    from leafcuttr_mqtt.session.conversation import Conversation


class Served(Protocol):
    """One connection. Nothing of this waits."""

    version: "Version"
    client: "Client | None"
    """None until its client is let in."""

    @property
    def peer(self) -> str: ...

    @property
    def listener(self) -> str: ...

    @property
    def running(self) -> "Running": ...

    @property
    def conversation(self) -> "Conversation": ...

    @property
    def fluent(self) -> bool: ...

    def send_frame(self, frames: "PublishFrames", retain: bool, identifiers: tuple[int, ...]) -> None: ...

    def put(self, data: bytes) -> None:
        """To be sent at the end of the turn."""
        ...

    def put_packet(self, packet: "Packet") -> None: ...

    def send_soon(self) -> None:
        """At the end of this turn."""
        ...

    def wait_for_store(self) -> None:
        """What is to be sent says that what was noted is stored: it is held back until that is so."""
        ...

    def touched(self) -> None:
        """The session has something to send."""
        ...

    def accepted(self, keep_alive_s: int) -> None:
        """Its client is in."""
        ...

    def expires_at(self, expires_ms: int) -> None:
        """Its client has to authenticate again by then."""
        ...

    def end(
        self,
        reason: "ReasonCode",
        text: str = "",
        *,
        at_fault: bool = False,
        log: str = "",
        said: bytes | None = None,
    ) -> None:
        """End it. `log` is what the log says in the place of the text; with `at_fault` it is a warning."""
        ...
