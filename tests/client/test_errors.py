"""The family of errors, and the exceptions for Kafka's error codes."""

from __future__ import annotations

import pytest

from leafcuttr.client.errors import (
    AuthenticationRefused,
    NotKafka,
    OtherRefusal,
    Unreachable,
    reason,
    refusal,
)
from leafcuttr.errors import BrokerError, ErrorCode, InvalidRecord, UnknownTopicOrPartition
from leafcuttr_sdk.errors import InvalidProducerEpoch


@pytest.mark.parametrize("code", [code for code in ErrorCode if code], ids=lambda code: code.name)
def test_each_code_has_an_exception_with_that_code(code: ErrorCode) -> None:
    error = refusal(code)
    assert isinstance(error, BrokerError)
    assert error.code == code
    assert str(error) == code.name.replace("_", " ").lower()
    assert str(refusal(code, "because")) == "because"


def test_the_class_is_the_one_that_says_no_more_than_the_code() -> None:
    assert type(refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)) is UnknownTopicOrPartition
    assert type(refusal(ErrorCode.INVALID_RECORD)) is InvalidRecord
    assert type(refusal(ErrorCode.INVALID_PRODUCER_EPOCH)) is InvalidProducerEpoch
    assert type(refusal(ErrorCode.LEADER_NOT_AVAILABLE)) is OtherRefusal


def test_a_code_of_a_later_kafka() -> None:
    error = refusal(9999)
    assert error.code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert str(error) == "refused (error 9999)"
    assert reason(9999, "new") == "new (error 9999)"
    assert reason(3) == "unknown topic or partition (UNKNOWN_TOPIC_OR_PARTITION)"
    assert reason(3, "No.") == "No (UNKNOWN_TOPIC_OR_PARTITION)"


def test_what_may_pass_by_itself() -> None:
    assert Unreachable("x").passes
    assert not AuthenticationRefused("x").passes
    assert not NotKafka("x").passes
