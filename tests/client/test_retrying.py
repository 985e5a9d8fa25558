"""What is tried again, for how long, and what is raised in the end. trio's clock is moved by hand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
import trio
from trio.testing import MockClock

from leafcuttr.client.errors import AuthenticationRefused, ClientError, Unreachable, refusal
from leafcuttr.client.retrying import RetryPauses, until_answered
from leafcuttr.client.settings import ClientSettings, HostPort
from leafcuttr.errors import BrokerError, ErrorCode, RequestTimedOut, TopicAlreadyExists

SETTINGS = ClientSettings(
    bootstrap=(HostPort("h", 1),), request_timeout_s=10, retry_backoff_s=0.1, retry_backoff_max_s=1
)


class Attempts:
    """Fails with these errors in turn, then answers; `at` is when, and `left` what it was told."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.at: list[float] = []
        self.left: list[float] = []

    async def __call__(self, left_s: float) -> str:
        self.at.append(trio.current_time())
        self.left.append(left_s)
        await trio.lowlevel.checkpoint()
        if self.errors:
            raise self.errors.pop(0)
        return "answer"


def call(attempt: Callable[[float], Awaitable[str]], **more: float) -> str:
    async def run() -> str:
        return await until_answered(SETTINGS, attempt, **more)  # type: ignore[arg-type]

    return trio.run(run, clock=MockClock(autojump_threshold=0))


def test_what_passes_is_tried_again_after_pauses_that_grow() -> None:
    attempts = Attempts(
        Unreachable("away"), refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), Unreachable("away")
    )
    assert call(attempts) == "answer"
    pauses = [later - before for before, later in zip(attempts.at, attempts.at[1:], strict=False)]
    for pause, most in zip(pauses, (0.1, 0.2, 0.4), strict=True):
        assert 0.8 * most <= pause <= 1.2 * most
    assert attempts.left == [10 - at for at in attempts.at]


def test_one_attempt_takes_no_longer_than_a_request() -> None:
    """Where nothing answers any more, another connection may."""
    attempts = Attempts()
    call(attempts, timeout_s=120)
    assert attempts.left == [10]


def test_no_pause_is_longer_than_the_longest() -> None:
    pauses = RetryPauses(SETTINGS)
    assert max(pauses.next_s() for _ in range(50)) <= 1.2
    pauses.reset()
    assert pauses.next_s() <= 0.12


def test_markers_are_soon_written() -> None:
    attempts = Attempts(*[refusal(ErrorCode.CONCURRENT_TRANSACTIONS)] * 5)
    assert call(attempts) == "answer"
    assert attempts.at[-1] <= 0.1


@pytest.mark.parametrize(
    "error", [TopicAlreadyExists("there"), refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
)
def test_what_does_not_pass_is_raised_at_once(error: BrokerError) -> None:
    attempts = Attempts(error)
    with pytest.raises(type(error)):
        call(attempts)
    assert attempts.at == [0]


def test_a_wrong_password_is_not_tried_again() -> None:
    attempts = Attempts(AuthenticationRefused("the password is wrong"))
    with pytest.raises(RequestTimedOut, match="the password is wrong") as raised:
        call(attempts)
    assert isinstance(raised.value.__cause__, ClientError)
    assert attempts.at == [0]


def test_in_the_end_the_last_reason_is_raised() -> None:
    with pytest.raises(RequestTimedOut, match="no broker answers"):
        call(Attempts(*[Unreachable("no broker answers at h:1")] * 100), timeout_s=3)
    attempts = Attempts(*[refusal(ErrorCode.NOT_COORDINATOR, "moved")] * 100)
    with pytest.raises(BrokerError, match="moved") as raised:
        call(attempts)
    assert raised.value.code is ErrorCode.NOT_COORDINATOR
    assert 8 < attempts.at[-1] < 10
