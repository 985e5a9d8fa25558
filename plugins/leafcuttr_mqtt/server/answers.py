"""What is answered to the packets of a client, but for messages that are published and for CONNECT and AUTH."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from leafcuttr_mqtt.packets.frames import acknowledgements
from leafcuttr_mqtt.packets.types import (
    PacketType,
    PubAck,
    PubComp,
    Publish,
    PubRec,
    ReasonCode,
    SubAck,
    Subscribe,
    UnsubAck,
    Unsubscribe,
    Version,
)
from leafcuttr_mqtt.replay.replays import subscribe, unsubscribe
from leafcuttr_mqtt.replay.request import is_request
from leafcuttr_mqtt.server.publishable import why_refused
from leafcuttr_mqtt.session.events import (
    Acknowledged,
    Answer,
    Disconnected,
    Event,
    PublishRefused,
    Received,
    Released,
    Repeated,
)
from leafcuttr_mqtt.session.outbound import packet_id_of
from leafcuttr_mqtt.session.types import Subscription
from leafcuttr_mqtt.topics.names import parse_shared, why_no_filter, why_too_deep

if TYPE_CHECKING:
    from leafcuttr_mqtt.routing.clients import Client
    from leafcuttr_mqtt.server.contract import Served, UnderWay

_FAILURE: Final = 0x80
"""The only one that 3.1.1 has for SUBACK."""


def answer(read: "UnderWay", event: Event) -> Iterator[None] | None:
    """Answer an event. What goes out is gathered by the connection. What may take long is done in the steps of the
    iterator, which the caller goes through before it answers the next event."""
    connection, client = read.connection, read.client
    hub = connection.running.hub
    if isinstance(event, Acknowledged):
        if client.noted:
            for delivery in event.deliveries:
                if delivery.qos:
                    hub.store.note_delivered(client.stored, delivery)
        connection.touched()
    elif isinstance(event, Received):
        if client.noted:
            for delivery in event.deliveries:
                hub.store.note_released(client.stored, delivery)
            connection.wait_for_store()
        ids = [packet_id_of(delivery.sequence) for delivery in event.deliveries]
        connection.put(acknowledgements(PacketType.PUBREL, ids))
    elif isinstance(event, Released):
        if client.outlives:
            hub.store.note_completed(client.stored, event.packet_id)
            connection.wait_for_store()
        client.session.inbound.completed(event.packet_id)
        connection.put_packet(PubComp(event.packet_id))
    elif isinstance(event, Repeated):
        if not client.session.inbound.can_answer(event.packet_id):
            client.repeated.add(event.packet_id)
        elif read.verdicts is not None and event.packet_id in read.verdicts:
            # Refused since it came again: what comes behind PUBREC with an error is a new message ([MQTT-4.3.3-9]), and
            # this one would be refused as the first was.
            connection.put_packet(read.verdicts[event.packet_id])
        else:
            connection.wait_for_store()  # the turn of the message may not be stored yet
            connection.put_packet(PubRec(event.packet_id))
    elif isinstance(event, Answer):
        connection.put_packet(event.packet)
    elif isinstance(event, Subscribe):
        return _subscribe(connection, client, event)
    elif isinstance(event, Unsubscribe):
        return _unsubscribe(connection, client, event)
    elif isinstance(event, Publish):
        refusal = why_refused(event.topic, client.client_id)
        if refusal is None:
            # It was denied when it came, which is what counts.
            why = client.publishing and client.publishing.why_not(event.topic, quietly=True)
            refusal = (
                ReasonCode.NOT_AUTHORIZED,
                why or f"it was not allowed to publish to {event.topic[:255]}",
            )
        refuse(read, event, *refusal)
    elif isinstance(event, PublishRefused):
        _tell(connection, event.publish, event.reason, event.text)
    elif isinstance(event, Disconnected):
        connection.leaves()
    else:
        raise TypeError(f"{type(event).__name__} is no event of a connection that was accepted")
    return None


def refuse(read: "UnderWay", publish: Publish, reason: ReasonCode, text: str) -> None:
    """A message is not published, for good. A client before 5.0 cannot be told: it gets the acknowledgement."""
    connection, inbound = read.connection, read.client.session.inbound
    if publish.qos == 2:
        if connection.version == Version.V5:
            inbound.refused(publish.packet_id)
        else:
            inbound.stored(publish.packet_id)
    elif publish.qos:
        inbound.acknowledged()
    connection.running.count_refused(text)
    verdict = _tell(connection, publish, reason, text)
    if isinstance(verdict, PubRec) and connection.version == Version.V5:
        if read.verdicts is None:
            read.verdicts = {}
        read.verdicts[publish.packet_id] = verdict


def _tell(connection: "Served", publish: Publish, reason: ReasonCode, text: str) -> PubAck | PubRec | None:
    properties = connection.conversation.reason_properties(text)
    packet: PubAck | PubRec
    if publish.qos == 1:
        packet = PubAck(publish.packet_id, reason, properties)
    elif publish.qos == 2:
        packet = PubRec(publish.packet_id, reason, properties)
    else:
        return None
    connection.put_packet(packet)
    return packet


def _subscribe(connection: "Served", client: "Client", packet: Subscribe) -> Iterator[None]:
    """3.8 and 3.9. A step is a filter, then a retained message."""
    hub = connection.running.hub
    five = connection.version == Version.V5
    identifiers = packet.properties.subscription_identifiers
    identifier = identifiers[0] if identifiers else None
    reasons: list[int] = []
    wrong: str | None = None
    retained: list[Subscription] = []
    for request in packet.requests:
        yield
        if not hub.has(client):
            return
        if is_request(request.filter):
            reason, said = subscribe(
                connection.running.replays, connection.version, client, request, identifier
            )
            reasons.append(reason)
            wrong = said or wrong
            continue
        wrong_filter = why_no_filter(request.filter) or why_too_deep(request.filter)
        if wrong_filter is not None:
            wrong = f"{request.filter[:255]}: {wrong_filter}"
            reasons.append(ReasonCode.TOPIC_FILTER_INVALID if five else _FAILURE)
            continue
        share, topic_filter = parse_shared(request.filter)
        subscription = Subscription(
            topic_filter,
            request.qos,
            share,
            request.no_local,
            request.retain_as_published,
            request.retain_handling,
            identifier,
        )
        denied = hub.why_not_subscribed(client, topic_filter)
        if denied is not None:
            wrong = denied
            reasons.append(ReasonCode.NOT_AUTHORIZED if five else _FAILURE)
            continue
        if not hub.has_room(client, request.filter):
            wrong = f"{request.filter[:255]}: the session has as many subscriptions as it may have"
            reasons.append(ReasonCode.QUOTA_EXCEEDED if five else _FAILURE)
            continue
        is_new = hub.subscribe(client, request.filter, subscription)
        reasons.append(request.qos)
        # 3.8.3.1: 0 always, 1 if the subscription is new, 2 never.
        if request.retain_handling == 0 or (request.retain_handling == 1 and is_new):
            retained.append(subscription)
    properties = connection.conversation.reason_properties(wrong)
    connection.put_packet(SubAck(packet.packet_id, tuple(reasons), properties))
    if client.outlives:
        hub.note(client)
        connection.wait_for_store()
    for subscription in retained:
        yield
        if not hub.has(client):
            return
        yield from hub.send_retained(client, subscription)


def _unsubscribe(connection: "Served", client: "Client", packet: Unsubscribe) -> Iterator[None]:
    """3.10 and 3.11. A step is a filter."""
    hub = connection.running.hub
    filters = unsubscribe(connection.running.replays, client, packet.filters)
    reasons: list[ReasonCode] = []
    for each in filters:
        yield
        if not hub.has(client):
            return
        reasons.append(
            ReasonCode.SUCCESS
            if hub.unsubscribe(client, each)
            else ReasonCode.NO_SUBSCRIPTION_EXISTED
            if why_no_filter(each) is None
            else ReasonCode.TOPIC_FILTER_INVALID
        )
    connection.put_packet(UnsubAck(packet.packet_id, tuple(reasons)))
    if client.outlives:
        hub.note(client)
        connection.wait_for_store()
