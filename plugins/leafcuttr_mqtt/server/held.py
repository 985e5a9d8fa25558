"""A read that is held back: one of its messages cannot be stored for now (a disk is full, a partition offline, the
other cluster away). Its client gets no acknowledgement, for in 5.0 one with an error ends a message for good
([MQTT-4.4.0-2]); nothing more is read from it, and in the end its connection is closed: it sends again.
"""

from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_mqtt.packets.types import Publish, ReasonCode
from leafcuttr_mqtt.server.states import ENDED, STAGES, Step
from leafcuttr_mqtt.server.verdicts import repeated_on

if TYPE_CHECKING:
    from leafcuttr_mqtt.routing.work import Gathered
    from leafcuttr_mqtt.server.contract import UnderWay

PAUSE_S: Final = 0.25
"""Between two attempts to store a message."""
HELD_S: Final = 10.0
"""How long a connection is held back because a message cannot be stored for now."""


def hold_back(read: "UnderWay") -> None:
    """Nothing more is read until the message at `read.at` is stored, or the connection is ended."""
    connection = read.connection
    now = trio.current_time()
    failure = (read.failures or {})[read.at]
    if not read.held_since:
        read.held_since = now
        connection.running.complain(
            failure.missing[0],
            "messages cannot be stored for now, their clients wait: %s",
            failure.reason,
        )
    elif now - read.held_since > HELD_S:
        release(read)
        if failure.disk_full:
            reason, text = ReasonCode.QUOTA_EXCEEDED, "the broker has no space on its disk for now"
        else:
            missing = failure.missing[0]
            reason, text = ReasonCode.SERVER_BUSY, f"Kafka topic {missing} takes no messages for now"
        connection.end(reason, text, log=failure.reason)
        return
    read.stage = STAGES[read.stage][Step.HOLD]
    connection.running.background.start_soon(_try_again, read)


async def _try_again(read: "UnderWay") -> None:
    await trio.sleep(PAUSE_S)
    if read.connection.state is ENDED:
        release(read)
        return
    read.stage = STAGES[read.stage][Step.RESUME]
    running = read.connection.running
    turns = running.turns
    lanes: list[Gathered] = []
    for at, failure in (read.failures or {}).items():
        entry = read.entries[at]
        if at < read.at or entry is None or not failure.missing:
            continue
        message = entry[0]
        gathered = turns.lane(running.writer.targets(message.topic))
        if gathered not in lanes:
            lanes.append(gathered)
            turns.submit(read, gathered)
        number = read.numbers[at][1] if read.numbers is not None and at in read.numbers else None
        read.entries[at] = (message, gathered, gathered.turn.again(message, failure, number))
    read.lanes += lanes


def release(read: "UnderWay") -> None:
    """The read is given up: its client sends again what was not acknowledged."""
    client, running = read.client, read.connection.running
    read.stage = STAGES[read.stage][Step.GIVE_UP]
    for at in range(read.at, len(read.events)):
        event, entry = read.events[at], read.entries[at]
        if not isinstance(event, Publish) or event.qos != 2:
            continue
        client.session.inbound.abandoned(event.packet_id)
        if (other := repeated_on(read, event.packet_id)) is not None:
            other.end(ReasonCode.SERVER_BUSY, "a message that it has sent again cannot be stored for now")
        if read.numbers is not None and at in read.numbers and entry is not None:
            failure = (read.failures or {}).get(at)
            missing = () if failure is None else failure.missing
            targets = running.writer.targets(event.topic)
            stored_in = [each.kafka.name for each in targets if each.kafka.name not in missing]
            running.hub.give_up_number(client, event.packet_id, read.numbers[at][0], stored_in)
    read.forget()
    if read.connection.read is read:
        read.connection.read_is_over()
