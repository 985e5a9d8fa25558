"""Errors as answers, and which of them stands for an error of the broker."""

from __future__ import annotations

import pytest

from leafcuttr_sdk.errors import BrokerError, ErrorCode, UnknownTopicOrPartition
from leafcuttr_sdk.web.errors import ApiError, code_of, describe, of_broker


@pytest.mark.parametrize(("code", "status"), [(404, 404), (999, 999), (40401, 404), (50003, 500)])
def test_an_error_and_its_status(code: int, status: int) -> None:
    error = ApiError(code, "No.", (("retry-after", "1"),))
    assert (error.status, error.headers, str(error)) == (status, (("retry-after", "1"),), "No.")
    assert error.body == {"error_code": code, "message": "No."}


def of(code: ErrorCode, message: str = "") -> BrokerError:
    error = UnknownTopicOrPartition(message)
    error.code = code  # type: ignore[misc]
    return error


@pytest.mark.parametrize(
    ("code", "known"),
    [
        (ErrorCode.REQUEST_TIMED_OUT, 50003),
        (ErrorCode.KAFKA_STORAGE_ERROR, 50003),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, 50003),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 50002),
        (ErrorCode.MESSAGE_TOO_LARGE, 50002),
    ],
)
def test_what_may_succeed_later_has_a_code_of_its_own(code: ErrorCode, known: int) -> None:
    assert code_of(of(code)) == known
    assert of_broker(of(code)).code == known


def test_it_has_kafkas_name_and_the_brokers_words() -> None:
    assert describe(of(ErrorCode.MESSAGE_TOO_LARGE, "9 bytes")) == "MESSAGE_TOO_LARGE: 9 bytes"
    assert describe(of(ErrorCode.MESSAGE_TOO_LARGE)).startswith("MESSAGE_TOO_LARGE")
