"""Batches to the leaders of their partitions, on trio: one task for each leader, which keeps five requests under way.

A request has at most one batch of a partition, and as many partitions as have one. What is sent when, and again, is
`lane`'s; this finds leaders, makes requests, and hands their answers on. Used by idempotent appenders and by
transactions.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import trio

from leafcuttr.client.calls import Calls
from leafcuttr.client.codes import LATER, NEW_LEADER
from leafcuttr.client.errors import ClientError
from leafcuttr.client.leaders import Led, look_up
from leafcuttr.client.producing.lane import Call, Lane, Outgoing
from leafcuttr.client.producing.stamp import ProducerIdentity, checked, stamped
from leafcuttr.client.retrying import RetryPauses
from leafcuttr.errors import BrokerError, ErrorCode, RequestTimedOut
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from leafcuttr.wire.primitives import ZERO_UUID
from leafcuttr_sdk.records import Appended, NewBatch
from leafcuttr_sdk.types import TopicPartition

_REQUESTS: Final = 5
"""Under way to one broker: `max.in.flight.requests.per.connection` of Kafka's idempotent producers."""
_REQUEST_BYTES: Final = 16 << 20
"""Batches beyond so many bytes go with the next request. Brokers take 100 MiB (`socket.request.max.bytes`)."""
_ALL_IN_SYNC: Final = -1
_NAMES: Final = 12
"""The last version of Produce that names topics instead of their ids."""
_MISSES: Final = 4
"""So many times in a row has metadata to have no such partition until it is taken for deleted."""


class BatchSender:
    """The lanes of one producer. Of a transactional one `names_version` is the highest version of Produce that its
    transactions allow; an idempotent one has `new_identity`, for when the epochs of its producer id are used up."""

    def __init__(
        self,
        calls: Calls,
        nursery: trio.Nursery,
        *,
        transactional_id: str | None = None,
        names_version: int = _NAMES,
        new_identity: Callable[[], Awaitable[ProducerIdentity]] | None = None,
    ) -> None:
        self._calls = calls
        self._cluster = calls.cluster
        self._settings = calls.settings
        self._nursery = nursery
        self._transactional_id = transactional_id
        self.names_version = names_version
        self._new_identity = new_identity
        self._lanes: dict[TopicPartition, Lane] = {}
        self._led: dict[TopicPartition, Led] = {}
        self._misses: dict[TopicPartition, int] = {}
        self._rested: dict[TopicPartition, float] = {}
        self._backoffs: dict[TopicPartition, RetryPauses] = {}
        self._sending: set[int] = set()
        self._under_way: dict[int, int] = {}
        self._changed = trio.Event()
        self._stopped = self._closed = False
        self._no_leader = "its leader is not known"
        self._timeout_s = self._settings.delivery_timeout_s

    async def append(
        self, batches: Sequence[NewBatch], identity: ProducerIdentity
    ) -> "list[Appended | BrokerError]":
        """See `leafcuttr_sdk.peers.PeerAppender.append`."""
        if self._closed:
            raise RuntimeError("This appender is closed.")
        done = trio.Event()
        call = Call(len(batches), trio.current_time() + self._timeout_s, done.set)
        for place, (partition, batch) in enumerate(batches):
            lane = self._lane(partition, identity)
            try:
                fit = checked(batch)
            except BrokerError as error:
                lane.refuse(call, place, error)
            else:
                lane.add(call, place, fit)
        self._change()
        await done.wait()
        return [answer for answer in call.answers if answer is not None]

    async def stop(self, error: BrokerError) -> None:
        """Send nothing more before `resume`: what waits fails, what is under way comes back."""
        self._stopped = True
        while True:
            changed = self._changed
            for lane in self._lanes.values():
                lane.give_up(error)
            if all(lane.is_idle for lane in self._lanes.values()):
                return
            await changed.wait()

    def close(self) -> None:
        """Once its tasks have ended: calls that wait are answered, and later ones refused."""
        self._closed = True
        for lane in self._lanes.values():
            lane.give_up(RequestTimedOut("the appender was closed"))

    def resume(self) -> None:
        """Go on after `stop`."""
        self._stopped = False

    def begin_anew(self) -> None:
        """Forget all lanes: the next batches are another producer's, or another epoch's."""
        self._lanes.clear()
        self._rested.clear()

    # --- tasks ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Find leaders, start a task for each, give up what is too old."""
        backoff = RetryPauses(self._settings)
        while True:
            changed = self._changed
            busy = {tp: lane for tp, lane in self._lanes.items() if not lane.is_idle}
            now = trio.current_time()
            for lane in busy.values():
                lane.expire(now, self._no_leader)
            await self._renew([lane for lane in busy.values() if lane.needs_identity])
            unknown = [tp for tp, lane in busy.items() if tp not in self._led and not lane.is_idle]
            if unknown:
                await self._find(unknown)
            else:
                backoff.reset()
            for node in {led.node for tp, led in self._led.items() if tp in busy} - self._sending:
                self._sending.add(node)
                self._nursery.start_soon(self._send_to, node)
            if unknown:
                self._change()
                if any(tp not in self._led for tp in unknown):
                    await backoff.wait()
                continue
            with trio.move_on_after(1.0 if busy else float("inf")):
                await changed.wait()

    async def _renew(self, lanes: Sequence[Lane]) -> None:
        """The epochs of their producer id are used up."""
        if not lanes or self._new_identity is None:
            return
        try:
            identity = await self._new_identity()
        except BrokerError as error:
            for lane in lanes:
                lane.give_up(error)
            return
        for lane in lanes:
            lane.renew(identity)
        self._change()

    async def _find(self, unknown: Sequence[TopicPartition]) -> None:
        try:
            found = await look_up(self._calls, unknown)
        except ClientError as error:
            self._no_leader = str(error)
            return
        except BrokerError as error:
            self._no_leader = str(error)
            if error.code not in LATER | NEW_LEADER:
                self._give_up(unknown, error)
            return
        for tp, led in found.items():
            if isinstance(led, Led):
                self._led[tp] = led
                self._misses.pop(tp, None)
                continue
            self._no_leader = str(led)
            if led.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self._misses[tp] = self._misses.get(tp, 0) + 1
                if self._misses[tp] >= _MISSES:
                    self._give_up([tp], led)
            elif led.code not in LATER | NEW_LEADER:
                self._give_up([tp], led)

    def _give_up(self, partitions: Sequence[TopicPartition], error: BrokerError) -> None:
        for tp in partitions:
            self._misses.pop(tp, None)
            if (lane := self._lanes.get(tp)) is not None:
                lane.give_up(error)

    async def _send_to(self, node: int) -> None:
        """Send to one leader, until nothing is left for it."""
        self._under_way.setdefault(node, 0)
        try:
            while True:
                changed = self._changed
                batches = self._take(node) if self._under_way[node] < _REQUESTS else {}
                if batches:
                    self._under_way[node] += 1
                    # `start` returns once the request is in its place on the connection: the order is that of the loop.
                    await self._nursery.start(self._request, node, batches, *self._produce(batches))
                    continue
                led = [tp for tp, led in self._led.items() if led.node == node and tp in self._lanes]
                if not self._under_way[node] and all(self._lanes[tp].is_idle for tp in led):
                    return
                with trio.move_on_at(
                    min((self._rested[tp] for tp in led if tp in self._rested), default=float("inf"))
                ):
                    await changed.wait()
        finally:
            self._sending.discard(node)

    def _take(self, node: int) -> dict[TopicPartition, Outgoing]:
        """A batch of each partition that this broker leads."""
        taken: dict[TopicPartition, Outgoing] = {}
        if self._stopped:
            return taken
        size, now = 0, trio.current_time()
        for tp, lane in self._lanes.items():
            led = self._led.get(tp)
            if led is None or led.node != node or lane.is_idle:
                continue
            if tp in self._rested:
                if self._rested[tp] > now:
                    continue
                del self._rested[tp]
            if size >= _REQUEST_BYTES or (outgoing := lane.take()) is None:
                continue
            taken[tp] = outgoing
            size += outgoing.batch.size
        return taken

    async def _request(
        self,
        node: int,
        batches: Mapping[TopicPartition, Outgoing],
        request: ProduceRequest,
        at_most: int,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        trouble = ""
        response: ProduceResponse | None = None
        task_status.started()
        try:
            response = await self._cluster.request(
                request,
                node=node,
                at_most=at_most,
                reach_s=self._settings.retry_backoff_max_s,
            )
        except (
            ClientError,
            BrokerError,
        ) as error:  # of the request, or of the metadata that finds the broker
            trouble = str(error)
        except WireError as error:
            trouble = f"it cannot be sent: {error}"
        finally:
            self._under_way[node] -= 1
            now = trio.current_time()
            answered = {} if response is None else _by_partition(response, request)
            for tp, outgoing in batches.items():
                answer = answered.get(tp)
                if answer is not None:
                    self._answered(tp, outgoing, answer, now)
                else:
                    self._lost(tp, outgoing, trouble or "the broker's answer leaves it out", now)
            self._change()

    def _answered(
        self, tp: TopicPartition, outgoing: Outgoing, answer: PartitionProduceResponse, now: float
    ) -> None:
        if not answer.error_code:
            self._backoffs.pop(tp, None)
            outgoing.lane.acknowledged(outgoing, answer.base_offset, answer.log_append_time_ms)
            return
        if answer.error_code in NEW_LEADER:
            self._led.pop(tp, None)
        if outgoing.lane.refused(outgoing, answer.error_code, answer.error_message, now):
            self._rest(tp, now)

    def _lost(self, tp: TopicPartition, outgoing: Outgoing, why: str, now: float) -> None:
        self._led.pop(tp, None)
        outgoing.lane.lost(outgoing, why, now)
        self._rest(tp, now)

    def _rest(self, tp: TopicPartition, now: float) -> None:
        """The next batch of this partition goes out after a pause."""
        if tp not in self._backoffs:
            self._backoffs[tp] = RetryPauses(self._settings)
        self._rested[tp] = now + self._backoffs[tp].next_s()

    def _produce(self, batches: Mapping[TopicPartition, Outgoing]) -> tuple[ProduceRequest, int]:
        topics: dict[str, list[PartitionProduceData]] = {}
        ids: dict[str, bytes] = {}
        transactional = self._transactional_id is not None
        for tp, outgoing in batches.items():
            records: Any = stamped(
                outgoing.batch, outgoing.identity, outgoing.sequence, transactional=transactional
            )
            topics.setdefault(tp.topic, []).append(PartitionProduceData(index=tp.partition, records=records))
            ids[tp.topic] = self._led[tp].topic_id
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=_ALL_IN_SYNC,
            timeout_ms=int(self._settings.request_timeout_s * 1000),
            topic_data=[
                TopicProduceData(name=name, topic_id=ids[name], partition_data=data)
                for name, data in topics.items()
            ],
        )
        has_ids = self.names_version >= _NAMES and ZERO_UUID not in ids.values()
        return request, _NAMES + 1 if has_ids else self.names_version

    def _lane(self, tp: TopicPartition, identity: ProducerIdentity) -> Lane:
        lane = self._lanes.get(tp)
        if lane is None:
            lane = self._lanes[tp] = Lane(tp, identity, transactional=self._transactional_id is not None)
        return lane

    def _change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


def _by_partition(
    response: ProduceResponse, request: ProduceRequest
) -> dict[TopicPartition, PartitionProduceResponse]:
    names = {topic.topic_id: topic.name for topic in request.topic_data}
    return {
        TopicPartition(topic.name or names.get(topic.topic_id, ""), each.index): each
        for topic in response.responses
        for each in topic.partition_responses
    }
