"""A session, a client that follows the specification, and connections between them that break anywhere, at which the
broker may be restarted: QoS 1 at least once, QoS 2 exactly once, in order, within the window and the bounds."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import (
    Connect,
    Packet,
    Properties,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    PubRel,
    Version,
)
from leafcuttr_mqtt.session.conversation import Conversation
from leafcuttr_mqtt.session.events import Acknowledged, Answer, Connected, Received, Released, Repeated
from leafcuttr_mqtt.session.inbound import packet_id_of_number
from leafcuttr_mqtt.session.limits import Limits, QueueLimits
from leafcuttr_mqtt.session.outbound import Outbound, packet_id_of
from leafcuttr_mqtt.session.session import Session
from leafcuttr_mqtt.session.types import Delivery, Drop, DropReason
from support.gates_slice import sampled

TOPICS = ("a", "long/topic/b")
FEW = QueueLimits(max_inflight=3, max_messages=8, max_bytes=400, memory_bytes=100)
MANY = QueueLimits(max_inflight=5, max_messages=1000, max_bytes=10**6, memory_bytes=150)


class Broker:
    """What the server part and storage do, as little of it as possible. `log` and what is noted of it survive."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.log: list[Message] = []
        self.queued: dict[int, tuple[int, int, int]] = {}
        """By sequence: offset, QoS, size."""
        self.released: dict[int, None] = {}
        self.received: dict[int, int] = {}
        self.next_number = 0
        self.next_sequence = -1
        self.stored: list[tuple[int, Any]] = []
        """Messages of the client: number, payload."""
        self.published: list[Any] = []
        """Payloads with QoS 1."""
        self.dropped: list[Drop] = []
        self.session = Session("c", limits.queue)
        self.session.expiry_s = 100
        self.known = False

    def restart(self) -> None:
        self.session = Session("c", self.limits.queue)
        self.session.expiry_s = 100
        self.session.outbound = Outbound.restored(
            self.limits.queue,
            {
                "next_sequence": max([self.next_sequence, *self.queued]) + 1,
                "sent": 0,
                "deliveries": [
                    (sequence, qos, False, (), size, offset)
                    for sequence, (offset, qos, size) in sorted(self.queued.items())
                ],
                "released": list(self.released),
            },
            was_connected=True,
        )
        self.session.inbound.restore(self.received.values(), self.next_number)

    def offer(self, message: Message, qos: int, size: int, *, stored: bool) -> None:
        delivery = Delivery(message, qos, False, (), size)
        drops = self.session.outbound.offer(delivery)
        if qos:
            self.log.append(message)
            self.queued[delivery.sequence] = (len(self.log) - 1, qos, size)
            self.next_sequence = delivery.sequence
            if stored:
                delivery.offset = len(self.log) - 1
        self.note(drops)

    def note(self, drops: list[Drop] | Any) -> None:
        for drop in drops:
            self.dropped.append(drop)
            self.queued.pop(drop.delivery.sequence, None)


class LossyConnections(RuleBasedStateMachine):
    @initialize(
        version=st.sampled_from([Version.V3_1_1, Version.V5]),
        queue=st.sampled_from([FEW, MANY]),
        receive_maximum=st.integers(1, 4),
    )
    def begin(self, version: Version, queue: QueueLimits, receive_maximum: int) -> None:
        self.version = version
        self.limits = Limits(queue=queue, receive_maximum=receive_maximum, aliases_to_client=1)
        self.broker = Broker(self.limits)
        self.conversation: Conversation | None = None
        self.now_ms = 0
        self.offered: list[tuple[str, int, int]] = []
        """Topic, QoS, count."""
        # The client, what it has received.
        self.got: list[tuple[str, int, int]] = []
        self.holds: set[int] = set()
        """Packet identifiers with QoS 2 whose message it has."""
        self.awaited: dict[int, int] = {}
        """The server's packets that it has not answered for good, by packet identifier: QoS."""
        self.aliases: dict[int, str] = {}
        # The client, what it sends.
        self.sends: dict[int, tuple[int, int]] = {}
        """Packet identifier: QoS and payload, of PUBLISH that is unanswered."""
        self.releases: dict[int, None] = {}
        self.sent = 0
        self.sent_log: list[tuple[int, int]] = []
        self.next_id = 0
        self.to_client: deque[Packet] = deque()
        self.to_server: deque[Packet] = deque()
        self.quota = 0
        self.maximum = 0
        self.turn: list[Any] = []
        self.loading: list[Delivery] = []
        self.sent_again = 0
        self.restored = (0, 0)
        self.unsure: set[int] = set()
        """What the client had before a restart, which may not know that."""

    # The connection.

    @precondition(lambda self: self.conversation is None)
    @rule(receive_maximum=st.integers(1, 4), aliases=st.integers(0, 2))
    def connect(self, receive_maximum: int, aliases: int) -> None:
        properties = Properties(
            session_expiry_interval=100, receive_maximum=receive_maximum, topic_alias_maximum=aliases
        )
        if self.version != Version.V5:
            properties = Properties()
        conversation = Conversation(self.limits)
        events = conversation.receive([Connect(self.version, "c", False, 0, properties=properties)])
        assert [type(each) for each in events] == [Connected]
        packets = conversation.accept(self.broker.session, present=self.broker.known)
        self.broker.known = True
        self.conversation = conversation
        self.to_client.extend(packets[1:])
        self.maximum = receive_maximum if self.version == Version.V5 else 10**6
        self.awaited.clear()
        self.aliases.clear()
        # The client goes on: [MQTT-4.4.0-1].
        self.quota = self.limits.receive_maximum if self.version == Version.V5 else 10**6
        for packet_id in self.releases:
            self.to_server.append(PubRel(packet_id))
        self.unsent = list(self.sends)
        self.send_again()

    @precondition(lambda self: self.conversation is not None)
    @rule(kind=st.sampled_from(["broken", "restart", "abandoned"]))
    def break_connection(self, kind: str) -> None:
        """What is on its way is lost; the read that is being stored is stored, refused for now, or half done."""
        self.to_client.clear()
        self.to_server.clear()
        self.conversation = None
        if kind == "broken":
            self.conclude()
        else:
            for event in self.turn:
                if type(event) is Publish and event.qos == 2:
                    inbound = self.broker.session.inbound
                    inbound.abandoned(event.packet_id)
            self.turn = [] if kind == "restart" else [each for each in self.turn if type(each) is not Publish]
            self.conclude()
        if kind == "restart":
            self.loading.clear()
            self.broker.restart()
            # Acknowledgements that were not noted are lost, so there may be more than before.
            self.restored = (self.broker.session.outbound.messages, self.broker.session.outbound.bytes)
            self.unsure |= {count for _, _, count in self.got}
        self.broker.session.disconnect(self.now_ms)
        self.to_client.clear()

    # What the broker delivers.

    @rule(
        topic=st.sampled_from(TOPICS),
        qos=st.integers(0, 2),
        size=st.integers(10, 90),
        expires=st.none() | st.integers(1, 5000),
        stored=st.booleans(),
    )
    def offer(self, topic: str, qos: int, size: int, expires: int | None, stored: bool) -> None:
        count = len(self.offered)
        self.offered.append((topic, qos, count))
        expires_ms = None if expires is None else self.now_ms + expires
        message = Message(topic, b"%d" % count, qos, expires_ms=expires_ms)
        if qos or self.broker.session.connected:
            self.restored = (0, 0)
        self.broker.offer(message, qos, size, stored=stored or self.broker.session.connected is False)

    @rule()
    def settle_offsets(self) -> None:
        """The turn is written: deliveries learn where in the log they are."""
        for delivery in self.broker.session.outbound._waiting:
            entry = self.broker.queued.get(delivery.sequence)
            if entry is not None and delivery.offset < 0:
                delivery.offset = entry[0]

    @rule(milliseconds=st.integers(1, 2000))
    def pass_time(self, milliseconds: int) -> None:
        self.now_ms += milliseconds
        self.broker.note(self.broker.session.outbound.expire(self.now_ms))

    @precondition(lambda self: self.conversation is not None)
    @rule(max_bytes=st.sampled_from([1, 100, 10**6]))
    def take(self, max_bytes: int) -> None:
        outbound = self.broker.session.outbound
        for sending in outbound.take(self.now_ms, max_bytes):
            self.sent_again += sending.duplicate
            message = sending.delivery.message
            assert message is not None
            properties = Properties(topic_alias=sending.alias or None)
            self.to_client.append(
                Publish(
                    "" if sending.topic_left_out else message.topic,
                    message.payload,
                    sending.delivery.qos,
                    packet_id=sending.packet_id,
                    duplicate=sending.duplicate,
                    properties=properties,
                )
            )
        self.broker.note(outbound.drops)
        outbound.drops.clear()
        self.loading += outbound.loads()

    @precondition(lambda self: self.loading)
    @rule(data=st.data())
    def load(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.loading) - 1))
        delivery = self.loading.pop(at)
        self.broker.session.outbound.loaded(delivery, self.broker.log[delivery.offset])

    # What the client does.

    @precondition(lambda self: self.to_client)
    @rule()
    def client_reads(self) -> None:
        packet = self.to_client.popleft()
        match packet:
            case Publish(qos=qos, packet_id=packet_id):
                alias = packet.properties.topic_alias
                if alias is not None:
                    if packet.topic:
                        self.aliases[alias] = packet.topic
                    packet.topic = self.aliases[alias]
                item = (packet.topic, qos, int(packet.payload))
                if qos:
                    assert packet_id not in self.awaited or packet_id in self.holds
                    self.awaited[packet_id] = qos
                    # [MQTT-3.3.4-9]
                    assert len(self.awaited) <= self.maximum
                if qos == 1:
                    self.got.append(item)
                    self.to_server.append(PubAck(packet_id))
                    del self.awaited[packet_id]
                elif qos == 2:
                    if packet_id not in self.holds:
                        self.holds.add(packet_id)
                        self.got.append(item)
                    self.to_server.append(PubRec(packet_id))
                else:
                    self.got.append(item)
            case PubRel(packet_id):
                self.holds.discard(packet_id)
                self.awaited.pop(packet_id, None)
                self.to_server.append(PubComp(packet_id))
            case PubAck(packet_id):
                assert self.sends.pop(packet_id)[0] == 1
                self.credit()
            case PubRec(packet_id):
                if packet_id in self.sends:
                    assert self.sends.pop(packet_id)[0] == 2
                    self.releases[packet_id] = None
                self.to_server.append(PubRel(packet_id))
            case PubComp(packet_id):
                self.releases.pop(packet_id, None)
                self.credit()

    def credit(self) -> None:
        if self.version == Version.V5:
            self.quota = min(self.quota + 1, self.limits.receive_maximum)
        self.send_again()

    def send_again(self) -> None:
        while self.unsent and self.quota:
            packet_id = self.unsent.pop(0)
            self.quota -= 1
            qos, payload = self.sends[packet_id]
            self.to_server.append(Publish("up", b"%d" % payload, qos, packet_id=packet_id, duplicate=True))

    @precondition(lambda self: self.conversation is not None and self.quota > 0 and not self.unsent)
    @rule(qos=st.integers(1, 2))
    def client_publishes(self, qos: int) -> None:
        packet_id = next(
            each for each in range(1, 100) if each not in self.sends and each not in self.releases
        )
        self.sent_log.append((qos, self.sent))
        self.sends[packet_id] = (qos, self.sent)
        self.to_server.append(Publish("up", b"%d" % self.sent, qos, packet_id=packet_id))
        self.sent += 1
        self.quota -= 1

    @precondition(lambda self: self.conversation is not None)
    @rule(
        steps=st.lists(st.sampled_from(["take", "load", "client", "server", "turn"]), min_size=5, max_size=30)
    )
    def go_on(self, steps: list[str]) -> None:
        """Many steps at once: single ones alone do not get far between two breaks."""
        for step in steps:
            if step == "take":
                self.take(100)
            elif step == "load" and self.loading:
                delivery = self.loading.pop(0)
                self.broker.session.outbound.loaded(delivery, self.broker.log[delivery.offset])
            elif step == "client" and self.to_client:
                self.client_reads()
            elif step == "server" and self.to_server and not self.turn:
                self.server_reads(2)
            elif step == "turn" and self.turn:
                self.conclude()

    # What the server does with what comes.

    @precondition(lambda self: self.to_server and not self.turn and self.conversation is not None)
    @rule(most=st.integers(1, 6))
    def server_reads(self, most: int) -> None:
        conversation = self.conversation
        assert conversation is not None
        packets = [self.to_server.popleft() for _ in range(min(most, len(self.to_server)))]
        self.turn = conversation.receive(packets)
        assert conversation.error is None, conversation.error.text

    @precondition(lambda self: self.turn)
    @rule()
    def conclude(self) -> None:
        """The turn of a read: what it brought is noted, then answered."""
        broker, inbound = self.broker, self.broker.session.inbound
        answers: list[Packet] = []
        for event in self.turn:
            match event:
                case Publish(qos=1, packet_id=packet_id):
                    broker.published.append(int(event.payload))
                    inbound.acknowledged()
                    answers.append(PubAck(packet_id))
                case Publish(qos=2, packet_id=packet_id):
                    number = inbound.number_of(packet_id)
                    assert number >= broker.next_number
                    assert packet_id_of_number(number) == packet_id
                    broker.stored.append((number, int(event.payload)))
                    broker.received[packet_id] = number
                    broker.next_number = max(broker.next_number, number + 1)
                    inbound.stored(packet_id)
                    answers.append(PubRec(packet_id))
                case Repeated(packet_id):
                    assert inbound.can_answer(packet_id)
                    answers.append(PubRec(packet_id))
                case Released(packet_id):
                    broker.received.pop(packet_id, None)
                    inbound.completed(packet_id)
                    answers.append(PubComp(packet_id))
                case Acknowledged(deliveries):
                    for delivery in deliveries:
                        broker.queued.pop(delivery.sequence, None)
                        broker.released.pop(delivery.sequence, None)
                case Received(deliveries):
                    for delivery in deliveries:
                        broker.queued.pop(delivery.sequence, None)
                        broker.released[delivery.sequence] = None
                        answers.append(PubRel(packet_id_of(delivery.sequence)))
                case Answer(packet):
                    answers.append(packet)
                case _:
                    raise AssertionError(event)
        self.turn = []
        if self.conversation is not None:
            self.to_client.extend(answers)

    # What holds.

    @invariant()
    def bounds_hold(self) -> None:
        if not hasattr(self, "broker"):
            return
        outbound, queue = self.broker.session.outbound, self.limits.queue
        assert outbound.messages <= max(queue.max_messages, self.restored[0])
        assert 0 <= outbound.bytes <= max(queue.max_bytes, self.restored[1])
        waiting = list(outbound._waiting)
        qos_0 = [delivery for _, delivery in outbound._waiting.qos_0]
        assert outbound.messages == len(waiting) + len(qos_0)
        assert outbound.bytes == sum(each.size for each in waiting + qos_0)
        assert outbound._waiting.memory == sum(each.size for each in waiting if each.message is not None)
        sequences = [each.sequence for each in waiting]
        assert sequences == sorted(sequences)
        assert outbound.under_way <= queue.max_inflight

    def teardown(self) -> None:
        """The connection holds at last: everything comes to its end."""
        if not hasattr(self, "broker"):
            return
        if self.conversation is None:
            self.connect(2, 0)
        self.settle_offsets()
        for _ in range(10_000):
            self.take(10**6)
            while self.loading:
                delivery = self.loading.pop(0)
                self.broker.session.outbound.loaded(delivery, self.broker.log[delivery.offset])
            while self.to_client:
                self.client_reads()
            if self.to_server:
                if self.turn:
                    self.conclude()
                self.server_reads(3)
            if self.turn:
                self.conclude()
            outbound = self.broker.session.outbound
            if not (
                outbound.messages or outbound.under_way or self.to_server or self.to_client or self.sends
            ):
                break
        else:
            raise AssertionError("it does not come to an end")
        assert not self.broker.queued and not self.broker.released and not self.broker.received
        self.check_delivered()
        assert [payload for _, payload in self.broker.stored] == [
            payload for qos, payload in self.sent_log if qos == 2
        ]
        assert set(self.broker.published) == {payload for qos, payload in self.sent_log if qos == 1}

    def check_delivered(self) -> None:
        dropped = {int(self.message_of(drop).payload) for drop in self.broker.dropped}
        for drop in self.broker.dropped:
            if drop.reason is DropReason.EXPIRED:
                expires_ms = self.message_of(drop).expires_ms
                assert expires_ms is not None and expires_ms <= self.now_ms
            else:
                assert drop.reason is DropReason.QUEUE_FULL
                assert self.limits.queue is FEW
        first: dict[tuple[str, int], list[int]] = defaultdict(list)
        for topic, qos, count in self.got:
            if count not in first[topic, qos]:
                first[topic, qos].append(count)
            else:
                assert qos == 1, "more than once"
        for each in first.values():
            assert each == sorted(each)
        got = {count for counts in first.values() for count in counts}
        assert got & dropped <= self.unsure
        for _, qos, count in self.offered:
            if qos:
                assert count in got or count in dropped

    def message_of(self, drop: Drop) -> Message:
        message = drop.delivery.message
        return message if message is not None else self.broker.log[drop.delivery.offset]


LossyConnections.TestCase.settings = settings(
    max_examples=sampled(150), stateful_step_count=60, deadline=None
)
TestLossyConnections = LossyConnections.TestCase


@pytest.mark.one_in(3)
@pytest.mark.parametrize("version", [Version.V3_1_1, Version.V5])
@pytest.mark.parametrize("queue", [FEW, MANY])
def test_long_walks(version: Version, queue: QueueLimits) -> None:
    """The same for longer than hypothesis goes, with breaks that are rare enough for much to be under way."""
    machines = [walk(seed, version, queue) for seed in range(8)]
    for each in machines:
        assert each.sent_again > 10
        assert len(each.got) > 100
        assert len(each.broker.stored) > 20
        assert len(each.broker.published) > 20
    reasons = {drop.reason for each in machines for drop in each.broker.dropped}
    assert reasons == {DropReason.EXPIRED, DropReason.QUEUE_FULL} - (
        {DropReason.QUEUE_FULL} if queue is MANY else set()
    )


def walk(seed: int, version: Version, queue: QueueLimits) -> LossyConnections:
    chance = random.Random(seed)
    machine = LossyConnections()
    machine.begin(version, queue, chance.randint(1, 4))
    for _ in range(1500):
        dice = chance.random()
        connected = machine.conversation is not None
        if dice < 0.15:
            expires = chance.choice([None, None, chance.randint(1, 5000)])
            stored = chance.random() < 0.7
            machine.offer(
                chance.choice(TOPICS), chance.randint(0, 2), chance.randint(10, 90), expires, stored
            )
        elif dice < 0.18:
            machine.settle_offsets()
        elif dice < 0.2:
            machine.pass_time(chance.randint(1, 300))
        elif not connected:
            if dice > 0.7:
                machine.connect(chance.randint(1, 4), chance.randint(0, 2))
        elif dice < 0.25:
            machine.break_connection(chance.choice(["broken", "broken", "restart", "abandoned"]))
        elif dice < 0.35 and machine.quota > 0 and not machine.unsent:
            machine.client_publishes(chance.randint(1, 2))
        else:
            machine.go_on(chance.choices(["take", "load", "client", "server", "turn"], k=4))
        machine.bounds_hold()
    machine.teardown()
    return machine
