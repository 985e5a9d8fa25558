"""What a connection's task does: it reads packets, has a client let in, and gives what comes to a `Read`.

One read is under way at a time: the next one is taken once the packets of the last are answered, so a client that is
quicker than what stores its messages is held back by TCP. What comes after a message that cannot be stored for now
waits with it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

import trio

from leafcuttr_mqtt.packets.refusals import refusal
from leafcuttr_mqtt.packets.types import Packet
from leafcuttr_mqtt.server.admission import DECIDED, Admission
from leafcuttr_mqtt.server.contract import Served
from leafcuttr_mqtt.server.states import ENDED
from leafcuttr_mqtt.server.taking import take
from leafcuttr_mqtt.session.states import Phase

if TYPE_CHECKING:
    from leafcuttr_mqtt.packets.errors import PacketError
    from leafcuttr_mqtt.packets.reader import PacketReader
    from leafcuttr_sdk.security import ClientQuota
    from leafcuttr_sdk.serving import ByteStream

READ_BYTES: Final = 64 * 1024
MOST_PACKETS: Final = 4096
"""Of a read. A client that sends more at once, which are smaller than any message, is read in smaller pieces from then
on: what a read brings is answered in one step of the loop."""
SMALL_READ_BYTES: Final = 2 * 1024
HELD_BACK_S: Final = 1.0
"""At a time: the shortest keep alive is not much longer."""


class BeingRead(Served, Protocol):
    """What is seen here of a connection."""

    admission: Admission | None
    heard: float

    @property
    def stream(self) -> "ByteStream": ...

    @property
    def quota(self) -> "ClientQuota | None": ...

    @property
    def reader(self) -> "PacketReader": ...

    async def wait_answered(self) -> None:
        """Wait until the last read is answered, and what waits for the client is not too much."""
        ...


async def read_packets(connection: "BeingRead") -> None:
    """Read until the connection has ended, or the client has ended it."""
    stream, reader, conversation = connection.stream, connection.reader, connection.conversation
    counts = connection.running.counts
    most = READ_BYTES
    while True:
        if connection.quota is not None:
            await _hold_back(connection)
        data = await stream.receive_some(most)
        if connection.client is not None:
            # Until then the time is for all of the handshake, however slowly it comes.
            connection.heard = trio.current_time()
        if connection.read is not None or connection.slow is not None:
            await connection.wait_answered()
        if not data:
            return
        counts.bytes_received += len(data)
        if connection.quota is not None:
            connection.quota.produced(len(data))
        packets = reader.feed(bytes(data))
        if len(packets) > MOST_PACKETS:
            most = SMALL_READ_BYTES
        while True:
            counts.packets_received += len(packets)
            if packets:
                await _receive(connection, packets)
            if reader.steps is None:
                break
            # A packet that takes long to read: others have their turns meanwhile.
            await connection.wait_answered()
            await trio.lowlevel.checkpoint()
            packets = reader.feed(b"")
        error = reader.error or conversation.error
        if error is not None:
            await connection.wait_answered()
            _end(connection, error)
        if connection.state is ENDED:
            return


async def _hold_back(connection: "BeingRead") -> None:
    """A client that has had more than its quota is read later. That it is not heard meanwhile is no fault of it."""
    changed = connection.running.quotas_changed
    while connection.quota is not None and connection.state is not ENDED:
        wait_s = connection.quota.wait_s()
        if wait_s <= 0:
            return
        connection.heard = trio.current_time()
        with trio.move_on_after(min(wait_s, HELD_BACK_S)):
            await changed.wait()
            changed = connection.running.quotas_changed


def _end(connection: "BeingRead", error: "PacketError") -> None:
    reader, conversation = connection.reader, connection.conversation
    said: bytes | None = None
    if conversation.phase is Phase.EXPECTS_CONNECT:
        said = refusal(error, reader.version, connected=False)
    elif conversation.version is not None:
        connection.version = conversation.version  # of a CONNECT that was read and is refused
    connection.end(error.reason, error.text, at_fault=True, said=said)


async def _receive(connection: "BeingRead", packets: Sequence[Packet]) -> None:
    conversation = connection.conversation
    events = conversation.receive(packets)
    while events:
        client = connection.client
        if client is not None and conversation.phase is not Phase.RE_AUTHENTICATING:
            take(connection, client, events)
            return
        at = next((at for at, event in enumerate(events) if isinstance(event, DECIDED)), -1)
        if at:
            if client is not None:
                take(connection, client, events if at < 0 else events[:at])
            await connection.wait_answered()
        if client is None and conversation.phase is Phase.ENDED:
            connection.lost()  # DISCONNECT in the place of AUTH
        if at < 0:
            return
        if connection.admission is None:
            connection.admission = Admission(connection, connection.stream)
        await connection.admission.decide(events[at])
        connection.running.turns.conclude()
        if connection.state is ENDED:
            return
        # What came behind CONNECT was held, what came behind AUTH on a connection that is in was not.
        events = events[at + 1 :] or conversation.receive(())
