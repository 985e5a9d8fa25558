"""Trying again: what passes by itself is repeated after a pause that grows, until the call's time is over."""

import random
from collections.abc import Awaitable, Callable, Container
from typing import Final, TypeVar

import trio

from leafcuttr.client.codes import PASSING
from leafcuttr.client.errors import ClientError
from leafcuttr.client.settings import ClientSettings
from leafcuttr.errors import BrokerError, ErrorCode, RequestTimedOut

T = TypeVar("T")
_JITTER: Final = 0.2
_MARKERS_S: Final = 0.02
"""The pause while a transaction's markers are being written, which is soon over."""


class RetryPauses:
    """Pauses from `retry.backoff.ms` to `retry.backoff.max.ms`, each twice the one before, with a jitter of 20 %
    (KIP-580)."""

    def __init__(self, settings: ClientSettings) -> None:
        self._first = settings.retry_backoff_s
        self._most = max(settings.retry_backoff_max_s, settings.retry_backoff_s)
        self._failures = 0

    def reset(self) -> None:
        """It worked."""
        self._failures = 0

    def next_s(self, code: int = ErrorCode.NONE) -> float:
        """How long to wait now, after an answer with this code or after none."""
        pause = min(self._first * 2.0 ** min(self._failures, 30), self._most)
        self._failures += 1
        pause *= random.uniform(1 - _JITTER, 1 + _JITTER)
        return min(pause, _MARKERS_S) if code == ErrorCode.CONCURRENT_TRANSACTIONS else pause

    async def wait(self) -> None:
        await trio.sleep(self.next_s())


async def until_answered(
    settings: ClientSettings,
    attempt: Callable[[float], Awaitable[T]],
    *,
    timeout_s: float | None = None,
    passing: Container[ErrorCode] = PASSING,
) -> T:
    """What `attempt` returns. It gets the seconds that it may take, and is repeated after what passes: codes of
    `passing`, and what goes wrong with connections.

    Raises BrokerError: what a broker answered, or RequestTimedOut with the reason why none did.
    """
    limit = settings.request_timeout_s if timeout_s is None else timeout_s
    deadline = trio.current_time() + limit
    backoff = RetryPauses(settings)
    while True:
        try:
            left_s = max(deadline - trio.current_time(), 0.001)
            return await attempt(min(left_s, settings.request_timeout_s))
        except ClientError as error:
            last: BrokerError = RequestTimedOut(str(error))
            last.__cause__ = error
            passes = error.passes
        except BrokerError as error:
            last, passes = error, error.code in passing
        pause = backoff.next_s(last.code)
        if not passes or trio.current_time() + pause >= deadline:
            raise last
        await trio.sleep(pause)
