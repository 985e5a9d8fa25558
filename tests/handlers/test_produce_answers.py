"""The answers to Produce: which fields and messages go out with an error."""

import pytest

from leafcuttr.errors import (
    BrokerError,
    ChainError,
    ErrorCode,
    InvalidRecord,
    InvalidRecordSet,
    MessageTooLarge,
    StorageError,
)
from leafcuttr.handlers.produce_answers import all_refused, first_failure, from_error, not_admitted, refused
from leafcuttr.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

NONE = ErrorCode.NONE


@pytest.mark.parametrize(
    ("error", "start", "message"),
    [
        (MessageTooLarge("too large"), -1, None),
        (StorageError("no space"), -1, None),
        (InvalidRecordSet("two batches"), -1, None),
        (InvalidRecord("no key"), 7, None),
        (ChainError("a filter failed"), 7, "a filter failed"),
    ],
)
def test_the_log_start_and_the_message(error: BrokerError, start: int, message: str | None) -> None:
    answer = from_error(3, error, 7)
    assert (answer.index, answer.error_code, answer.base_offset) == (3, error.code, -1)
    assert (answer.log_start_offset, answer.error_message) == (start, message)
    assert list(answer.record_errors or ()) == []


@pytest.mark.parametrize(
    ("code", "version", "answered"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, 12, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.NOT_COORDINATOR, 9, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 11, ErrorCode.NOT_ENOUGH_REPLICAS),
        (ErrorCode.CONCURRENT_TRANSACTIONS, 12, ErrorCode.CONCURRENT_TRANSACTIONS),
        (ErrorCode.INVALID_TXN_STATE, 9, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.INVALID_PRODUCER_EPOCH, 12, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_producers_of_every_version_repeat_what_passes(
    code: ErrorCode, version: int, answered: ErrorCode
) -> None:
    answer = not_admitted(0, version, code)
    assert answer.error_code == answered
    if answered == ErrorCode.NOT_ENOUGH_REPLICAS:
        assert answer.error_message is not None and answer.error_message.endswith(code.name)
    else:
        assert (answer.error_message is not None) == (code == ErrorCode.INVALID_TXN_STATE)


def test_a_refused_request_has_one_answer_for_each_partition() -> None:
    def data(name: str, *indexes: int) -> TopicProduceData:
        return TopicProduceData(name=name, partition_data=[PartitionProduceData(index=i) for i in indexes])

    request = ProduceRequest(acks=-1, topic_data=[data("a", 1, 0, 1), data("b", 0), data("a", 2)])
    answers = all_refused(request, ErrorCode.CORRUPT_MESSAGE, "why")
    assert [(each.name, [part.index for part in each.partition_responses]) for each in answers] == [
        ("a", [1, 0, 2]),
        ("b", [0]),
    ]
    parts = [part for each in answers for part in each.partition_responses]
    assert {(part.error_code, part.error_message) for part in parts} == {(ErrorCode.CORRUPT_MESSAGE, "why")}
    assert first_failure(answers) == "CORRUPT_MESSAGE for a-1"
    assert [part.index for part in refused(data("a", 1, 0, 1), NONE).partition_responses] == [1, 0, 1]
    assert first_failure([refused(data("a", 1), NONE)]) is None
