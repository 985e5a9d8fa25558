"""What is left of a quota: the average holds, whatever is taken at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.state.security.buckets import Bucket


def test_it_fills_with_its_rate_up_to_its_most() -> None:
    bucket = Bucket(rate=10, most=100, level=20, now_s=5)
    assert bucket.level(5) == 20
    assert bucket.level(7) == 40
    assert not bucket.is_full(7)
    assert bucket.level(1000) == 100
    assert bucket.is_full(1000)


def test_what_was_taken_beyond_it_is_waited_for() -> None:
    bucket = Bucket(rate=10, most=100, level=20, now_s=0)
    bucket.take(20, 0)
    assert bucket.wait_s(0) == 0
    bucket.take(30, 0)
    assert bucket.level(0) == -30
    assert bucket.wait_s(0) == 3
    assert bucket.wait_s(1) == 2
    assert bucket.wait_s(1, until=10) == 3
    assert bucket.wait_s(3) == 0


def test_a_wait_has_an_end() -> None:
    bucket = Bucket(rate=1e-9, most=1, level=0, now_s=0)
    bucket.take(1e9, 0)
    assert bucket.wait_s(0) == (2**31 - 1) / 1000
    bucket.longest_s = 1
    assert bucket.wait_s(0) == 1


def test_another_rate_holds_from_then_on_and_leaves_the_debt() -> None:
    bucket = Bucket(rate=10, most=100, level=0, now_s=0)
    bucket.take(100, 0)
    bucket.resize(rate=40, most=400, now_s=5)
    assert bucket.level(5) == -50
    assert bucket.wait_s(5) == 1.25
    bucket.resize(rate=1, most=10, now_s=100)
    assert bucket.level(100) == 10, "no more than the new quota allows"


def test_time_does_not_go_back() -> None:
    bucket = Bucket(rate=10, most=100, level=0, now_s=10)
    assert bucket.level(9) == 0
    assert bucket.level(11) == 10


@given(st.lists(st.tuples(st.floats(0.1, 500), st.floats(0, 3)), min_size=1), st.floats(1, 100))
def test_a_client_that_waits_as_it_is_told_gets_its_rate(
    amounts: list[tuple[float, float]], rate: float
) -> None:
    """All it gets before its last request is covered by what the bucket had and what came in since."""
    bucket, now_s, taken, last = Bucket(rate, 10 * rate, rate, 0.0), 0.0, 0.0, 0.0
    for amount, pause_s in amounts:
        now_s += bucket.wait_s(now_s) + pause_s
        bucket.take(amount, now_s)
        taken, last = taken + amount, amount
    assert taken - last <= (rate + rate * now_s) * (1 + 1e-9)
