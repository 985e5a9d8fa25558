"""Produce, versions 3 to 13: append one record batch to each of some partitions.

Version 0 to 2 are announced and close the connection, as in Kafka (KIP-896, KAFKA-18659). Version 3 added the
transactional id, 5 the log start offset, 8 the record errors (KIP-467), 9 is flexible, 10 adds the current leader
(KIP-951), 12 implicit transactions (KIP-890), 13 topic ids (KIP-516). The body of a batch is never looked at here.

Unlike other handlers this one works in two steps. `Turn.stage` checks the batches and gives them offsets;
`Turn.commit` writes all that was staged since the last commit, over all requests of the connection's turn, and only
then hands out the responses. Between the two no other task runs.

acks 0, 1 and -1 differ in nothing but the answer: there are no followers (`lc.isolated`). Left out: transactional
batches, which the log refuses until transactions exist.
"""

from collections.abc import Coroutine, Sequence
from typing import Any, Final

import trio

from leafcuttr.errors import BrokerError, ErrorCode, InvalidRecord, StorageError
from leafcuttr.handlers.context import RequestContext
from leafcuttr.log.log import Log
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

_TOPIC_IDS: Final = 13

# One staged partition: its log, and where its answer lies: (request, topic, partition) in order of arrival.
_Place = tuple[int, int, int]
Answer = tuple[int, Any, ProduceResponse]
"""Correlation id, the request's route, the response."""


class Turn:
    """What one connection has staged and not yet committed. False when there is nothing."""

    __slots__ = ("_answers", "_logs", "refused")

    def __init__(self) -> None:
        self._answers: list[tuple[int, Any, int, list[TopicProduceResponse]]] = []
        self._logs: dict[Log, list[_Place]] = {}
        self.refused: str | None = None

    def __bool__(self) -> bool:
        return bool(self._answers)

    def stage(self, broker: Broker, context: RequestContext, request: ProduceRequest, route: Any) -> None:
        """Check and stage every batch of a request. Errors become the answer of their partition."""
        now_ms = broker.clock.now_ms()
        number = len(self._answers)
        if request.acks not in (-1, 0, 1):
            topics = [_refused(topic, ErrorCode.INVALID_REQUIRED_ACKS) for topic in request.topic_data]
        else:
            topics = [
                self._stage_topic(broker, context, topic, now_ms, (number, place))
                for place, topic in enumerate(request.topic_data)
            ]
        self._answers.append((context.correlation_id, route, request.acks, topics))

    def _stage_topic(
        self,
        broker: Broker,
        context: RequestContext,
        data: TopicProduceData,
        now_ms: int,
        at: tuple[int, int],
    ) -> TopicProduceResponse:
        if context.api_version >= _TOPIC_IDS:
            topic = broker.topics.by_id.get(data.topic_id)
            missing = ErrorCode.UNKNOWN_TOPIC_ID
        else:
            topic = broker.topics.by_name.get(data.name)
            missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is None:
            return _refused(data, missing)
        partitions = topic.partitions
        answers: list[PartitionProduceResponse] = []
        for item in data.partition_data:
            if not 0 <= item.index < len(partitions):
                answers.append(_failure(item.index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                continue
            log = partitions[item.index].log
            try:
                staged = log.stage(_records(item), now_ms=now_ms)
            except BrokerError as error:
                answers.append(_from_error(item.index, error))
                continue
            self._logs.setdefault(log, []).append((*at, len(answers)))
            answers.append(
                PartitionProduceResponse(
                    index=item.index,
                    base_offset=staged.base_offset,
                    log_append_time_ms=staged.log_append_time,
                    log_start_offset=log.log_start_offset,
                )
            )
        return TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=answers)

    async def commit(self) -> Sequence[Answer]:
        """Write what is staged and return the responses, in order, without those of acks=0.

        `refused` then says why a request with acks=0 failed, if one did: its client learns it by a closed connection.
        """
        answers, self._answers = self._answers, []
        logs, self._logs = self._logs, {}
        waiting: dict[Log, list[_Place]] = {}
        for log, places in logs.items():
            if log.must_wait:
                waiting[log] = places
                continue
            try:
                log.commit()
            except StorageError as error:
                _fail(answers, places, error)
        if waiting:
            await _commit_off_loop(waiting, answers)
        out: list[Answer] = []
        for correlation_id, route, acks, topics in answers:
            if acks:
                out.append((correlation_id, route, ProduceResponse(responses=topics)))
            else:
                self.refused = self.refused or _first_failure(topics)
        return out


async def handle(broker: Broker, context: RequestContext, request: ProduceRequest) -> ProduceResponse | None:
    """One request by itself: a turn of one. Connections stage and commit by the turn instead."""
    turn = Turn()
    turn.stage(broker, context, request, None)
    answers = await turn.commit()
    return answers[0][2] if answers else None


async def _commit_off_loop(logs: dict[Log, list[_Place]], answers: list[tuple[int, Any, int, Any]]) -> None:
    # Each call, not its await, says what has to be written: all are made before anything else can be staged.
    writes = [(log.commit_off_loop(), places) for log, places in logs.items()]

    async def wait(write: Coroutine[Any, Any, None], places: list[_Place]) -> None:
        try:
            await write
        except StorageError as error:
            _fail(answers, places, error)

    if len(writes) == 1:
        await wait(*writes[0])
        return
    async with trio.open_nursery() as nursery:
        for write, places in writes:
            nursery.start_soon(wait, write, places)


def _records(item: PartitionProduceData) -> memoryview:
    if item.records is None:
        raise InvalidRecord(
            "a Produce request carries exactly one record batch for a partition, this one has none"
        )
    return item.records


def _fail(answers: list[tuple[int, Any, int, Any]], places: list[_Place], error: BrokerError) -> None:
    for request, topic, partition in places:
        parts = answers[request][3][topic].partition_responses
        parts[partition] = _from_error(parts[partition].index, error)


def _first_failure(topics: Sequence[TopicProduceResponse]) -> str | None:
    for topic in topics:
        for part in topic.partition_responses:
            if part.error_code:
                return (
                    f"{ErrorCode(part.error_code).name} for {topic.name or topic.topic_id.hex()}-{part.index}"
                )
    return None


def _refused(data: TopicProduceData, code: ErrorCode) -> TopicProduceResponse:
    answers = [_failure(item.index, code) for item in data.partition_data]
    return TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=answers)


def _failure(index: int, code: ErrorCode) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=index, error_code=code, base_offset=-1, log_start_offset=-1)


def _from_error(index: int, error: BrokerError) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        log_start_offset=-1,
        record_errors=[
            BatchIndexAndErrorMessage(
                batch_index=record.batch_index, batch_index_error_message=record.message
            )
            for record in error.record_errors
        ],
        error_message=error.message,
    )
