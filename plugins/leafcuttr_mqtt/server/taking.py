"""The packets of a read, as they are taken: what is mapped goes to the turn, the rest is answered behind it."""

from typing import TYPE_CHECKING

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import NO_PROPERTIES, Publish
from leafcuttr_mqtt.server.publishable import why_refused
from leafcuttr_mqtt.server.read import Read
from leafcuttr_mqtt.topics.names import MAX_LEVELS

if TYPE_CHECKING:
    from leafcuttr_mqtt.routing.clients import Client
    from leafcuttr_mqtt.server.contract import Served
    from leafcuttr_mqtt.session.events import Event


def take(connection: "Served", client: "Client", events: "list[Event]") -> None:
    """Begin with what a read has brought. It is the connection's read until it is over."""
    running = connection.running
    turns, targets_of = running.turns, running.writer.targets
    read = Read(connection, client, events)
    connection.begin(read)
    entries, lanes = read.entries, read.lanes
    client_id = client.session.client_id
    now_ms = running.now_ms()
    publishing = client.publishing
    for event in events:
        if type(event) is not Publish:
            entries.append(None)
            continue
        topic = event.topic
        # Nothing is to be said of nearly all topics: without a call.
        if (topic[0] == "$" or len(topic) >= MAX_LEVELS) and why_refused(topic, client_id):
            entries.append(None)
            continue
        if publishing is not None and publishing.why_not(topic):
            entries.append(None)
            continue
        message = Message(topic, event.payload, event.qos, event.retain, client_id, now_ms)
        if event.properties is not NO_PROPERTIES:
            message.take_properties(event.properties)
        targets = targets_of(topic)
        number: int | None = None
        if event.qos == 2 and client.outlives:
            own, number, targets = running.hub.begin_number(client, event, targets)
            if read.numbers is None:
                read.numbers = {}
            read.numbers[len(entries)] = (own, number)
        if not targets:
            entries.append((message, None, -1))
            continue
        gathered = turns.lane(targets)
        if gathered not in lanes:
            lanes.append(gathered)
            turns.submit(read, gathered)
        entries.append((message, gathered, gathered.turn.add(message, targets, number)))
    if not lanes:
        read.go_on()
        turns.conclude()
