"""The histories that are being sent.

A subscription is in the tree of subscriptions only once its history is through. Until then what is mapped comes from
the log, also what is published meanwhile, and what is mapped nowhere comes at once. The change takes place when nothing
has been added to the log since all that had begun to be stored is on its way to subscribers: so a message is either in
the log that was read or comes live. A history to whose Kafka topics records are added without a pause goes on for as
long.

A history belongs to a session: it goes on when the client is back. That of a session that outlives its connection goes
on after a restart of the broker too: how far it has come is in the record of the session, written in the turn in which
its messages go to the queue of the session.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_mqtt.mapping.records import message_of
from leafcuttr_mqtt.packets.types import ReasonCode, Version
from leafcuttr_mqtt.replay.request import ReplayRequest, kafka_topics, parse_request, subscribed
from leafcuttr_mqtt.session.types import Subscription
from leafcuttr_mqtt.storage.state import History
from leafcuttr_mqtt.topics.names import matches
from leafcuttr_sdk.broker import EARLIEST, LATEST
from leafcuttr_sdk.errors import BrokerError, OffsetOutOfRange
from leafcuttr_sdk.trouble import Complaints
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_mqtt.mapping.contracts import Writer
    from leafcuttr_mqtt.mapping.rules import Rules
    from leafcuttr_mqtt.messages import Message
    from leafcuttr_mqtt.packets.types import SubscriptionRequest
    from leafcuttr_mqtt.routing.clients import Client
    from leafcuttr_mqtt.routing.hub import Hub
    from leafcuttr_mqtt.routing.turns import Turns
    from leafcuttr_mqtt.storage.state import RecoveredSession
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.records import StoredRecord

MOST: Final = 1000
"""Histories that are sent at a time."""
AT_ONCE: Final = 200
"""Records that are read at a time, and deliveries that wait for a client before more is read."""
MAX_BYTES: Final = 512 * 1024
PAUSE_S: Final = 0.005
AWAY_S: Final = 0.25
"""How often it is looked whether a client is back."""
ERROR: Final = 0x80
"""The only reason code that 3.1.1 has."""
CHANGE_S: Final = 2.0
"""How long the end of a transaction is waited for."""


class Replays:
    """All histories of a start of the service."""

    def __init__(
        self,
        broker: "Broker",
        rules: "Rules",
        writer: "Writer",
        hub: "Hub",
        turns: "Turns",
        nursery: trio.Nursery,
    ) -> None:
        self.broker: Final = broker
        self.writer: Final = writer
        self.hub: Final = hub
        self.turns: Final = turns
        self.complain: Final = Complaints(broker.logger)
        self._rules = rules
        self._nursery = nursery
        self._going_on: dict[tuple[Client, str], Replay] = {}
        self._of: dict[Client, list[Replay]] = {}
        self.kafka_topic_of: Final = lru_cache(10_000)(self._kafka_topic_of)

    def begin(self, client: "Client", subscription: "Subscription", request: ReplayRequest) -> bool:
        """Send a history to a client, and note its subscription. False, and nothing has happened: too
        many are being sent."""
        if len(self._going_on) >= MOST:
            return False
        self.stop(client, request.filter)
        self.hub.subscribe(client, request.filter, subscription)
        self._start(Replay(self, client, subscription, request, {}))
        return True

    def resume(self, sessions: "Iterable[RecoveredSession]") -> None:
        """Go on with those that were being sent when the last run ended; their sessions are restored."""
        for session in sessions:
            client = self.hub.clients[session.record.client_id]
            for history in session.record.histories:
                subscription = client.session.subscriptions.get(history.filter)
                if subscription is None:
                    continue
                reached = session.stored.next_sequence >= history.sequence
                found = history.reached if reached else history.positions
                positions = {TopicPartition(*each): offset for each, offset in found.items()}
                request = ReplayRequest(history.filter, history.since_ms, history.offset)
                self._start(Replay(self, client, subscription, request, positions))

    def _start(self, replay: "Replay") -> None:
        client, subscription = replay.client, replay.subscription
        self.hub.router.unsubscribe(client, subscription)
        self._going_on[client, subscription.filter] = replay
        self._of.setdefault(client, []).append(replay)
        self.hub.watchers.append(replay.take_live)
        self._nursery.start_soon(replay.run)

    def histories(self, client: "Client") -> "tuple[History, ...]":
        """Those that are being sent to a client, for the record of its session."""
        return tuple([replay.history for replay in self._of.get(client, ())])

    def stop(self, client: "Client", topic_filter: str) -> None:
        """Send no more of a history, if there is one; the subscription is live."""
        replay = self._going_on.get((client, topic_filter))
        if replay is not None:
            self.end(replay)

    def end(self, replay: "Replay") -> None:
        """The history is through, or not sent any more."""
        client, subscription = replay.client, replay.subscription
        key = (client, subscription.filter)
        if self._going_on.get(key) is not replay:
            return
        del self._going_on[key]
        others = self._of[client]
        others.remove(replay)
        if not others:
            del self._of[client]
        self.hub.watchers.remove(replay.take_live)
        if replay.is_wanted:
            self.hub.router.subscribe(client, subscription)
            if client.outlives:
                self.hub.note(client)

    def is_sent(self, replay: "Replay") -> bool:
        """Whether a history is still to be sent."""
        return self._going_on.get((replay.client, replay.subscription.filter)) is replay

    def kafka_topics(self, topic_filter: str) -> list[str]:
        return kafka_topics(self._rules, topic_filter, self.broker.topics.names())

    def _kafka_topic_of(self, topic: str) -> str | None:
        """The one that the messages of a topic are read from, where they are in several."""
        return next(
            (each.kafka_topic for each in self._rules.destinations(topic) if each.wrong is None), None
        )


class Replay:
    """One history."""

    def __init__(
        self,
        replays: Replays,
        client: "Client",
        subscription: "Subscription",
        request: ReplayRequest,
        positions: dict[TopicPartition, int],
    ) -> None:
        """`positions`: where an earlier run has come to; empty if there was none."""
        self.client: Final = client
        self.subscription: Final = subscription
        self._replays = replays
        self._request = request
        self._positions = positions
        self._stored = positions
        """All before is in the queue of the session, or sent."""
        self._marks: deque[tuple[int, dict[TopicPartition, int]]] = deque()
        """What will be `_stored` once deliveries with lower sequences than these are."""
        self._moved_at = trio.current_time()
        self._end_at: int | None = None
        """How many appends had begun when there was nothing more to be read."""

    @property
    def is_wanted(self) -> bool:
        """Whether there still is the session, and it has the subscription."""
        client = self.client
        if self._replays.hub.clients.get(client.client_id) is not client:
            return False
        return client.session.subscriptions.get(self.subscription.filter) is self.subscription

    @property
    def history(self) -> History:
        """How far it has come."""
        client = self.client
        self._note_stored()
        return History(
            *self._request,
            {(each.topic, each.partition): offset for each, offset in self._stored.items()},
            {(each.topic, each.partition): offset for each, offset in self._positions.items()},
            client.session.outbound.next_sequence,
        )

    def _note_stored(self) -> None:
        client, marks = self.client, self._marks
        while marks and (not client.waits_in_log or client.offered >= marks[0][0]):
            self._stored = marks.popleft()[1]

    def take_live(self, message: "Message", publisher: "Client | None") -> None:
        """A message is published. What is mapped comes from the log."""
        if (
            matches(self.subscription.filter, message.topic)
            and not self._replays.writer.targets(message.topic)
            and (publisher is not self.client or not self.subscription.no_local)
        ):
            self._deliver(message)

    async def run(self) -> None:
        """Send the history, then go over to what is published."""
        replays = self._replays
        try:
            await self._begin()
            while self._goes_on:
                if self.client.connection is None:
                    await trio.sleep(AWAY_S)
                elif await self._read():
                    break
        except BrokerError as error:
            replays.complain(
                "history",
                "a history of %r cannot be read: %s",
                self.subscription.filter[:255],
                str(error) or error.code.name,
            )
        # Where the broker stops it is not over: the next start goes on with it.
        replays.end(self)
        replays.turns.conclude()

    @property
    def _goes_on(self) -> bool:
        return self._replays.is_sent(self) and self.is_wanted

    async def _begin(self) -> None:
        broker, request = self._replays.broker, self._request
        partitions = [
            TopicPartition(name, number)
            for name in self._replays.kafka_topics(request.filter)
            for number in range(broker.topics.partition_count(name))
        ]
        given = self._positions
        if request.since_ms is not None and not given:
            self._begin_at(await broker.offsets(dict.fromkeys(partitions, request.since_ms)))
            return
        first = await broker.offsets(dict.fromkeys(partitions, EARLIEST))
        last = await broker.offsets(dict.fromkeys(partitions, LATEST))
        if given:
            # A partition that an earlier run did not know is new since; one that ends before was made anew.
            known = {each: given[each] for each in partitions if each in given and given[each] <= last[each]}
            self._begin_at({each: max(known.get(each, 0), first[each]) for each in partitions})
        else:
            self._begin_at({each: min(max(request.offset, first[each]), last[each]) for each in partitions})

    def _begin_at(self, positions: dict[TopicPartition, int]) -> None:
        self._positions, self._stored = positions, dict(positions)

    async def _read(self) -> bool:
        """Send some more; True once there is nothing more and the change can take place, without another wait."""
        broker, turns = self._replays.broker, self._replays.turns
        if self.client.session.outbound.messages > AT_ONCE:
            self._moved_at = trio.current_time()
            await trio.sleep(PAUSE_S)
            return False
        if self._is_at_end:
            if self._end_at is None:
                self._end_at = turns.begun
            if turns.are_done(self._end_at):
                return True
            await trio.sleep(PAUSE_S)
            return False
        self._end_at = None
        try:
            fetched = await broker.fetch(
                self._positions, max_bytes=MAX_BYTES, max_records=AT_ONCE, committed=True
            )
        except OffsetOutOfRange:
            # Retention was quicker, or the topic was made anew.
            first = await broker.offsets(dict.fromkeys(self._positions, EARLIEST))
            last = await broker.offsets(dict.fromkeys(self._positions, LATEST))
            self._positions = {
                each: offset if first[each] <= offset <= last[each] else first[each]
                for each, offset in self._positions.items()
            }
            return False
        if not self._goes_on:
            return False
        if fetched.positions == self._positions:
            # What comes next is in a transaction that goes on: none of ours, so it is not waited for long.
            if trio.current_time() - self._moved_at > CHANGE_S:
                return True
            await trio.sleep(PAUSE_S)
            return False
        self._positions, self._moved_at = fetched.positions, trio.current_time()
        now_ms = broker.clock.now_ms()
        for record in fetched.records:
            message = self._message(record, now_ms)
            if message is not None:
                self._deliver(message)
        self._note_stored()
        if self.client.outlives:
            self._marks.append((self.client.session.outbound.next_sequence, dict(self._positions)))
            self._replays.hub.note(self.client)
        turns.conclude()
        await trio.sleep(PAUSE_S if turns.storing else 0)
        return False

    @property
    def _is_at_end(self) -> bool:
        """Whether all is read. What is new is added to what is to be read."""
        topics, positions = self._replays.broker.topics, self._positions
        if any(self._is_behind(name) for name in {each.topic for each in positions}):
            return False
        new = {
            TopicPartition(name, number)
            for name in self._replays.kafka_topics(self.subscription.filter)
            for number in range(topics.partition_count(name))
        } - positions.keys()
        positions.update(dict.fromkeys(new, 0))
        return not any(self._is_behind(name) for name in {each.topic for each in new})

    def _is_behind(self, kafka_topic: str) -> bool:
        found = self._replays.broker.topics.get(kafka_topic)
        if found is None:
            return False
        ends = {each.partition: each.high_watermark for each in found.partitions}
        return any(
            self._positions.get(TopicPartition(kafka_topic, number), end) != end
            for number, end in ends.items()
        )

    def _message(self, record: "StoredRecord", now_ms: int) -> "Message | None":
        message = message_of(record)
        if message is None or not matches(self.subscription.filter, message.topic):
            return None
        if self._replays.kafka_topic_of(message.topic) != record.topic:
            return None
        if message.expires_ms is not None and message.expires_ms <= now_ms:
            return None
        if self.subscription.no_local and message.client_id == self.client.client_id:
            return None
        return message

    def _deliver(self, message: "Message") -> None:
        retain = message.retain and self.subscription.retain_as_published
        self._replays.hub.router.deliver(self.client, self.subscription, message, retain)


def subscribe(
    replays: Replays | None,
    version: Version,
    client: "Client",
    asked: "SubscriptionRequest",
    identifier: int | None,
) -> tuple[int, str | None]:
    """A client asks for a history: the reason code of SUBACK, and what is wrong."""
    if version != Version.V5:
        return ERROR, None
    if replays is None:
        return ReasonCode.NOT_AUTHORIZED, "histories are off: mqtt.replay.enable is false"
    try:
        request = parse_request(asked.filter)
    except ValueError as error:
        return ReasonCode.TOPIC_FILTER_INVALID, f"{asked.filter[:255]}: {error}"
    denied = replays.hub.why_not_subscribed(client, request.filter)
    if denied is not None:
        return ReasonCode.NOT_AUTHORIZED, denied
    subscription = Subscription(
        request.filter,
        asked.qos,
        None,
        asked.no_local,
        asked.retain_as_published,
        asked.retain_handling,
        identifier,
    )
    if not replays.begin(client, subscription, request):
        return ReasonCode.QUOTA_EXCEEDED, f"{MOST} histories are being sent already"
    return asked.qos, None


def unsubscribe(replays: Replays | None, client: "Client", filters: Sequence[str]) -> list[str]:
    """What a client gives up: histories end, and stand for what they have subscribed to."""
    if replays is None:
        return list(filters)
    found = [subscribed(each) for each in filters]
    for each in found:
        replays.stop(client, each)
    return found
