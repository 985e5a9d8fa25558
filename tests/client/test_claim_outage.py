"""When it is worth a line that nobody can say who has a claim."""

from __future__ import annotations

import pytest

from leafcuttr.client.claim_outage import LASTS_S, ClaimOutage
from leafcuttr.client.coordinators import COORDINATOR_NOT_YET
from leafcuttr.client.errors import Unreachable, refusal
from leafcuttr.errors import ErrorCode

NOT_AVAILABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


@pytest.mark.parametrize("code", sorted(COORDINATOR_NOT_YET))
def test_a_coordinator_that_is_away_is_said_once_that_has_lasted(code: ErrorCode) -> None:
    outage = ClaimOutage("owner")
    assert outage.line(refusal(code), 100) is None
    assert outage.line(refusal(code), 99.9 + LASTS_S) is None
    line = outage.line(refusal(code), 100 + LASTS_S)
    assert line == f"the coordinator of the group owner: {code.name.replace('_', ' ').lower()} ({code.name})"


def test_the_broker_s_own_words_are_kept() -> None:
    outage = ClaimOutage("owner")
    assert outage.line(refusal(NOT_AVAILABLE), 0) is None
    line = outage.line(refusal(NOT_AVAILABLE, "The coordinator is not available."), LASTS_S)
    assert line == (
        "the coordinator of the group owner: The coordinator is not available (COORDINATOR_NOT_AVAILABLE)"
    )


def test_it_lasts_through_whatever_else_goes_wrong() -> None:
    outage = ClaimOutage("owner")
    assert outage.line(Unreachable("no broker answers at here:9092"), 0) == "no broker answers at here:9092"
    assert outage.line(refusal(NOT_AVAILABLE), LASTS_S) is not None


def test_an_answer_ends_it() -> None:
    outage = ClaimOutage("owner")
    assert outage.line(refusal(NOT_AVAILABLE), 0) is None
    outage.over()
    assert outage.line(refusal(NOT_AVAILABLE), LASTS_S) is None
    assert outage.line(refusal(NOT_AVAILABLE), 2 * LASTS_S) is not None


def test_what_does_not_pass_is_said_at_once() -> None:
    line = ClaimOutage("owner").line(refusal(ErrorCode.UNKNOWN_SERVER_ERROR), 0)
    assert line is not None
    assert "UNKNOWN_SERVER_ERROR" in line
