"""What a client has under way to the server: the receive maximum of QoS 1 and 2, and the packet identifiers of QoS 2.
`states.FROM_CLIENT` is its table."""

from collections.abc import Iterable
from typing import Final

from leafcuttr_mqtt.session.limits import MOST_IN_FLIGHT

UNLIMITED: Final = 1 << 60
"""The quota of a client that knows no receive maximum: 3.1.1 has none."""


def packet_id_of_number(number: int) -> int:
    """Message numbers of QoS 2 rise with each message of the session, and end in the packet identifier: a record that
    has one says which exchange it belongs to, without anything else being stored."""
    return number & 0xFFFF


class Inbound:
    """`quota` is of a connection, all else of the session."""

    __slots__ = ("_count", "_full_quota", "_pending", "_received", "_released", "quota")

    def __init__(self) -> None:
        self.quota = UNLIMITED
        """How many more QoS 1 and 2 messages the client may send (4.9). `Conversation` counts it down, for each read at
        once."""
        self._full_quota = UNLIMITED
        self._count = 0
        """Of messages with QoS 2."""
        # Message numbers by packet identifier. The sets of states are apart, as `states` says.
        self._pending: dict[int, int] | None = None
        self._received: dict[int, int] | None = None
        self._released: dict[int, int] | None = None

    def connect(self, receive_maximum: int | None) -> None:
        """A connection begins, with the receive maximum of its CONNACK; None for a version without."""
        if receive_maximum is None:
            self.quota = self._full_quota = UNLIMITED
            return
        self.quota = receive_maximum
        # For the PUBCOMP of a message that was received on an earlier connection the client gets a credit (4.9), which
        # it may use at once if PUBLISH packets of this connection are on their way: to it these are one less than
        # to the server.
        self._full_quota = receive_maximum + len(self.received)

    @property
    def received(self) -> dict[int, int]:
        """Packet identifiers that await PUBREL, or whose PUBREL is being noted, with message numbers, for storage."""
        return {**(self._received or {}), **(self._released or {})}

    def arrive(self, packet_id: int) -> bool:
        """A PUBLISH with QoS 2. True: it is new, and PENDING under the number that `number_of` says; False: a
        repetition ([MQTT-4.3.3-10])."""
        pending = self._pending
        if pending is None:
            pending = self._pending = {}
        if (
            packet_id in pending
            or (self._received and packet_id in self._received)
            or (self._released and packet_id in self._released)
        ):
            return False
        pending[packet_id] = self._count << 16 | packet_id
        self._count += 1
        return True

    def number_of(self, packet_id: int) -> int:
        """The message number of a packet identifier in use. Raises KeyError for another."""
        for known in (self._pending, self._received, self._released):
            if known and packet_id in known:
                return known[packet_id]
        raise KeyError(packet_id)

    def acknowledged(self, count: int = 1) -> None:
        """So many PUBACKs are sent, or PUBRECs with an error for which `refused` was not called."""
        self.quota = min(self.quota + count, self._full_quota)

    def stored(self, packet_id: int) -> None:
        """A pending message with QoS 2 is where it has to be: PUBREC is sent now."""
        if self._pending and packet_id in self._pending:
            if self._received is None:
                self._received = {}
            self._received[packet_id] = self._pending.pop(packet_id)

    def refused(self, packet_id: int) -> None:
        """A pending message is refused for good: PUBREC with an error is sent now, the packet identifier is free
        (4.3.3)."""
        if self._pending and self._pending.pop(packet_id, None) is not None:
            self.acknowledged()

    def abandoned(self, packet_id: int) -> None:
        """A pending message cannot be stored for now, and the connection ends: its client sends it again."""
        if self._pending:
            self._pending.pop(packet_id, None)

    def can_answer(self, packet_id: int) -> bool:
        """Whether PUBREC can be sent for a repeated message: False while it is pending."""
        return not (self._pending and packet_id in self._pending)

    def release(self, packet_id: int) -> bool:
        """PUBREL. False: it is unknown, for PUBCOMP with the reason 0x92; otherwise it is noted, then `completed`."""
        if self._received and packet_id in self._received:
            if self._released is None:
                self._released = {}
            self._released[packet_id] = self._received.pop(packet_id)
            return True
        if self._released is not None and packet_id in self._released:
            return True
        # The PUBCOMP of an earlier connection was lost: as in `connect`, the client gets a credit for the next one.
        if self._full_quota < MOST_IN_FLIGHT:
            self._full_quota += 1
            self.quota += 1
        return False

    def completed(self, packet_id: int) -> None:
        """The release is noted: PUBCOMP is sent now."""
        if self._released and self._released.pop(packet_id, None) is not None:
            self.acknowledged()

    @property
    def next_number(self) -> int:
        """Above all message numbers of the session so far, and not above those to come."""
        return self._count << 16

    def restore(self, received: Iterable[int], next_number: int) -> None:
        """After a restart: numbers of messages that await PUBREL."""
        self._received = {packet_id_of_number(number): number for number in received} or None
        highest = max([next_number - 1, *(self._received or {}).values()])
        self._count = (highest >> 16) + 1
