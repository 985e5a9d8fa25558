"""Deliveries of a session under way to its client: packet identifiers, the window, what is sent next and again. No
packets are written here. `states.TO_CLIENT` is the table of an exchange; what waits is in `waiting`.

Deliveries are sent in the order in which they were offered while nothing holds those with QoS 1 and 2 back: a full
window of the client, or a message that is in the log only. Then those with QoS 0 overtake them, which 4.6 and 4.9
allow; within QoS 1 and 2 nothing overtakes ([MQTT-4.6.0-5], [MQTT-4.6.0-6]).

Longer than most modules because one window ties its parts together: what is sent, loaded, acknowledged and sent again.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from typing import Final, TypedDict

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.errors import PacketError
from leafcuttr_mqtt.packets.types import ReasonCode, Version
from leafcuttr_mqtt.session.aliases import OutboundAliases
from leafcuttr_mqtt.session.limits import MOST_IN_FLIGHT, ClientLimits, QueueLimits
from leafcuttr_mqtt.session.sizes import publish_size
from leafcuttr_mqtt.session.types import Delivery, Drop, DropReason, Sending
from leafcuttr_mqtt.session.waiting import Waiting

ERROR: Final = 0x80
"""Reason codes from here on are errors (2.4)."""
ALL: Final = 1 << 60
"""Bytes that no connection holds back."""


def packet_id_of(sequence: int) -> int:
    """1 to 65,535, and the same for the same delivery after a restart."""
    return sequence % MOST_IN_FLIGHT + 1


class OutboundSnapshot(TypedDict):
    """What is on its way to a client, as plain data. What is in memory only is not in it."""

    next_sequence: int
    sent: int
    """All deliveries with lower sequences were sent before."""
    deliveries: Iterable[tuple[int, int, bool, tuple[int, ...], int, int]]
    """Sequence, QoS, RETAIN, subscription identifiers, size and offset; in the order of sequences."""
    released: list[int]
    """Sequences that await PUBCOMP, in the order of their PUBRECs."""


class Outbound:
    """The deliveries of one session."""

    __slots__ = (
        "_again",
        "_aliases",
        "_largest",
        "_limits",
        "_loading",
        "_lost",
        "_released",
        "_unacknowledged",
        "_v5",
        "_waiting",
        "_window",
        "connected",
        "drops",
        "may_receive",
        "next_sequence",
        "sent",
    )

    def __init__(self, limits: QueueLimits) -> None:
        self._limits = limits
        self.connected = False
        self.next_sequence = 0
        """Of the next delivery with QoS 1 or 2."""
        self.sent = 0
        """All deliveries with QoS 1 and 2 below this sequence were sent at least once, and none from it on."""
        self.drops: list[Drop] = []
        """What `take` has given up since this list was emptied, which is up to its reader."""
        self.may_receive: Callable[[str], bool] | None = None
        """Whether the client may have the messages of a topic, where it has not all rights."""
        self._waiting = Waiting(limits)
        self._unacknowledged: dict[int, Delivery] = {}
        """By packet identifier, in the order of sequences: awaiting PUBACK or PUBREC."""
        # Made when they are needed: a session without deliveries stays small.
        self._released: dict[int, Delivery] | None = None
        """By packet identifier, in the order of PUBRECs: awaiting PUBCOMP, without their messages."""
        self._again: dict[int, Delivery] | None = None
        """Those of `_unacknowledged` that are not sent on this connection yet."""
        self._loading: dict[int, Delivery] | None = None
        """By sequence, those whose messages are being read from the log."""
        self._lost: set[int] | None = None
        """Sequences whose messages the log has no more."""
        self._window = 0
        self._largest: int | None = None
        self._aliases: OutboundAliases | None = None
        self._v5 = False

    # Connections.

    def connect(self, client: ClientLimits) -> list[int]:
        """A connection begins or takes over. The packet identifiers for which PUBREL is sent now, in the order of
        their PUBRECs; PUBLISH packets follow with `take`, first those that are sent again, in their order
        ([MQTT-4.4.0-1])."""
        self.connected = True
        self._v5 = client.version >= Version.V5
        self._window = min(client.receive_maximum, self._limits.max_inflight)
        self._largest = client.maximum_packet_size
        self._aliases = OutboundAliases(client.topic_aliases) if self._v5 and client.topic_aliases else None
        self._again = dict(self._unacknowledged) or None
        self._waiting.keeps = self._limits.memory_bytes
        return list(self._released or ())

    def disconnect(self) -> None:
        """The connection has ended. Deliveries with QoS 0 that wait are given up: they are delivered at most once,
        and not kept for later. What is in the log is held there only."""
        self.connected = False
        self._aliases = self._again = self._loading = None
        waiting = self._waiting
        waiting.keeps = 0
        waiting.clear_0()
        waiting.give_up_memory()
        for delivery in self._unacknowledged.values():
            if delivery.offset >= 0:
                delivery.message = None

    # What waits.

    @property
    def messages(self) -> int:
        """How many wait."""
        return self._waiting.count

    @property
    def bytes(self) -> int:
        """How many bytes of messages wait."""
        return self._waiting.bytes

    @property
    def has_qos_0(self) -> bool:
        """Whether one with QoS 0 waits: it is sent as soon as the client takes more, whatever it acknowledges."""
        return bool(self._waiting.qos_0)

    @property
    def oldest(self) -> Delivery | None:
        """Of those that wait the one that came first; those with QoS 0 count where no other waits."""
        waiting = self._waiting
        first = next(iter(waiting), None)
        return waiting.qos_0[0][1] if first is None and waiting.qos_0 else first

    @property
    def under_way(self) -> int:
        """How many have packet identifiers in use."""
        return len(self._unacknowledged) + len(self._released or ())

    @property
    def is_clear(self) -> bool:
        """Whether a message with QoS 0 may be sent right away, as it is, without `offer` and `take`: nothing waits
        before it, and the client has no limit that the packet would have to be checked for."""
        return self.connected and not self._waiting.count and self._largest is None and self._aliases is None

    @property
    def memory_is_full(self) -> bool:
        """Whether the next delivery is better noted in the log, also of a session that ends with its connection."""
        return self._waiting.memory >= self._limits.memory_bytes

    def number(self) -> int:
        """The sequence of the next delivery with QoS 1 or 2, where the log has to know it before it is offered. Those
        numbered are offered in the order of their numbers."""
        sequence = self.next_sequence
        self.next_sequence = sequence + 1
        return sequence

    def offer(self, delivery: Delivery) -> Sequence[Drop]:
        """A delivery waits from now on; one with QoS 0 of a session without a connection is left out, uncounted. What
        has to go for it: the oldest with QoS 0, then the oldest. One with QoS 1 or 2 is the session's alone: it is
        changed."""
        if delivery.qos and delivery.sequence < 0:
            delivery.sequence = self.next_sequence
            self.next_sequence += 1
        if delivery.size > self._limits.max_bytes:
            return [Drop(delivery, DropReason.QUEUE_FULL)]
        waiting = self._waiting
        if delivery.qos:
            waiting.add(delivery)
        elif self.connected:
            waiting.add_0(self.next_sequence, delivery)
        if waiting.fits():
            return ()
        drops: list[Drop] = []
        while not waiting.fits():
            oldest = waiting.pop_oldest()
            self._forget(oldest)
            drops.append(Drop(oldest, DropReason.QUEUE_FULL))
        return drops

    def expire(self, now_ms: int) -> list[Drop]:
        """Give up what waits, has expired and is in memory. `take` does so too, for what is sent next."""

        def expired(delivery: Delivery) -> bool:
            message = delivery.message
            return message is not None and message.expires_ms is not None and message.expires_ms <= now_ms

        return self._removed(expired, DropReason.EXPIRED)

    def lose(self, before_offset: int, place_of: Callable[[int], int]) -> list[Drop]:
        """The log has nothing below this offset any more: what is there only is given up. `place_of` says where a
        message is by now that had an offset when it was stored."""

        def lost(delivery: Delivery) -> bool:
            return (
                delivery.message is None
                and delivery.offset >= 0
                and place_of(delivery.offset) < before_offset
            )

        drops = self._removed(lost, DropReason.LOST)
        for packet_id in [key for key, each in self._unacknowledged.items() if lost(each)]:
            delivery = self._unacknowledged[packet_id]
            self._done(packet_id, delivery)
            drops.append(Drop(delivery, DropReason.LOST))
        return drops

    def log_is_gone(self) -> tuple[list[Delivery], int]:
        """The log of queued messages was deleted. Those that were there and are in memory too, which have no offset any
        more; and how many were there only, and are given up."""
        kept, lost = self._waiting.log_is_gone()
        sent: list[Delivery] = []
        for packet_id, delivery in list(self._unacknowledged.items()):
            if delivery.offset < 0:
                continue
            delivery.offset = -1
            if delivery.message is None:
                self._done(packet_id, delivery)
                lost += 1
            else:
                sent.append(delivery)
        self._loading = self._lost = None
        return sent + kept, lost

    @property
    def sequences(self) -> list[int]:
        """Of the deliveries with QoS 1 and 2 that wait, or await PUBACK or PUBREC."""
        return [each.sequence for each in chain(self._unacknowledged.values(), self._waiting)]

    def clear(self) -> list[Drop]:
        """The session ends. What it had, so that the log can forget it; nothing may be done with it afterwards."""
        ends = chain(self._unacknowledged.values(), (self._released or {}).values(), self._waiting)
        drops = [Drop(each, DropReason.SESSION_ENDED) for each in ends]
        self.connected = False
        self._unacknowledged = {}
        self._released = self._again = None
        self._waiting = Waiting(self._limits)
        return drops

    # What is sent.

    def take(self, now_ms: int, max_bytes: int = ALL) -> list[Sending]:
        """What is sent now: as much as the client's window allows, and no more once it has reached `max_bytes`. What it
        gives up is in `drops`. Afterwards `loads` may have something."""
        sendings: list[Sending] = []
        waiting = self._waiting
        if not self.connected or not (waiting.count or self._again):
            return sendings
        in_use, released = self._unacknowledged, self._released
        window = self._window - len(in_use) - (len(released) if released else 0)
        if self._again:
            window += len(self._again)
            window, max_bytes = self._take_again(sendings, window, max_bytes, now_ms)
            if self._again:
                window = 0
        qos_0 = waiting.qos_0
        while max_bytes > 0:
            delivery: Delivery | None = None
            packet_id = 0
            if window > 0 and (near := waiting.near or waiting.refill(self._window)):
                delivery = near[0]
                packet_id = delivery.sequence % MOST_IN_FLIGHT + 1
                if (
                    (delivery.message is None and not (self._lost and delivery.sequence in self._lost))
                    # 65,535 sequences ago, and still under way.
                    or packet_id in in_use
                    or (released and packet_id in released)
                ):
                    delivery = None
                    window = 0
            if qos_0 and (delivery is None or qos_0[0][0] <= delivery.sequence):
                first = waiting.pop_0()
                sending = self._sending(first, 0, False, now_ms)
                if sending is not None:
                    sendings.append(sending)
                    max_bytes -= first.size
                continue
            if delivery is None:
                break
            waiting.pop()
            sending = self._sending(delivery, packet_id, False, now_ms)
            if sending is None:
                continue
            self.sent = delivery.sequence + 1
            in_use[packet_id] = delivery
            window -= 1
            max_bytes -= delivery.size
            sendings.append(sending)
        return sendings

    def _take_again(
        self, sendings: list[Sending], window: int, max_bytes: int, now_ms: int
    ) -> tuple[int, int]:
        """What was sent on an earlier connection, in the same order. What is left of the window and the bytes."""
        again = self._again
        assert again is not None
        for packet_id, delivery in list(islice(again.items(), max(window, 0))):
            if max_bytes <= 0 or (
                delivery.message is None and not (self._lost and delivery.sequence in self._lost)
            ):
                break
            sending = self._sending(delivery, packet_id, True, now_ms)
            if sending is None:
                self._done(packet_id, delivery)
                continue
            del again[packet_id]
            window -= 1
            max_bytes -= delivery.size
            sendings.append(sending)
        return window, max_bytes

    def _sending(self, delivery: Delivery, packet_id: int, duplicate: bool, now_ms: int) -> Sending | None:
        """None: it is not sent, and is in `drops`."""
        message = delivery.message
        if message is None:
            self._forget(delivery)
            self.drops.append(Drop(delivery, DropReason.LOST))
            return None
        if self.may_receive is not None and not self.may_receive(message.topic):
            self.drops.append(Drop(delivery, DropReason.NOT_ALLOWED))
            return None
        expiry_s: int | None = None
        if message.expires_ms is not None:
            left_ms = message.expires_ms - now_ms
            # One that was sent before has begun to be delivered, and is not given up ([MQTT-3.3.2-5]).
            if left_ms <= 0 and not duplicate:
                self.drops.append(Drop(delivery, DropReason.EXPIRED))
                return None
            if self._v5:
                expiry_s = max(0, -(-left_ms // 1000))  # [MQTT-3.3.2-6]
        if self._aliases is None and self._largest is None:
            return Sending(delivery, packet_id, duplicate, 0, False, expiry_s)
        alias, known = (0, False) if self._aliases is None else self._aliases.get(message.topic)
        if self._largest is not None:
            size = publish_size(
                message,
                v5=self._v5,
                qos=delivery.qos,
                identifiers=delivery.identifiers,
                expiry=expiry_s is not None,
                alias=bool(alias),
                topic_left_out=known,
            )
            if alias and not known and size > self._largest >= size - 3:
                # Setting an alias is what makes it too large.
                alias = 0
            elif size > self._largest:  # [MQTT-3.1.2-24], [MQTT-3.1.2-25]
                self.drops.append(Drop(delivery, DropReason.TOO_LARGE))
                return None
        if alias and not known and self._aliases is not None:
            self._aliases.put(message.topic, alias)
        return Sending(delivery, packet_id, duplicate, alias, known, expiry_s)

    # Messages that are in the log only.

    def loads(self) -> list[Delivery]:
        """Deliveries whose turn comes next and whose messages are to be read from the log, each of them once: `loaded`
        brings the messages, then `take` may have more. As many as the window, and about `memory_bytes` of them."""
        if not self.connected or not (self._waiting.count or self._again):
            return []
        found: list[Delivery] = []
        left = self._limits.memory_bytes - self._waiting.memory
        near = self._waiting.refill(self._window)
        line = islice(chain((self._again or {}).values(), near), self._window)
        for place, delivery in enumerate(line):
            if delivery.message is not None or (self._lost and delivery.sequence in self._lost):
                continue
            if self._loading is None:
                self._loading = {}
            if delivery.sequence not in self._loading:
                # The first one in any case: nothing goes on without it.
                if left <= 0 and place:
                    break
                self._loading[delivery.sequence] = delivery
                found.append(delivery)
            left -= delivery.size
        return found

    def loaded(self, delivery: Delivery, message: Message | None) -> None:
        """The message of a delivery of `loads`; None: the log has it no more. One that is not needed any more is
        ignored, as one for a connection of before, whose delivery is another object by now."""
        if not self._loading or self._loading.get(delivery.sequence) is not delivery:
            return
        del self._loading[delivery.sequence]
        if message is None:
            if self._lost is None:
                self._lost = set()
            self._lost.add(delivery.sequence)
        else:
            delivery.message = message
            if self._unacknowledged.get(packet_id_of(delivery.sequence)) is not delivery:
                self._waiting.loaded(delivery)

    # Acknowledgements.

    def puback(self, packet_id: int) -> Delivery | None:
        """The delivery that is done; None: it is unknown. Raises PacketError."""
        delivery = self._unacknowledged.get(packet_id)
        if delivery is None:
            if self._released and packet_id in self._released:
                raise _wrong("PUBACK", packet_id, "PUBCOMP")
            return None
        if delivery.qos != 1:
            raise _wrong("PUBACK", packet_id, "PUBREC")
        self._done(packet_id, delivery)
        return delivery

    def pubrec(self, packet_id: int, reason: int = 0) -> Delivery | None:
        """The delivery that the client has, or refuses for good if the reason is an error; None: it is unknown, for
        PUBREL with the reason 0x92. Raises PacketError."""
        delivery = self._unacknowledged.get(packet_id)
        if delivery is None:
            if not self._released or packet_id not in self._released:
                return None
            return self._released.pop(packet_id) if reason >= ERROR else self._released[packet_id]
        if delivery.qos != 2:
            raise _wrong("PUBREC", packet_id, "PUBACK")
        self._done(packet_id, delivery)
        if reason < ERROR:
            delivery.message = None
            if self._released is None:
                self._released = {}
            self._released[packet_id] = delivery
        return delivery

    def pubcomp(self, packet_id: int) -> Delivery | None:
        """The delivery that is done; None: it is unknown. Raises PacketError."""
        if self._released and packet_id in self._released:
            return self._released.pop(packet_id)
        if packet_id in self._unacknowledged:
            qos = self._unacknowledged[packet_id].qos
            raise _wrong("PUBCOMP", packet_id, "PUBACK" if qos == 1 else "PUBREC")
        return None

    # Restarts.

    def snapshot(self) -> OutboundSnapshot:
        kept = chain(self._unacknowledged.values(), self._waiting)
        return {
            "next_sequence": self.next_sequence,
            "sent": self.sent,
            "deliveries": [
                (each.sequence, each.qos, each.retain, each.identifiers, each.size, each.offset)
                for each in kept
                if each.offset >= 0
            ],
            "released": [each.sequence for each in (self._released or {}).values()],
        }

    @classmethod
    def restored(cls, limits: QueueLimits, snapshot: OutboundSnapshot, *, was_connected: bool) -> "Outbound":
        """After a restart. `was_connected`: the snapshot is from before the end of a connection, and more may have been
        sent than it says: as many as can be under way are taken for sent. What is above the bounds is dropped with the
        next `offer`."""
        new = cls(limits)
        new.next_sequence = snapshot["next_sequence"]
        new.sent = snapshot["sent"]
        new._released = {
            packet_id_of(each): Delivery(None, 2, False, sequence=each) for each in snapshot["released"]
        } or None
        waiting = new._waiting
        for sequence, qos, retain, identifiers, size, offset in snapshot["deliveries"]:
            if not waiting.count:
                packet_id = packet_id_of(sequence)
                if packet_id not in new._unacknowledged and packet_id not in (new._released or ()):
                    if was_connected and new.under_way < limits.max_inflight:
                        new.sent = max(new.sent, sequence + 1)
                    if sequence < new.sent:
                        delivery = Delivery(None, qos, retain, identifiers, size, offset, sequence)
                        new._unacknowledged[packet_id] = delivery
                        continue
            waiting.restore(sequence, qos, retain, identifiers, size, offset)
        return new

    # Inside.

    def _done(self, packet_id: int, delivery: Delivery) -> None:
        del self._unacknowledged[packet_id]
        if self._again:
            self._again.pop(packet_id, None)
        if self._loading or self._lost:
            self._forget(delivery)

    def _forget(self, delivery: Delivery) -> None:
        """It is sent no more: what comes from the log for it is ignored."""
        if self._loading:
            self._loading.pop(delivery.sequence, None)
        if self._lost:
            self._lost.discard(delivery.sequence)

    def _removed(self, which: Callable[[Delivery], bool], reason: DropReason) -> list[Drop]:
        removed = self._waiting.remove(which)
        for delivery in removed:
            self._forget(delivery)
        return [Drop(delivery, reason) for delivery in removed]


def _wrong(came: str, packet_id: int, expected: str) -> PacketError:
    return PacketError(
        ReasonCode.PROTOCOL_ERROR, f"{came} for packet identifier {packet_id}, which awaits {expected}"
    )
