"""Produce, versions 3 to 13: append one record batch to each of some partitions.

Version 0 to 2 are announced and close the connection, as in Kafka (KIP-896, KAFKA-18659). Version 3 added the
transactional id, 5 the log start offset, 8 the record errors (KIP-467), 9 is flexible, 10 adds the current leader
(KIP-951), 12 implicit transactions (KIP-890), 13 topic ids (KIP-516). What is in a batch is the log's to check.

Unlike other handlers this one works in two steps. `Turn.stage` checks the batches and gives them offsets;
`write_staged` writes what the turns of all connections at hand have staged, and only then `Turn.take` hands out the
responses. Between staging and writing no other task runs. A connection that sends the same request again and again
takes a short way, `server.repeated_produce`, which ends here whenever anything is out of the ordinary.

A request that cannot be staged in a moment (many partitions, a batch that a worker has to prepare first) is staged up
to there; the others of its partitions are the turn's `unfinished` part, which `finish` stages and writes in pieces,
with other connections in between. The connection does nothing else until then, so that its requests stay in order.

`handlers.produce_checks` has the checks before staging, `handlers.produce_answers` the answers.

acks 0, 1 and -1 differ in nothing but the answer: there are no followers (`lc.isolated`).

A transactional batch is written only if its partition belongs to the transaction that goes on: from version 12 on the
partition is added here, earlier clients have to have added it before (KIP-890). While the disk holds up that addition
the answer is CONCURRENT_TRANSACTIONS, and the client retries.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import trio

from leafcuttr.errors import BrokerError, ErrorCode, UnknownTopicOrPartition
from leafcuttr.handlers.access import WRITE_TOPIC, client_may
from leafcuttr.handlers.context import RequestContext
from leafcuttr.handlers.produce_answers import (
    all_refused,
    failure,
    first_failure,
    from_error,
    not_admitted,
    refused,
    succeeded,
)
from leafcuttr.handlers.produce_checks import admit, records_of, refusal_of
from leafcuttr.log.append.pending_write import PendingWrite
from leafcuttr.log.append.preparation import LongWork, Prepared, Work
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.append.stage import one_batch
from leafcuttr.log.append.staged import WriteError
from leafcuttr.log.log import Log
from leafcuttr.runtime.unexpected import as_refusal
from leafcuttr.state.broker import Broker
from leafcuttr.state.identity import ClientIdentity
from leafcuttr.state.topics import Partition, Topic
from leafcuttr.wire.api import ApiKey
from leafcuttr.wire.batch import ATTRIBUTES_AT, COUNT_AT, HEADER_SIZE, MIN_RECORD, TRANSACTIONAL
from leafcuttr.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

logger = logging.getLogger(__name__)

_TOPIC_IDS: Final = 13
# Partitions of one request that are staged and written before others have their turn: some milliseconds of writes.
_AT_ONCE: Final = 100
# Records that take as long to step over as a partition takes to write, at the worst.
_RECORDS_A_WRITE: Final = 200
# The client id with which Kafka's own tools may write to internal topics.
_ADMIN_CLIENT: Final = "__admin_client"

_CLIENT: Final = Origin.CLIENT
# One staged partition: its log, and where its answer lies: (request, topic, partition) in order of arrival.
_Place = tuple[int, int, int]
ProduceAnswer = tuple[int, Any, ProduceResponse]
"""Correlation id, the request's route, the response."""


@dataclass(slots=True)
class Unfinished:
    """What is left of the last request, from the first partition without an answer on; and what that one has to wait
    for first."""

    request: ProduceRequest
    version: int
    client: ClientIdentity
    work: Work | None
    prepared: Prepared | BrokerError | None = None


class _Stop(NamedTuple):
    """Why staging stopped before the end: a worker has to do something first, or others have waited long enough."""

    work: Work | None


_PAUSE: Final = _Stop(None)


class Turn:
    """What one connection has staged and not yet answered. False when there is nothing."""

    __slots__ = (
        "_answers",
        "_left",
        "_logs",
        "_transactional_id",
        "_writes",
        "refused",
        "unanswered",
        "unfinished",
    )

    def __init__(self) -> None:
        self._answers: list[tuple[int, Any, int, list[TopicProduceResponse]]] = []
        self._logs: dict[Log, list[_Place]] = {}
        self._writes: list[tuple[PendingWrite, list[_Place]]] = []
        self._left = _AT_ONCE
        self._transactional_id: str | None = None
        self.unfinished: Unfinished | None = None
        self.refused: str | None = None
        self.unanswered = 0  # requests with acks=0 that `take` has taken

    def __bool__(self) -> bool:
        return bool(self._answers)

    def stage(self, broker: Broker, context: RequestContext, request: ProduceRequest, route: Any) -> None:
        """Check and stage every batch of a request, or the first of them and leave it `unfinished`. Errors become the
        answer of their partition. Not while a request is `unfinished`."""
        topics: list[TopicProduceResponse] = []
        self._answers.append((context.correlation_id, route, request.acks, topics))
        refusal = refusal_of(broker, context, request)
        if refusal is not None:
            topics += all_refused(request, *refusal)
            return
        if request.acks not in (-1, 0, 1):
            for topic in request.topic_data:
                named = _topic_of(broker, context.api_version, topic)[0]
                allowed = named is None or _may_write(broker, context.client, named)
                topics.append(
                    refused(topic, ErrorCode.INVALID_REQUIRED_ACKS if allowed else WRITE_TOPIC.error)
                )
            return
        now_ms = broker.clock.now_ms()
        self._left = _AT_ONCE
        self._transactional_id = request.transactional_id
        for data in request.topic_data:
            answers: list[PartitionProduceResponse] = []
            topics.append(
                TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=answers)
            )
            stopped = self._stage_topic(
                broker, context.api_version, context.client, data, now_ms, answers, None
            )
            if stopped is not None:
                self.unfinished = Unfinished(request, context.api_version, context.client, stopped.work)
                return

    async def finish(self, broker: Broker) -> None:
        """Stage and write what is `unfinished` of the last request, while others have their turn. Not while something
        of this turn is staged and not written."""
        while (unfinished := self.unfinished) is not None:
            if unfinished.work is None:
                await trio.lowlevel.checkpoint()
            else:
                try:
                    unfinished.prepared = await unfinished.work.done(abandon_on_cancel=True)
                except BrokerError as error:
                    unfinished.prepared = error
                except Exception as error:
                    unfinished.prepared = as_refusal(broker.runtime.complaints, error, "preparing a batch")
            self._go_on(broker, unfinished)
            write_staged((self,))
            if self._writes:
                await self.written()

    def _go_on(self, broker: Broker, unfinished: Unfinished) -> None:
        """Stage the rest, or some more of it: what is left of the last topic that was begun, then those after it."""
        self.unfinished, self._left = None, _AT_ONCE
        now_ms = broker.clock.now_ms()
        request, topics = unfinished.request, self._answers[-1][3]
        for place in range(len(topics) - 1, len(request.topic_data)):
            data = request.topic_data[place]
            if place == len(topics):
                topics.append(
                    TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=[])
                )
            answers = cast(list[PartitionProduceResponse], topics[place].partition_responses)
            prepared, unfinished.prepared = unfinished.prepared, None
            stopped = self._stage_topic(
                broker, unfinished.version, unfinished.client, data, now_ms, answers, prepared
            )
            if stopped is not None:
                unfinished.work = stopped.work
                self.unfinished = unfinished
                return

    def _stage_topic(
        self,
        broker: Broker,
        version: int,
        client: ClientIdentity,
        data: TopicProduceData,
        now_ms: int,
        answers: list[PartitionProduceResponse],
        prepared: Prepared | BrokerError | None,
    ) -> "_Stop | None":
        """Stage the partitions of one topic, from the first without an answer on. None at the end of the topic; else
        why it stopped before.

        Each partition gets its answer at once, as if the write will succeed: `_fail` replaces it if the write does not.
        Answers are in the order of the request, so their number says where to continue after a stop. A partition where
        staging stopped has no answer yet, and is staged from its beginning the next time. `prepared` is what the worker
        has made of its batch, or why it failed.

        For each partition one of these happens:

        - There have been enough for one turn: stop with `_PAUSE`. Other connections have their turn before the rest.
        - The client may not write to the topic; or it, or the partition, does not exist, or is internal, or a plugin's:
          an error.
        - The batch is transactional and its transaction does not take it: an error. Nothing is staged.
        - Its records take a worker (`LongWork`): stop with that work. The partitions before this one are written
          meanwhile.
        - The log refuses the batch, or something unexpected fails: the error of this partition alone.
        - It is staged: it has offsets, and the next write of its log includes it.
        """
        name, topic, missing = _topic_of(broker, version, data)
        if broker.authorizer is not None and name is not None and not _may_write(broker, client, name):
            topic, missing = None, WRITE_TOPIC.error
        # Of a topic that does not exist, or that this client may not write to, no partition exists either: all get
        # `missing`. Where the topic exists, `missing` is the error of partitions that it does not have.
        partitions: Sequence[Partition] = ()
        if topic is not None:
            if topic.internal and topic.owner is not None:
                missing = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif topic.internal and client.client_id != _ADMIN_CLIENT:
                missing = ErrorCode.INVALID_TOPIC_EXCEPTION
            else:
                partitions, missing = topic.partitions, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        items = data.partition_data
        if answers:  # an earlier turn stopped within this topic
            items = items[len(answers) :]
        # Where the answers of this topic are, for `_fail`: the last request, and the last of its topics so far.
        here = len(self._answers) - 1, len(self._answers[-1][3]) - 1
        # The topic itself counts as well: a request may name very many topics without partitions.
        if self._left <= 0:
            return _PAUSE
        self._left -= 1
        for item in items:
            if self._left <= 0:
                return _PAUSE
            self._left -= 1
            done, prepared = prepared, None  # of the first partition only, where the last turn stopped
            if not 0 <= item.index < len(partitions):
                answers.append(failure(item.index, missing))
                continue
            log = partitions[item.index].log
            try:
                records = records_of(item, version)
                # Records of which each length is read take time on the loop. Small batches have too few to count.
                if len(records) > _RECORDS_A_WRITE * MIN_RECORD:
                    self._left -= _steps(records) // _RECORDS_A_WRITE
                # Before staging, which cannot be undone for one batch. A batch that a worker has prepared is admitted
                # anew: its transaction may have ended meanwhile. What is no whole batch is refused by the log.
                if (
                    self._transactional_id is not None
                    and len(records) > HEADER_SIZE
                    and records[ATTRIBUTES_AT + 1] & TRANSACTIONAL
                ):
                    code = admit(broker, version, self._transactional_id, log, one_batch(records))
                    if code:
                        answers.append(not_admitted(item.index, version, code))
                        continue
                if isinstance(done, BrokerError):
                    raise done
                if done is not None and done.log is not log:
                    raise UnknownTopicOrPartition  # the topic was deleted, and created again, meanwhile
                staged = log.stage(records, _CLIENT, now_ms=now_ms, prepared=done)
            except LongWork as long:
                return _Stop(long.work)  # not the error, whose traceback would keep the request in memory
            except BrokerError as error:
                answers.append(from_error(item.index, error, log.log_start_offset))
                continue
            except Exception as error:
                # As in Kafka, an unexpected error is that of its partition; the others are answered.
                answered = as_refusal(broker.runtime.complaints, error, f"appending to {log.topic_partition}")
                answers.append(failure(item.index, answered.code))
                continue
            self._logs.setdefault(log, []).append((*here, len(answers)))
            answers.append(succeeded(item.index, staged, log.log_start_offset))
        return None

    def adopt(self, correlation_id: int, route: Any, topic: TopicProduceResponse, log: Log) -> None:
        """Take over a request for one partition that wants an answer and was staged by `server.repeated_produce`."""
        self._logs.setdefault(log, []).append((len(self._answers), 0, 0))
        self._answers.append((correlation_id, route, -1, [topic]))

    @property
    def waits(self) -> bool:
        """Whether something is being written by a worker: it has to be over before `take`."""
        return any(not write.done for write, _ in self._writes)

    def write(self, writes: dict[Log, PendingWrite]) -> None:
        """See `write_staged`. `writes` are those of this round so far."""
        logs, self._logs = self._logs, {}
        for log, places in logs.items():
            write = writes.get(log)
            if write is None:
                write = writes[log] = log.write()
            if not write.done:
                self._writes.append((write, places))
            elif write.failure is not None:
                self._fail(places, write.failure)

    def when_written(self, call: Callable[[], None]) -> None:
        """Have it called once this turn `waits` no more."""
        left = 0

        def done() -> None:
            nonlocal left
            left -= 1
            if not left:
                call()

        for write, _ in self._writes:
            if not write.done:
                left += 1
                write.when_done(done)

    async def written(self) -> None:
        """Wait for the workers that write what this turn has staged."""
        for write, _ in self._writes:
            await write.wait()
        self._judge()

    def _judge(self) -> None:
        writes, self._writes = self._writes, []
        for write, places in writes:
            if write.failure is not None:
                self._fail(places, write.failure)

    def abandon(self) -> None:
        """Answer nothing of this turn: whether it is written is not known. Workers that write for it are still waited
        for."""
        self._answers.clear()
        self._logs.clear()
        self._writes = [(write, []) for write, _ in self._writes]
        self.unfinished = None

    def take(self) -> Sequence[ProduceAnswer]:
        """The responses to what has been written, in order, without those of acks=0. Not while a request is
        `unfinished`, nor while it `waits`.

        `refused` then says why a request with acks=0 failed, if one did: its client learns it by a closed connection.
        """
        if self._writes:
            self._judge()
        answers, self._answers = self._answers, []
        out: list[ProduceAnswer] = []
        for correlation_id, route, acks, topics in answers:
            if acks:
                out.append((correlation_id, route, ProduceResponse(responses=topics)))
            else:
                self.unanswered += 1
                self.refused = self.refused or first_failure(topics)
        return out

    def _fail(self, places: list[_Place], error: WriteError) -> None:
        """Answer with the error what is not there; what the same write had already published stays answered so."""
        for request, topic, partition in places:
            parts = cast(list[PartitionProduceResponse], self._answers[request][3][topic].partition_responses)
            if parts[partition].base_offset >= error.written_to:
                parts[partition] = from_error(parts[partition].index, error)


def _topic_of(
    broker: Broker, version: int, data: TopicProduceData
) -> tuple[str | None, Topic | None, ErrorCode]:
    """The topic, and its name, which a request by name has also for one that does not exist; and the error then."""
    if version >= _TOPIC_IDS:
        topic = broker.topics.by_id.get(data.topic_id)
        return None if topic is None else topic.name, topic, ErrorCode.UNKNOWN_TOPIC_ID
    return data.name, broker.topics.by_name.get(data.name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _may_write(broker: Broker, client: ClientIdentity, name: str) -> bool:
    return client_may(broker, client, ApiKey.PRODUCE, WRITE_TOPIC, name)


def _steps(records: memoryview | bytes) -> int:
    """How many records there may be to step over, by what the header says."""
    return min(int.from_bytes(records[COUNT_AT:HEADER_SIZE], "big"), len(records) // MIN_RECORD)


def write_staged(turns: Iterable[Turn]) -> None:
    """Write what several turns have staged, with one write for each log.

    A failed write fails every batch that is not there after it, whichever turn staged it. Where a write has to wait
    for a worker the turn `waits`. Call it before anything else may touch a log.
    """
    writes: dict[Log, PendingWrite] = {}
    for turn in turns:
        if turn:
            turn.write(writes)


async def handle(broker: Broker, context: RequestContext, request: ProduceRequest) -> ProduceResponse | None:
    """One request by itself: a turn of one. Connections stage and write together instead."""
    turn = Turn()
    turn.stage(broker, context, request, None)
    write_staged((turn,))
    await turn.written()
    await turn.finish(broker)
    answers = turn.take()
    return answers[0][2] if answers else None
