"""Throttle and pauses."""

from __future__ import annotations

from leafcuttr_forward.flows.pace import FIRST_PAUSE_S, LONGEST_PAUSE_S, Backoff, Throttle
from leafcuttr_sdk.testing import HandClock


def test_pauses_grow_and_are_never_the_same() -> None:
    backoff = Backoff()
    pauses = [backoff.next_s() for _ in range(12)]
    for at, pause in enumerate(pauses):
        middle = min(FIRST_PAUSE_S * 2**at, LONGEST_PAUSE_S)
        assert 0.79 * middle <= pause <= 1.21 * middle
    assert len({Backoff().next_s() for _ in range(20)}) > 10
    backoff.reset()
    assert backoff.next_s() < 2 * FIRST_PAUSE_S


def test_without_a_limit_nothing_waits() -> None:
    assert Throttle(None, HandClock()).pause_s(1 << 40) == 0


def test_a_throttle_keeps_its_rate() -> None:
    clock = HandClock()
    throttle = Throttle(1000.0, clock)
    assert throttle.pause_s(1000) == 0  # the burst of a second
    waited = 0.0
    for _ in range(100):
        pause = throttle.pause_s(500)
        waited += pause
        clock.ms += round(pause * 1000)
    assert 49 <= waited <= 51


def test_what_was_not_used_is_kept_for_a_second_only() -> None:
    clock = HandClock()
    throttle = Throttle(1000.0, clock)
    clock.ms += 3_600_000
    assert throttle.pause_s(1000) == 0
    assert throttle.pause_s(1000) == 1
