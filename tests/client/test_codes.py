"""Which error codes pass by themselves."""

from __future__ import annotations

from leafcuttr.client.codes import LATER, NEW_COORDINATOR, NEW_LEADER, PASSING, PASSING_AT_LEADERS
from leafcuttr.errors import ErrorCode


def test_one_reaction_to_a_code() -> None:
    assert len(PASSING | NEW_LEADER) == len(NEW_LEADER) + len(LATER) + len(NEW_COORDINATOR)


def test_what_a_retry_does_not_change_is_not_retried() -> None:
    for code in (
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.OFFSET_OUT_OF_RANGE,
    ):
        assert code not in PASSING | PASSING_AT_LEADERS
