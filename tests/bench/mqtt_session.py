#!/usr/bin/env python3
"""What the session adds to an MQTT packet: the state of connection and session alone, no socket and no broker.

  mqtt_session.py [--rounds N]

500 messages a round, the cases in turn; the best of all rounds is taken. What comes from a client is taken as the
reader has it, so these are nanoseconds above it. A delivery is offered, taken and acknowledged; `each alone` does that
one by one, as for a subscriber of few messages, the others 50 at a time.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import cases
from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import Connect, Packet, PubAck, PubComp, Publish, PubRec, PubRel, Version
from leafcuttr_mqtt.session.conversation import Conversation
from leafcuttr_mqtt.session.limits import Limits, QueueLimits
from leafcuttr_mqtt.session.session import Session
from leafcuttr_mqtt.session.types import Delivery

COUNT = 500
TURN = 50
LIMITS = Limits(receive_maximum=COUNT, queue=QueueLimits(max_inflight=COUNT))
MESSAGE = Message("sensors/kitchen/temperature", b"x" * 100, 1)


def connected() -> tuple[Conversation, Session]:
    conversation = Conversation(LIMITS)
    conversation.receive([Connect(Version.V5, "c", True, 60)])
    session = Session("c", LIMITS.queue)
    conversation.accept(session, present=False)
    return conversation, session


def received(qos: int) -> Callable[[], object]:
    """PUBLISH packets of one read, acknowledged."""
    conversation, session = connected()
    inbound = session.inbound
    packets: list[Packet] = [
        Publish("sensors/kitchen/temperature", b"x" * 100, qos, packet_id=number)
        for number in range(1, COUNT + 1)
    ]
    releases: list[Packet] = [PubRel(number) for number in range(1, COUNT + 1)]

    def run() -> object:
        events = conversation.receive(packets)
        assert len(events) == COUNT
        if qos == 1:
            inbound.acknowledged(COUNT)
        elif qos == 2:
            for number in range(1, COUNT + 1):
                inbound.stored(number)
            conversation.receive(releases)
            for number in range(1, COUNT + 1):
                inbound.completed(number)
        return events

    return run


def delivered(qos: int, turn: int) -> Callable[[], object]:
    conversation, session = connected()
    outbound = session.outbound

    def run() -> object:
        for _ in range(COUNT // turn):
            for _ in range(turn):
                outbound.offer(Delivery(MESSAGE, qos, False, (), 127))
            sendings = outbound.take(0)
            assert len(sendings) == turn
            if qos == 1:
                conversation.receive([PubAck(each.packet_id) for each in sendings])
            elif qos == 2:
                conversation.receive([PubRec(each.packet_id) for each in sendings])
                conversation.receive([PubComp(each.packet_id) for each in sendings])
        assert outbound.under_way == 0
        return outbound

    return run


CASES: dict[str, Callable[[], Any]] = {
    "PUBLISH of a client, QoS 0": received(0),
    "PUBLISH of a client, QoS 1": received(1),
    "PUBLISH of a client, QoS 2, with its release": received(2),
    "delivery, QoS 0, each alone": delivered(0, 1),
    "delivery, QoS 0": delivered(0, TURN),
    "delivery, QoS 1, each alone": delivered(1, 1),
    "delivery, QoS 1": delivered(1, TURN),
    "delivery, QoS 2": delivered(2, TURN),
}


def measure(rounds: int) -> None:
    cases.measure(CASES, COUNT, rounds)


if __name__ == "__main__":
    cases.main(__doc__, measure)
