"""What becomes of a message with QoS 2, and of one that a Kafka topic can never take."""

from typing import TYPE_CHECKING

from leafcuttr_mqtt.mapping.settings import CLOSE
from leafcuttr_mqtt.packets.types import Publish, PubRec, ReasonCode, Version
from leafcuttr_mqtt.server.answers import refuse

if TYPE_CHECKING:
    from leafcuttr_mqtt.mapping.outcomes import Failure
    from leafcuttr_mqtt.messages import Message
    from leafcuttr_mqtt.routing.clients import Attached
    from leafcuttr_mqtt.routing.work import Gathered
    from leafcuttr_mqtt.server.contract import UnderWay


def stored(read: "UnderWay", at: int, message: "Message", lane: "Gathered | None", index: int) -> int:
    """A message with QoS 2 is where it has to be. How many sessions get it."""
    connection, client = read.connection, read.client
    connection.running.counts.received[2] += 1
    packet_id = read.events[at].packet_id  # type: ignore[union-attr]
    hub = connection.running.hub
    numbers = None if read.numbers is None else read.numbers.get(at)
    letter = lane is not None and index in lane.letters
    reached = 1 if letter or hub.is_queued(client, packet_id) else hub.publish(message, client)
    if numbers is not None:
        hub.note_received(client, packet_id, numbers[0])
    client.session.inbound.stored(packet_id)
    connection.wait_for_store()
    other = repeated_on(read, packet_id)
    if other is not None:
        other.wait_for_store()
        other.put_packet(PubRec(packet_id))
        other.send_soon()
    if not reached and lane is None and connection.version == Version.V5:
        connection.put_packet(PubRec(packet_id, ReasonCode.NO_MATCHING_SUBSCRIBERS))
    else:
        connection.put_packet(PubRec(packet_id))
    return reached


def refused(read: "UnderWay", at: int, failure: "Failure") -> None:
    """A message that a Kafka topic can never take."""
    connection, client = read.connection, read.client
    event, why = read.events[at], failure.refused
    assert isinstance(event, Publish) and why is not None
    if read.numbers is not None and at in read.numbers:
        connection.running.hub.number_refused(client, event.packet_id, read.numbers[at][0])
    if connection.version != Version.V5 and connection.running.mapping.refused_v3 == CLOSE:
        connection.running.count_refused(why.text)
        connection.end(why.code, why.text, at_fault=True)
        if event.qos == 2:
            client.session.inbound.abandoned(event.packet_id)
            if (other := repeated_on(read, event.packet_id)) is not None:
                other.end(why.code, why.text)
        return
    refuse(read, event, why.code, why.text)
    if (other := repeated_on(read, event.packet_id)) is not None:
        other.put_packet(PubRec(event.packet_id, why.code))
        other.send_soon()


def repeated_on(read: "UnderWay", packet_id: int) -> "Attached | None":
    """The connection on which this message with QoS 2 came again, before it was known what becomes of it. It waits for
    an answer."""
    client = read.client
    if packet_id not in client.repeated:
        return None
    client.repeated.discard(packet_id)
    return None if client.connection is read.connection else client.connection
