"""The answers to Produce: successes, and errors with the fields and messages that go out beside them."""

from collections.abc import Sequence
from typing import Final

from leafcuttr.errors import BrokerError, ChainError, ErrorCode, InvalidRecordSet, NotReadyError
from leafcuttr.handlers.produce_checks import ADDS_PARTITIONS
from leafcuttr.log.append.staged import Staged
from leafcuttr.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
    TopicProduceResponse,
)

_NOT_ADDED: Final = "Partition was not added to the transaction"
_UNVERIFIED: Final = "Unable to verify the partition has been added to the transaction."
# The coordinator cannot say at the moment.
_UNAVAILABLE: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
# Of filters and validators: which one, and why.
_OF_CHAINS: Final = (ChainError, NotReadyError)
# Errors that Kafka answers without the log start offset: found before the batch is staged, or by the storage.
_WITHOUT_LOG_START: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    }
)


def succeeded(index: int, staged: Staged, log_start_offset: int) -> PartitionProduceResponse:
    """The answer for a batch that is staged, true once it is written."""
    return PartitionProduceResponse(
        index=index,
        base_offset=staged.base_offset,
        log_append_time_ms=staged.log_append_time,
        log_start_offset=log_start_offset,
    )


def failure(index: int, code: ErrorCode, message: str | None = None) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index, error_code=code, base_offset=-1, log_start_offset=-1, error_message=message
    )


def from_error(index: int, error: BrokerError, log_start_offset: int = -1) -> PartitionProduceResponse:
    """A message is sent only where Kafka sends one, of records; and for filters and validators."""
    refused_before = error.code in _WITHOUT_LOG_START or isinstance(error, InvalidRecordSet)
    return PartitionProduceResponse(
        index=index,
        error_code=error.code,
        base_offset=-1,
        log_start_offset=-1 if refused_before else log_start_offset,
        record_errors=[
            BatchIndexAndErrorMessage(
                batch_index=record.batch_index, batch_index_error_message=record.message
            )
            for record in error.record_errors
        ],
        error_message=error.message if error.record_errors or isinstance(error, _OF_CHAINS) else None,
    )


def not_admitted(index: int, version: int, code: ErrorCode) -> PartitionProduceResponse:
    """As in Kafka: an error that passes gets a code that producers of every version retry after."""
    if code in _UNAVAILABLE or (code is ErrorCode.CONCURRENT_TRANSACTIONS and version < ADDS_PARTITIONS):
        return failure(index, ErrorCode.NOT_ENOUGH_REPLICAS, f"{_UNVERIFIED} Underlying error: {code.name}")
    return failure(index, code, _NOT_ADDED if code is ErrorCode.INVALID_TXN_STATE else None)


def refused(data: TopicProduceData, code: ErrorCode) -> TopicProduceResponse:
    answers = [failure(item.index, code) for item in data.partition_data]
    return TopicProduceResponse(name=data.name, topic_id=data.topic_id, partition_responses=answers)


def all_refused(request: ProduceRequest, code: ErrorCode, message: str | None) -> list[TopicProduceResponse]:
    """The same answer for every partition; as in Kafka, one for each, however often the request names it."""
    named: dict[tuple[str, bytes], dict[int, PartitionProduceResponse]] = {}
    for data in request.topic_data:
        for item in data.partition_data:
            answers = named.setdefault((data.name, data.topic_id), {})
            answers[item.index] = failure(item.index, code, message)
    return [
        TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=list(answers.values()))
        for (name, topic_id), answers in named.items()
    ]


def first_failure(topics: Sequence[TopicProduceResponse]) -> str | None:
    for topic in topics:
        for part in topic.partition_responses:
            if part.error_code:
                return (
                    f"{ErrorCode(part.error_code).name} for {topic.name or topic.topic_id.hex()}-{part.index}"
                )
    return None
