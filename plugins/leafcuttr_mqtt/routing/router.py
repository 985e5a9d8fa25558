"""From a message to deliveries: who has subscribed to its topic, with which QoS, flag and identifiers.

A session gets a message once, however many of its subscriptions match, with the highest QoS of them and all their
identifiers (3.3.4, [MQTT-3.3.4-2], [MQTT-3.3.4-3]); shared subscriptions are apart from these.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.frames import PublishFrames
from leafcuttr_mqtt.packets.types import NO_PROPERTIES, Properties
from leafcuttr_mqtt.routing.clients import Client
from leafcuttr_mqtt.routing.shared import Balance
from leafcuttr_mqtt.session.types import Delivery, Drop, Subscription
from leafcuttr_mqtt.topics.cache import TopicCache
from leafcuttr_mqtt.topics.names import has_wildcard
from leafcuttr_mqtt.topics.tree import Group, Matched, SubscriptionTree

if TYPE_CHECKING:
    from collections.abc import Callable

RECEIVER_BYTES: Final = 128
"""About what a `Receiver` takes in a plan."""
OVERHEAD: Final = 64
"""Bytes of a delivery beside its topic, payload and properties, for the bounds of queues."""


class Receiver(NamedTuple):
    """What a session gets of a topic's messages, by all its subscriptions that match."""

    client: Client
    qos: int
    retain_as_published: bool
    identifiers: tuple[int, ...]
    local: tuple[Subscription, ...] | None
    """Where one of its subscriptions is `no local`: those that get its own messages too. None: all of them do."""


class Router:
    """All subscriptions."""

    def __init__(
        self,
        journal: "Callable[[Message, Client, Delivery], None] | None",
        dropped: "Callable[[Client, Drop], None]",
    ) -> None:
        """`journal` gets each delivery with QoS 1 or 2 to a session that outlives its connection: those are offered to
        the session later. None: nothing is kept."""
        self.subscriptions: Final[SubscriptionTree[Client, Subscription]] = SubscriptionTree()
        self._balance = Balance()
        self._journal = journal
        self._dropped = dropped
        self._plans: TopicCache[tuple[Matched[Client, Subscription], tuple[Receiver, ...]]] = TopicCache()
        """What to do with the messages of recent topics, for as long as nothing changes there: no session that has
        ended is held here."""

    def subscribe(self, client: Client, subscription: Subscription) -> bool:
        """Whether it is a new one."""
        self._forget(subscription.filter)
        return self.subscriptions.add(subscription.filter, client, subscription, subscription.share)

    def unsubscribe(self, client: Client, subscription: Subscription) -> bool:
        """Whether there was one."""
        self._forget(subscription.filter)
        removed = self.subscriptions.remove(subscription.filter, client, subscription.share)
        share = subscription.share
        if removed and share is not None and not self.subscriptions.members(subscription.filter, share):
            self._balance.forget(share, subscription.filter)
        return removed

    def publish(self, message: Message, publisher: Client | None) -> int:
        """Give a message to all that have subscribed to it; how many sessions that are. Nothing is sent yet."""
        matched = self.subscriptions.match(message.topic)
        subscribers, groups = matched
        if not subscribers and not groups:
            return 0
        frames = frames_of(message)
        reached = 0
        for receiver in self._plan(message.topic, matched):
            client, most, as_published, identifiers, local = receiver
            if local is not None and (  # [MQTT-3.8.3-3]
                client is publisher or (client.apart and _are_apart(client, publisher, message))
            ):
                if not local:
                    continue
                _, most, as_published, identifiers, _ = _receiver(client, local)
            self._deliver(client, message, frames, most, message.retain and as_published, identifiers)
            reached += 1
        for group in groups:
            reached += self._share(group, message, frames)
        return reached

    def deliver_retained(self, client: Client, subscription: Subscription, message: Message) -> None:
        """A retained message to a subscription that was just made: with the RETAIN flag (3.3.1.3, [MQTT-3.3.1-8])."""
        self.deliver(client, subscription, message, True)

    def deliver(self, client: Client, subscription: Subscription, message: Message, retain: bool) -> None:
        """A message to one subscription only."""
        identifiers = () if subscription.identifier is None else (subscription.identifier,)
        # What is left of an expiry interval is counted when the message is sent.
        frames = None if message.expires_ms is not None else frames_of(message)
        self._deliver(client, message, frames, subscription.qos, retain, identifiers)

    def share_again(self, message: Message, shared: Subscription) -> bool:
        """Give a message to another member of a shared subscription, whose member has gone; whether there is one."""
        share, topic_filter = shared.share, shared.filter
        if share is None or not (members := self.subscriptions.members(topic_filter, share)):
            return False
        group: Group[Client, Subscription] = Group(share, topic_filter)
        group.members = dict(members)
        return self._share(group, message, frames_of(message)) > 0

    def _share(self, group: Group[Client, Subscription], message: Message, frames: PublishFrames) -> int:
        chosen = self._balance.choose(group, message.qos)
        if chosen is None:
            return 0
        client, subscription = chosen
        identifiers = () if subscription.identifier is None else (subscription.identifier,)
        retain = message.retain and subscription.retain_as_published
        self._deliver(client, message, frames, subscription.qos, retain, identifiers)
        return 1

    def _deliver(
        self,
        client: Client,
        message: Message,
        frames: PublishFrames | None,
        most: int,
        retain: bool,
        identifiers: tuple[int, ...],
    ) -> None:
        qos = message.qos if message.qos < most else most
        connection = client.connection
        if not qos:
            if connection is None:
                return
            if frames is not None and connection.fluent:
                connection.send_frame(frames, retain, identifiers)
                return
        delivery = Delivery(message, qos, retain, identifiers, message_size(message))
        if (
            qos
            and self._journal is not None
            and (client.waits_in_log or client.outlives or client.session.outbound.memory_is_full)
        ):
            self._journal(message, client, delivery)
            return
        for drop in client.session.outbound.offer(delivery):
            self._dropped(client, drop)
        if connection is not None:
            connection.touched()

    def _plan(self, topic: str, matched: Matched[Client, Subscription]) -> tuple[Receiver, ...]:
        known = self._plans.recent.get(topic) or self._plans.get(topic)
        if known is not None and known[0] is matched:
            return known[1]
        plan = self._planned(matched)
        self._plans.put(topic, (matched, plan), len(plan) * RECEIVER_BYTES)
        return plan

    @staticmethod
    def _planned(matched: Matched[Client, Subscription]) -> tuple[Receiver, ...]:
        return tuple([_receiver(client, subscriptions) for client, subscriptions in matched.subscribers])

    def _forget(self, topic_filter: str) -> None:
        """Plans that a change of this filter makes wrong."""
        if has_wildcard(topic_filter):
            self._plans.clear()
        else:
            self._plans.discard(topic_filter)


def _receiver(client: Client, subscriptions: tuple[Subscription, ...]) -> Receiver:
    if len(subscriptions) == 1:
        (one,) = subscriptions
        return Receiver(
            client,
            one.qos,
            one.retain_as_published,
            () if one.identifier is None else (one.identifier,),
            () if one.no_local else None,
        )
    return Receiver(
        client,
        max(each.qos for each in subscriptions),
        any(each.retain_as_published for each in subscriptions),
        tuple([each.identifier for each in subscriptions if each.identifier is not None]),
        tuple([each for each in subscriptions if not each.no_local])
        if any(each.no_local for each in subscriptions)
        else None,
    )


def _are_apart(client: Client, publisher: Client | None, message: Message) -> bool:
    # Not what bridges say of themselves below $SYS: by that the other broker finds out.
    return publisher is not None and publisher.client_id in client.apart and message.topic[0] != "$"


def message_size(message: Message) -> int:
    """What a delivery of it counts in the bounds of a queue."""
    size = OVERHEAD + len(message.topic) + len(message.payload)
    if message.user_properties:
        size += sum(len(name) + len(value) for name, value in message.user_properties)
    if message.correlation_data:
        size += len(message.correlation_data)
    return size


def frames_of(message: Message) -> PublishFrames:
    """The packets of a message that has just arrived."""
    return PublishFrames(message.topic, message.payload, properties_of(message, message.arrived_ms))


def properties_of(message: Message, now_ms: int) -> Properties:
    """Those that a subscriber gets ([MQTT-3.3.2-4], [MQTT-3.3.2-6], [MQTT-3.3.2-15] to [MQTT-3.3.2-20])."""
    if not message.has_properties:
        return NO_PROPERTIES
    left_ms = None if message.expires_ms is None else message.expires_ms - now_ms
    return Properties(
        payload_format_indicator=message.payload_format,
        message_expiry_interval=None if left_ms is None else max(0, -(-left_ms // 1000)),
        content_type=message.content_type,
        response_topic=message.response_topic,
        correlation_data=message.correlation_data,
        user_properties=message.user_properties,
    )
