"""Sessions by client identifier: who is connected, who takes over, which sessions end and when, which wills are
published.

Nothing of this waits. What has changed is noted in the store; the turn in which it was writes it.

Longer than most modules because all of it is about one thing, the sessions: whatever happens to one of them (its client
comes, goes or is taken over, a message waits for it, it expires or is deleted) changes the same few collections. What
can be told apart is in modules of its own: who gets a message in `router`, what is retained in `retained`, on its way
to new subscriptions in `feeds`, times in `deadlines`, what the log says of dropped messages in `drops`.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.packets.types import Connect, Publish, ReasonCode, Will
from leafcuttr_mqtt.routing.clients import Attached, Client
from leafcuttr_mqtt.routing.deadlines import Deadlines
from leafcuttr_mqtt.routing.drops import DropLog
from leafcuttr_mqtt.routing.feeds import Feeds
from leafcuttr_mqtt.routing.retained import RetainedMessages
from leafcuttr_mqtt.routing.router import Router, message_size
from leafcuttr_mqtt.routing.wills import will_message
from leafcuttr_mqtt.session.limits import Limits
from leafcuttr_mqtt.session.outbound import Outbound
from leafcuttr_mqtt.session.session import Session, filter_of
from leafcuttr_mqtt.session.types import Delivery, Drop, DropReason, Subscription
from leafcuttr_mqtt.storage.state import (
    History,
    Recovered,
    RecoveredSession,
    SessionRecord,
    StoredSession,
    Unfinished,
)
from leafcuttr_mqtt.storage.topics import QUEUE, RETAINED, SESSIONS
from leafcuttr_mqtt.topics.names import matches

if TYPE_CHECKING:
    from leafcuttr_mqtt.mapping.targets import Target
    from leafcuttr_mqtt.routing.rights import Rights, Who
    from leafcuttr_mqtt.storage.store import Store
    from leafcuttr_sdk.types import Clock

_MOST_FILTER_BYTES: Final = 2 * 1024 * 1024
"""Of the subscriptions of a session, in characters: all of them are one record in the log."""

_AGAIN_BYTES: Final = 1024 * 1024
"""Of what is written again to an internal topic that was deleted, in one step of the loop."""

_LOOKS: Final = 20
"""Of a walk over retained messages, for about what it takes to deliver one of them."""

Receivers = list[tuple[StoredSession, Delivery]]


class Hub:
    """All sessions of the broker. `publish_soon` publishes a message of the broker's own, a will, and calls what it is
    given once that is stored, or refused for good."""

    def __init__(
        self,
        limits: Limits,
        clock: "Clock",
        store: "Store",
        logger: logging.Logger,
        publish_soon: Callable[[Message, Callable[[], None]], None],
        rights: "Rights | None" = None,
    ) -> None:
        """`rights` are those of clients, where the broker has an authorizer."""
        self.limits: Final = limits
        self.clock: Final = clock
        self.store: Final = store
        self.rights: Final = rights
        self.router: Final = self._router()
        self.retained: Final = RetainedMessages()
        self.feeds: Final = Feeds(limits.queue, self.router, self.retained, self.note)
        self.clients: Final[dict[str, Client]] = {}
        self.watchers: Final[list[Callable[[Message, Client | None], None]]] = []
        """Called with each message that is published, and its publisher."""
        self.connected = 0
        self.expired = 0
        """Sessions that have ended because their time was over."""
        self.system: Callable[[str], Iterable[Message]] = lambda _: ()
        """The messages of `$SYS` that a filter matches, for a new subscription."""
        self.histories: Callable[[Client], tuple[History, ...]] = lambda _: ()
        """What a session is still to get of stored messages, for its record."""
        self.read_again: Callable[[Sequence[Subscription], Sequence[Subscription], list[Delivery]], None] = (
            self._give_up_unread
        )
        """Reads messages from the log, for `share_again`."""
        self.drops: Final[dict[DropReason, int]] = dict.fromkeys(DropReason, 0)
        self._drops_of: Final[dict[str, dict[DropReason, int]]] = {}
        self._logger = logger
        self._drop_log = DropLog(limits.queue, logger)
        self._publish_soon = publish_soon
        self._wills: Deadlines[Client] = Deadlines()
        self._expiries: Deadlines[Client] = Deadlines()
        self._queued: dict[int, tuple[Message, Receivers]] = {}
        self._changed: dict[str, Client] = {}
        """Sessions that are to be stored anew. A record has all subscriptions, so it is made once a turn."""
        self._waiting: list[tuple[Client, Delivery]] = []
        """Deliveries that are offered to their sessions once they are stored."""
        self._again: Iterator[int] | None = None
        """What is left to be noted again because an internal topic was deleted; a step gives its bytes, about."""

    def _router(self) -> Router:
        journal = self._journal if self.store.keeps else None
        if self.rights is None:
            return Router(journal, self.dropped)
        from leafcuttr_mqtt.routing.guarded_router import GuardedRouter

        return GuardedRouter(self.rights, journal, self.dropped)

    # Connections

    def identify(self, client: Client, who: "Who") -> None:
        """Who the client of a session is, where there are rights. `note` is to follow."""
        from leafcuttr_mqtt.routing.guarded_router import GuardedRouter

        assert isinstance(self.router, GuardedRouter)
        self.router.identify(client, who)

    def connect(
        self, connection: Attached, connect: Connect, client_id: str, user_name: str | None = None
    ) -> tuple[Client, bool]:
        """The session for a client that was let in, and whether it was there before (3.1.4, 3.2.2.1.1). `note` is to
        follow, once the session belongs to the connection."""
        # Its own will or session may be due since the last sweep: it is too late for both then.
        self._end_due(self.clock.now_ms())
        client = self.clients.get(client_id)
        if client is not None and client.connection is not None:
            self._take_over(client, connect.clean_start)
            client = self.clients.get(client_id)
        if client is not None and connect.clean_start:
            self.end_session(client)  # [MQTT-3.1.2-4]
            client = None
        present = client is not None
        if client is None:
            session = Session(client_id, self.limits.queue)
            client = self.clients[client_id] = Client(session, self.store.begin_session(client_id))
        else:
            self._wills.take(client_id)  # [MQTT-3.1.3-9]
            self._expiries.take(client_id)
        client.connection = connection
        client.connected_ms = self.clock.now_ms()
        client.user_name = user_name
        self.connected += 1
        return client, present

    def _take_over(self, client: Client, clean_start: bool) -> None:
        """Another connection has this client identifier ([MQTT-3.1.4-3])."""
        connection = client.connection
        assert connection is not None
        connection.end(ReasonCode.SESSION_TAKEN_OVER, "another connection has its client identifier")
        self._detach(client)
        will = client.session.will
        # It is published where its delay is 0, and where the session ends (3.1.3.2.2, 3.1.4); else it never is.
        ends = clean_start or not client.outlives
        if will is not None and (ends or not will.properties.will_delay_interval):
            self._publish_will(client)
        client.session.will = None
        if not client.outlives:
            self.end_session(client)

    def disconnected(self, client: Client, connection: Attached) -> None:
        """The connection has ended. Where it ended as it should, the session has no will any more."""
        if client.connection is not connection:
            return  # another one has taken over
        self._detach(client)
        session = client.session
        will_due, ends = session.will_due_ms, session.ends_ms
        if will_due is not None and will_due <= self.clock.now_ms():
            self._publish_will(client)
        elif will_due is not None:
            self._wills.add(client.client_id, client, will_due)
        if not client.outlives:
            self.end_session(client)
            return
        if ends is not None:
            self._expiries.add(client.client_id, client, ends)
        self.note(client)

    def _detach(self, client: Client) -> None:
        client.connection = None
        client.session.disconnect(self.clock.now_ms())
        self.connected -= 1

    def _publish_will(self, client: Client) -> None:
        will, client.session.will = client.session.will, None
        if will is None:
            return

        def stored() -> None:
            if client.going_will is will:
                client.going_will = None
                self._forget_will(client)

        if client.who is not None and not self._may_publish(client.who, will.topic):
            self._forget_will(client)
            return
        client.going_will = will
        self._publish_soon(will_message(client.client_id, will, self.clock.now_ms()), stored)

    def why_not_subscribed(self, client: Client, topic_filter: str) -> str | None:
        """Why the client may not subscribe; None: it may."""
        if self.rights is None or client.who is None:
            return None
        return self.rights.why_not_subscribed(client.who, topic_filter)

    def _may_publish(self, who: "Who", topic: str) -> bool:
        """A will. Its client has gone, and is not told."""
        why = None if self.rights is None else self.rights.why_not_published(who, topic)
        if why is not None:
            self._logger.warning("a will is not published: %s", why)
        return why is None

    def _forget_will(self, client: Client) -> None:
        """The will is stored: a start need not publish it."""
        current = self.clients.get(client.client_id)
        if current is client:
            self.note(client)
        elif current is None or not current.noted:
            self.store.note_will_done(client.client_id)

    # Sessions

    def end_session(self, client: Client) -> None:
        """The session is over: it has expired, its client begins anew, or an administrator has said so. Its connection
        has ended before."""
        client_id = client.client_id
        if self.clients.get(client_id) is not client:
            return
        del self.clients[client_id]
        self._expiries.take(client_id)
        if self._wills.take(client_id) is not None:  # its delay, or the session, whichever ends first
            self._publish_will(client)
        for subscription in client.session.subscriptions.values():
            self.router.unsubscribe(client, subscription)
        self._changed.pop(client_id, None)
        sent = client.session.outbound.sent
        ended = [each.delivery for each in client.session.outbound.clear()]
        unread = self._share_again(client, ended, sent)
        self.drops[DropReason.SESSION_ENDED] += len(ended) - len(unread)
        if client.noted:
            client.noted = False
            still_read = {id(each) for each in unread}
            left = [each for each in ended if id(each) not in still_read]
            self.store.note_session_ended(client.stored, left)
            if client.going_will is not None:
                self.store.note_session(self._will_record(client, client.going_will))

    def _share_again(self, client: Client, ended: list[Delivery], sent: int) -> list[Delivery]:
        """Of a session that is over: messages of shared subscriptions go to other members, with QoS 1 those that were
        not acknowledged, with QoS 2 those that were not sent ([MQTT-4.8.2-5]). Those that are in the log only come
        back: they are read from there."""
        subscriptions = client.session.subscriptions.values()
        shared = [each for each in subscriptions if each.share is not None]
        unread: list[Delivery] = []
        if not shared or not ended:
            return unread
        plain = [each for each in subscriptions if each.share is None]
        for delivery in ended:
            if delivery.qos == 2 and delivery.sequence < sent:
                continue
            if delivery.message is not None:
                self.drops[DropReason.SESSION_ENDED] -= self.share_again(delivery.message, shared, plain)
            elif delivery.offset >= 0:
                unread.append(delivery)
        if unread:
            self.read_again(shared, plain, unread)
        return unread

    def share_again(
        self, message: Message, shared: Sequence[Subscription], plain: Sequence[Subscription]
    ) -> bool:
        """A message of a session that had these subscriptions. Where one that is not shared matches too, the message
        is taken for that one's. Whether another session gets it."""
        topic = message.topic
        if any(matches(each.filter, topic) for each in plain):
            return False
        for each in shared:
            if matches(each.filter, topic):
                return self.router.share_again(message, each)
        return False

    def _give_up_unread(
        self, shared: Sequence[Subscription], plain: Sequence[Subscription], unread: list[Delivery]
    ) -> None:
        self.over(unread)

    def over(self, deliveries: Sequence[Delivery]) -> None:
        """Deliveries of a session that is over: their messages are not needed any more."""
        self.store.forget(deliveries)

    def note(self, client: Client) -> None:
        """Something of the session has changed that is to outlive its connection, or this process."""
        if client.outlives and not client.waits_in_log:
            client.waits_in_log = True
            client.offered = client.session.outbound.next_sequence
        if client.waits_in_log or client.session.will is not None or client.going_will is not None:
            client.noted = True
            self._changed[client.client_id] = client
        elif client.noted:
            client.noted = False
            self._changed.pop(client.client_id, None)
            self.store.note_session_ended(client.stored)

    def _will_record(self, client: Client, will: Will) -> SessionRecord:
        """Of a session that is over, and whose will is not stored yet."""
        return SessionRecord(
            client.client_id,
            client.stored.number,
            will=will,
            user_name=client.user_name,
            who=_stored_who(client.who),
        )

    def _record(self, client: Client) -> SessionRecord:
        session = client.session
        will, will_due_ms = session.will, session.will_due_ms
        if will is None and client.going_will is not None:
            will, will_due_ms = client.going_will, self.clock.now_ms()
        for feed in client.feeds.values():
            feed.is_recorded = True
        return SessionRecord(
            client_id=session.client_id,
            number=client.stored.number,
            expiry_s=session.expiry_s,
            connected_ms=client.connected_ms,
            disconnected_ms=session.disconnected_ms,
            subscriptions=tuple(session.subscriptions.values()),
            will=will,
            will_due_ms=will_due_ms,
            user_name=client.user_name,
            who=_stored_who(client.who),
            sent=session.outbound.sent,
            retained=tuple(client.feeds),
            histories=self.histories(client),
        )

    def sweep(self) -> None:
        """End sessions that have expired, publish wills whose delay is over. About once a second."""
        self._end_due(self.clock.now_ms())
        lost_before = self.store.overtaken()
        if lost_before is not None:
            for client in self.clients.values():
                for drop in client.session.outbound.lose(lost_before, self.store.place_of):
                    self.dropped(client, drop)

    def _end_due(self, now_ms: int) -> None:
        for _, client in self._wills.due(now_ms):
            self._publish_will(client)
            if client.outlives:
                self.note(client)
        for _, client in self._expiries.due(now_ms):
            if client.connection is None:
                self.expired += 1
                self.end_session(client)

    def expire_retained(self) -> None:
        """Remove retained messages that have expired. About once a minute: nobody gets one in between."""
        for message in self.retained.expire(self.clock.now_ms()):
            self.store.note_retained_ended(message.topic)

    # A start

    def restore(self, recovered: Recovered) -> None:
        """What an earlier run has left."""
        for message in recovered.retained:
            self.retained.put(message)
        now_ms = self.clock.now_ms()
        for found in recovered.sessions:
            self._restore(found, now_ms)
        for record in recovered.wills:
            if record.will is not None:
                who = self._who_of(record)
                if who is not None and not self._may_publish(who, record.will.topic):
                    self._forget_will_of(record.client_id)
                    continue
                message = will_message(record.client_id, record.will, now_ms)
                self._publish_soon(message, partial(self._forget_will_of, record.client_id))

    def _who_of(self, record: SessionRecord) -> "Who | None":
        """None: there are no rights, or were none when it was connected."""
        if self.rights is None or record.who is None:
            return None
        from leafcuttr_mqtt.routing.rights import Who

        return Who.of_stored(*record.who)

    def _forget_will_of(self, client_id: str) -> None:
        """A will of an earlier run is stored."""
        current = self.clients.get(client_id)
        if current is None or not current.noted:
            self.store.note_will_done(client_id)

    def _restore(self, found: RecoveredSession, now_ms: int) -> None:
        record, stored = found.record, found.stored
        session = Session(record.client_id, self.limits.queue)
        client = Client(session, stored)
        client.noted = True
        client.connected_ms, client.user_name = record.connected_ms, record.user_name
        client.unfinished = dict(found.unfinished)
        client.who = self._who_of(record)
        session.expiry_s, session.will = record.expiry_s, record.will
        session.disconnected_ms = now_ms if record.disconnected_ms is None else record.disconnected_ms
        session.inbound.restore(stored.received.values(), stored.next_number)
        session.outbound = Outbound.restored(
            self.limits.queue,
            {
                "next_sequence": stored.next_sequence,
                "sent": record.sent,
                "deliveries": found.queue.take_rows(),
                "released": sorted(stored.released),
            },
            was_connected=record.disconnected_ms is None,
        )
        self.clients[record.client_id] = client
        for subscription in record.subscriptions:
            self.subscribe(client, filter_of(subscription), subscription)
            if filter_of(subscription) in record.retained:
                self.begin_retained(client, subscription, is_recorded=True)
        due = session.will_due_ms if record.will_due_ms is None else record.will_due_ms
        if due is not None and due <= now_ms:
            self._publish_will(client)  # its client may be back before the next sweep
        elif due is not None:
            self._wills.add(record.client_id, client, due)
        ends = session.ends_ms
        if ends is not None:
            self._expiries.add(record.client_id, client, ends)
        if record.disconnected_ms is None:
            self.note(client)

    # Subscriptions

    def subscribe(self, client: Client, requested: str, subscription: Subscription) -> bool:
        """Whether it is a new one; one with the same filter is replaced ([MQTT-3.8.4-3])."""
        if requested not in client.session.subscriptions:
            client.filter_bytes += len(requested)
        client.session.subscriptions[requested] = subscription
        return self.router.subscribe(client, subscription)

    def unsubscribe(self, client: Client, requested: str) -> bool:
        """Whether there was one."""
        subscription = client.session.subscriptions.pop(requested, None)
        if subscription is None:
            return False
        client.filter_bytes -= len(requested)
        client.feeds.pop(requested, None)
        return self.router.unsubscribe(client, subscription)

    def has(self, client: Client) -> bool:
        """Whether its session has not ended."""
        return self.clients.get(client.client_id) is client

    def has_room(self, client: Client, requested: str) -> bool:
        """Whether the session may have this subscription."""
        subscriptions = client.session.subscriptions
        if requested in subscriptions:
            return True
        return (
            len(subscriptions) < self.limits.max_subscriptions
            and client.filter_bytes + len(requested) <= _MOST_FILTER_BYTES
        )

    def begin_retained(
        self, client: Client, subscription: Subscription, *, is_recorded: bool = False
    ) -> None:
        """A subscription is to get the retained messages that it matches; none if it is shared (4.8.2). Those that come
        from now on are no part of it: it gets them live. `is_recorded`: the session's record in the log says so."""
        if subscription.share is None:
            found = self.retained.walk(subscription.filter, self.clock.now_ms())
            if subscription.filter.startswith("$SYS/"):
                found = chain(found, list(self.system(subscription.filter)))
            self.feeds.begin(client, filter_of(subscription), found, is_recorded=is_recorded)

    def send_retained(self, client: Client, subscription: Subscription) -> Iterator[None]:
        """Send these to a connected client; a step is a message, or some topics that the walk has passed. With QoS 1
        and 2 as many as it takes without more acknowledgements: the others follow as it sends those. With QoS 0 all of
        them, unless others wait for these, so that they come before the answer to what it has sent behind SUBSCRIBE."""
        self.begin_retained(client, subscription)
        connection, requested = client.connection, filter_of(subscription)
        while requested in client.feeds:
            if not self.feeds.go_on(client, 1, _LOOKS) and not client.session.outbound.has_qos_0:
                return
            yield
            if not self.has(client) or client.connection is not connection:
                return

    # Messages

    def publish(self, message: Message, publisher: Client | None) -> int:
        """Give a message that is stored to its subscribers, and keep it if it is to be retained. How many sessions got
        it."""
        if message.retain and self.limits.retain_available and self.retained.put(message):
            self.store.note_retained(message)
        if self.watchers:
            for watch in self.watchers:
                watch(message, publisher)
        return self.router.publish(message, publisher)

    def _journal(self, message: Message, client: Client, delivery: Delivery) -> None:
        """A delivery to a session that outlives its connection, or whose client is slow: it is stored before it is
        offered. Those of one message are noted together."""
        if not client.waits_in_log:
            client.waits_in_log = True
            client.offered = client.session.outbound.next_sequence
            self.note(client)
        delivery.sequence = client.session.outbound.number()
        self._waiting.append((client, delivery))
        entry = self._queued.get(id(message))
        if entry is None:
            self._queued[id(message)] = (message, [(client.stored, delivery)])
        else:
            entry[1].append((client.stored, delivery))

    def note_queued(self) -> "list[tuple[Client, Delivery]]":
        """Tell the store of all deliveries, and of all sessions that have changed, since the last call. Those that come
        back are given to `offer` once it has them."""
        for client in self._changed.values():
            self.store.note_session(self._record(client))
        self._changed.clear()
        for message, receivers in self._queued.values():
            self.store.note_queued(message, receivers)
        self._queued.clear()
        waiting, self._waiting = self._waiting, []
        return waiting

    @property
    def pending(self) -> bool:
        """Whether there is something to store."""
        return bool(self._queued) or bool(self._changed) or self.store.has_notes or self.is_noting_again

    def begin_again(self, gone: Collection[str]) -> None:
        """Internal topics were deleted, and created again: what memory has of them is noted again, by
        `note_some_again`."""
        again: dict[int, tuple[Message, Receivers]] = {}
        lost = 0
        if QUEUE.topic in gone:
            for client in self.clients.values():
                kept, lost_here = client.session.outbound.log_is_gone()
                lost += lost_here
                for delivery in kept:
                    message = delivery.message
                    assert message is not None
                    again.setdefault(id(message), (message, []))[1].append((client.stored, delivery))
            self.store.keep_only(
                (each.stored, each.session.outbound.sequences) for each in self.clients.values()
            )
            self.drops[DropReason.LOST] += lost
        self._again = chain(self._again or (), self._noted_again(gone, again.values()))
        noted = sum(client.noted for client in self.clients.values())
        said = [
            f"sessions: {noted}" if SESSIONS.topic in gone else "",
            f"retained messages: {len(self.retained)}" if RETAINED.topic in gone else "",
            f"queued messages: {len(again)}" if QUEUE.topic in gone else "",
        ]
        self._logger.warning(
            "%s: deleted, so created again and written from memory (%s); dropped, because they were only there, are"
            " queued messages: %d",
            ", ".join(sorted(gone)),
            ", ".join(filter(None, said)),
            lost,
        )

    def _noted_again(
        self, gone: Collection[str], queued: Iterable[tuple[Message, Receivers]]
    ) -> Iterator[int]:
        if SESSIONS.topic in gone:
            for client in list(self.clients.values()):
                if client.noted and self.has(client):
                    self.store.note_session(self._record(client))
                    yield 200 * (1 + len(client.session.subscriptions))
        if RETAINED.topic in gone:
            for message in list(self.retained):
                if self.retained.get(message.topic) is message:
                    self.store.note_retained(message)
                    yield message_size(message)
        for message, receivers in queued:
            # What was acknowledged or dropped meanwhile has no place in the log.
            left = [each for each in receivers if each[1].offset == -1 and not each[0].ended]
            if left:
                self.store.note_queued_again(message, left)
                yield message_size(message)

    def note_some_again(self) -> None:
        """Note some of what `begin_again` has found: as much as a turn may take."""
        if self._again is not None:
            left = _AGAIN_BYTES
            for size in self._again:
                left -= size
                if left <= 0:
                    return
            self._again = None

    @property
    def is_noting_again(self) -> bool:
        """Whether something of it is left."""
        return self._again is not None

    def offer(self, deliveries: "Sequence[tuple[Client, Delivery]]") -> None:
        """Deliveries that are stored."""
        for client, delivery in deliveries:
            if self.clients.get(client.client_id) is not client:
                self.store.note_delivered(client.stored, delivery)  # its session has ended meanwhile
                continue
            client.offered = delivery.sequence + 1
            for drop in client.session.outbound.offer(delivery):
                self.dropped(client, drop)
            if client.connection is not None:
                client.connection.touched()

    def count_drops_of(self, client_id: str) -> Mapping[DropReason, int]:
        """What the sessions of a client identifier give up from now on."""
        return self._drops_of.setdefault(client_id, dict.fromkeys(DropReason, 0))

    def dropped(self, client: Client, drop: Drop) -> None:
        """A delivery was given up."""
        self.drops[drop.reason] += 1
        self._drop_log.tell(client, drop)
        if self._drops_of and (of_client := self._drops_of.get(client.client_id)) is not None:
            of_client[drop.reason] += 1
        if client.noted and drop.delivery.qos:
            self.store.note_delivered(client.stored, drop.delivery)

    # QoS 2 of sessions that outlive their connections

    def begin_number(
        self, client: Client, publish: Publish, targets: "tuple[Target, ...]"
    ) -> "tuple[int, int, tuple[Target, ...]]":
        """A message with QoS 2 is about to be stored: its number in the session, that of its records, by which a later
        start knows them, and the Kafka topics that it is still missing in."""
        packet_id = publish.packet_id
        number = client.session.inbound.number_of(packet_id)
        unfinished = client.unfinished.get(packet_id)
        if unfinished is not None and publish.duplicate:
            number = unfinished.number
            targets = tuple([each for each in targets if each.kafka.name not in unfinished.stored_in])
        elif (
            unfinished is not None
        ):  # its client has forgotten that message: this is another one ([MQTT-3.3.1-1])
            del client.unfinished[packet_id]
            self.store.number_refused(client.stored, unfinished.number)
        return number, self.store.begin_number(client.stored, number), targets

    def give_up_number(self, client: Client, packet_id: int, number: int, stored_in: Iterable[str]) -> None:
        """The message could not be stored in all Kafka topics, and its connection ends: its client sends it again."""
        names = frozenset(stored_in)
        client.unfinished[packet_id] = Unfinished(number, names, names, False)

    def is_queued(self, client: Client, packet_id: int) -> bool:
        """Whether subscribers got the message before the last start."""
        unfinished = client.unfinished.get(packet_id)
        return unfinished is not None and unfinished.queued

    def note_received(self, client: Client, packet_id: int, number: int) -> None:
        """The message is in all Kafka topics, and its deliveries are noted in this turn."""
        client.unfinished.pop(packet_id, None)
        self.store.note_received(client.stored, number)

    def number_refused(self, client: Client, packet_id: int, number: int) -> None:
        """The message is refused for good, or was given up."""
        client.unfinished.pop(packet_id, None)
        self.store.number_refused(client.stored, number)

    # Administration

    def disconnect(self, client_id: str, *, text: str = "an administrator has ended it") -> bool:
        """End the connection of a client; whether there was one."""
        client = self.clients.get(client_id)
        if client is None or client.connection is None:
            return False
        client.connection.end(ReasonCode.ADMINISTRATIVE_ACTION, text)
        return True

    def delete_session(self, client_id: str) -> bool:
        """End the connection and the session of a client; whether there was one."""
        client = self.clients.get(client_id)
        if client is None:
            return False
        connection = client.connection
        if connection is not None:
            connection.end(ReasonCode.ADMINISTRATIVE_ACTION, "its session was deleted")
            self._detach(client)
            client.session.will = None
        self.end_session(client)
        return True

    def clear_retained(self, topics: Iterable[str]) -> int:
        """Remove the retained messages of these topics; how many there were."""
        count = 0
        for topic in topics:
            if self.retained.remove(topic):
                self.store.note_retained_ended(topic)
                count += 1
        return count


def _stored_who(who: "Who | None") -> tuple[str, str, str] | None:
    return None if who is None else who.stored
