"""Batches to the leaders of their partitions, on trio: up to five requests to each leader under way.

A request has at most one batch of a partition, and as many partitions as have one. What is sent when, and again, is
`lane`'s; this finds leaders, makes requests, and hands their answers on. Used by idempotent appenders and by
transactions.

What can be sent is sent at once (`_send`): by the call of `append`, or by the answer, that makes it so. A task for each
leader waits for its answers, which come in the order of the requests; for the connection, where there is none; and for
the end of pauses. One more task finds leaders.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import trio

from leafcuttr.client.calls import Calls
from leafcuttr.client.codes import LATER, NEW_LEADER
from leafcuttr.client.errors import ClientError
from leafcuttr.client.leaders import Led, look_up
from leafcuttr.client.producing.lane import Call, Lane, Outgoing
from leafcuttr.client.producing.stamp import ProducerIdentity, fit, stamped
from leafcuttr.client.retrying import RetryPauses
from leafcuttr.client.rights import said
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
from leafcuttr_sdk.security import Operation
from leafcuttr_sdk.types import TopicPartition

_REQUESTS: Final = 5
"""Under way to one broker: `max.in.flight.requests.per.connection` of Kafka's idempotent producers."""
_REQUEST_BYTES: Final = 16 << 20
"""Batches beyond so many bytes go with the next request. Brokers take 100 MiB (`socket.request.max.bytes`)."""
_ALL_IN_SYNC: Final = -1
_NAMES: Final = 12
"""The last version of Produce that names topics instead of their ids."""
_UNKNOWN: Final = -1
"""The id of no broker."""
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
        self._is_transactional = transactional_id is not None
        self.names_version = names_version
        self._new_identity = new_identity
        self._lanes: dict[TopicPartition, Lane] = {}
        self._led: dict[TopicPartition, Led] = {}
        self._misses: dict[TopicPartition, int] = {}
        self._rested: dict[TopicPartition, float] = {}
        self._backoffs: dict[TopicPartition, RetryPauses] = {}
        self._leaders: dict[int, _Leader] = {}
        self._changed = trio.Event()
        self._wanted = trio.Event()
        self._rests = True
        self._stopped = self._closed = False
        self._no_leader = "its leader is not known"
        self._timeout_s = self._settings.delivery_timeout_s

    async def append(
        self, batches: Sequence[NewBatch], identity: ProducerIdentity
    ) -> "list[Appended | BrokerError]":
        """See `leafcuttr_sdk.peers.PeerAppender.append`."""
        return await self.begin(batches, identity)()

    def begin(
        self, batches: Sequence[NewBatch], identity: ProducerIdentity
    ) -> "Callable[[], Awaitable[list[Appended | BrokerError]]]":
        """`append` in two steps: they have their places in their partitions when this returns, and what it returns
        waits for the answers."""
        if self._closed:
            raise RuntimeError("This appender is closed.")
        done = trio.Event()
        call = Call(len(batches), trio.current_time() + self._timeout_s, done.set)
        call.is_awaited = True
        lanes = self._lanes
        for place, (partition, batch) in enumerate(batches):
            lane = lanes.get(partition)
            if lane is None:
                lane = lanes[partition] = Lane(partition, identity, transactional=self._is_transactional)
            try:
                lane.add(call, place, fit(batch))
            except BrokerError as error:
                lane.refuse(call, place, error)
        self._send_for({partition for partition, _ in batches})
        return partial(_answers, call, done)

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
            wanted, self._rests = self._wanted, False
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
            for node in {led.node for tp, led in self._led.items() if tp in busy}:
                if node not in self._leaders:
                    self._leaders[node] = _Leader()
                    self._nursery.start_soon(self._serve, node, self._leaders[node])
                self._send(node)
            self._change()
            if unknown:
                if any(tp not in self._led for tp in unknown):
                    await backoff.wait()
                continue
            self._rests = all(lane.is_idle for lane in self._lanes.values())
            with trio.move_on_after(float("inf") if self._rests else 1.0):
                await wanted.wait()

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

    async def _find(self, unknown: Sequence[TopicPartition]) -> None:
        try:
            found = await look_up(self._calls, unknown, Operation.WRITE)
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

    async def _serve(self, node: int, leader: "_Leader") -> None:
        """Take the answers of one leader, one after the other."""
        try:
            while True:
                if not leader.under_way:
                    leader.changed = trio.Event()
                    with trio.move_on_at(self._rest_of(node)):
                        await leader.changed.wait()
                    self._send(node)
                    continue
                sent = leader.under_way[0]
                answer = await self._answer(sent.response)
                leader.under_way.popleft()
                self._settle(sent, *answer)
                self._send_for(sent.batches.keys(), node)
                self._change()
        finally:
            del self._leaders[node]
            for sent in leader.under_way:
                self._settle(sent, None, "the answer was not waited for")
            self._change()

    async def _answer(self, response: Callable[[], Awaitable[Any]]) -> tuple[ProduceResponse | None, str]:
        try:
            return await response(), ""
        except (
            ClientError,
            BrokerError,
        ) as error:  # of the request, or of the metadata that finds the broker
            return None, str(error)
        except WireError as error:
            return None, f"it cannot be sent: {error}"

    def _rest_of(self, node: int) -> float:
        """When the first pause of a partition of this leader ends that has something to be sent. `_take` removes a
        pause that is over only where it takes: any other would have ended long ago, again and again."""
        if self._stopped:
            return float("inf")
        ends = (
            at
            for tp, at in self._rested.items()
            if (led := self._led.get(tp)) is not None
            and led.node == node
            and (lane := self._lanes.get(tp)) is not None
            and not lane.is_idle
        )
        return min(ends, default=float("inf"))

    def _send_for(self, partitions: Collection[TopicPartition], *more: int) -> None:
        """Send what these have, as far as their leaders are known, and what `more` leaders have."""
        led, leaders = self._led, self._leaders
        nodes = {*more, *(led[tp].node if tp in led else _UNKNOWN for tp in partitions)}
        if self._rests or not nodes <= leaders.keys():
            self._want()
        for node in nodes & leaders.keys():
            self._send(node)

    def _send(self, node: int) -> None:
        """Send a leader all that can be sent now."""
        leader = self._leaders[node]
        while leader.takes_more and (batches := self._take(node)):
            request, at_most = self._produce(batches)
            try:
                response = self._cluster.send_now(request, node=node, at_most=at_most)
            except (ClientError, WireError):
                response = None  # `request` tries it once more, and says what is wrong
            if connects := response is None:
                response = partial(
                    self._cluster.request,
                    request,
                    node=node,
                    at_most=at_most,
                    reach_s=self._settings.retry_backoff_max_s,
                )
            leader.under_way.append(_Sent(batches, request, response, connects))
        leader.changed.set()

    def _take(self, node: int) -> dict[TopicPartition, Outgoing]:
        """A batch of each partition that this broker leads."""
        taken: dict[TopicPartition, Outgoing] = {}
        if self._stopped:
            return taken
        size, now = 0, trio.current_time()
        all_led, rested = self._led, self._rested
        for tp, lane in self._lanes.items():
            led = all_led.get(tp)
            if led is None or led.node != node or lane.is_idle:
                continue
            if rested and tp in rested:
                if rested[tp] > now:
                    continue
                del rested[tp]
            if size >= _REQUEST_BYTES:
                break
            if (outgoing := lane.take()) is None:
                if lane.needs_identity:
                    self._want()
                continue
            taken[tp] = outgoing
            size += outgoing.batch.size
        return taken

    def _settle(self, sent: "_Sent", response: ProduceResponse | None, trouble: str) -> None:
        """There is an answer to a request, or none."""
        now = trio.current_time()
        left = dict(sent.batches)
        for topic in () if response is None else response.responses:
            name = topic.name or next(
                (one.name for one in sent.request.topic_data if one.topic_id == topic.topic_id), ""
            )
            for answer in topic.partition_responses:
                tp = TopicPartition(name, answer.index)
                if (outgoing := left.pop(tp, None)) is not None:
                    self._answered(tp, outgoing, answer, now)
        for tp, outgoing in left.items():
            self._lost(tp, outgoing, trouble or "the broker's answer leaves it out", now)

    def _answered(
        self, tp: TopicPartition, outgoing: Outgoing, answer: PartitionProduceResponse, now: float
    ) -> None:
        if not answer.error_code:
            self._backoffs.pop(tp, None)
            outgoing.lane.acknowledged(outgoing, answer.base_offset, answer.log_append_time_ms)
            return
        if answer.error_code in NEW_LEADER:
            self._led.pop(tp, None)
        is_of_id = answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        is_of_cluster = answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        why = said(
            answer.error_code,
            answer.error_message,
            (self._transactional_id or "") if is_of_id else tp.topic,
            Operation.IDEMPOTENT_WRITE if is_of_cluster else Operation.WRITE,
        )
        if outgoing.lane.refused(outgoing, answer.error_code, why, now):
            self._rest(tp, now, answer.error_code)

    def _lost(self, tp: TopicPartition, outgoing: Outgoing, why: str, now: float) -> None:
        self._led.pop(tp, None)
        outgoing.lane.lost(outgoing, why, now)
        self._rest(tp, now)

    def _rest(self, tp: TopicPartition, now: float, code: int = 0) -> None:
        """The next batch of this partition goes out after a pause. What was sent together is refused together: only the
        first refusal makes the pause longer."""
        if self._rested.get(tp, now) > now:
            return
        if tp not in self._backoffs:
            self._backoffs[tp] = RetryPauses(self._settings)
        self._rested[tp] = now + self._backoffs[tp].next_s(code)

    def _produce(self, batches: Mapping[TopicPartition, Outgoing]) -> tuple[ProduceRequest, int]:
        topics: dict[str, list[PartitionProduceData]] = {}
        ids: dict[str, bytes] = {}
        for tp, outgoing in batches.items():
            records: Any = stamped(
                outgoing.batch, outgoing.identity, outgoing.sequence, transactional=self._is_transactional
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

    def _want(self) -> None:
        """There is something for `run` to do."""
        self._wanted.set()
        self._wanted = trio.Event()

    def _change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()


async def _answers(call: Call, done: trio.Event) -> "list[Appended | BrokerError]":
    try:
        await done.wait()
    finally:
        call.is_awaited = False
    return [answer for answer in call.answers if answer is not None]


class _Sent(NamedTuple):
    """A request, and what waits for its response; for one that `connects`, for a connection first, to send it on."""

    batches: Mapping[TopicPartition, Outgoing]
    request: ProduceRequest
    response: Callable[[], Awaitable[Any]]
    connects: bool


class _Leader:
    """What is under way to one broker, in its order."""

    __slots__ = ("changed", "under_way")

    def __init__(self) -> None:
        self.under_way: deque[_Sent] = deque()
        self.changed = trio.Event()

    @property
    def takes_more(self) -> bool:
        """Nothing is sent behind a request that waits for a connection."""
        sent = self.under_way
        return len(sent) < _REQUESTS and not (sent and sent[-1].connects)
