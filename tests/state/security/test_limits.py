"""What the quotas of a client say about its fetches."""

from __future__ import annotations

from leafcuttr.state.security.buckets import Bucket
from leafcuttr.state.security.limits import ClientLimits, QuotaWindows


def test_windows_say_how_much_may_be_caught_up_with() -> None:
    assert (QuotaWindows(11, 2).averaged_s, QuotaWindows(11, 2).whole_s) == (20, 22)
    assert QuotaWindows(1, 3).averaged_s == 3
    assert (QuotaWindows(11, 1).caught_up_s, QuotaWindows(21, 2).caught_up_s) == (2, 8)
    assert QuotaWindows(3, 2).caught_up_s == 2, "one window at least"


def test_a_consumer_waits_for_its_debt_and_for_what_a_tenth_of_a_second_gives() -> None:
    bucket = Bucket(rate=1000, most=10_000, level=0, now_s=0)
    limits = ClientLimits(consumer=bucket)
    assert limits.fetch_wait_s(0) == 0, "nothing is left, and nothing owed"
    assert limits.most_bytes(0) == 100
    bucket.take(500, 0)
    assert limits.fetch_wait_s(0) == 0.6
    assert limits.fetch_wait_s(0.6) == 0
    assert limits.most_bytes(10) == 9500


def test_the_least_rate_lets_a_consumer_have_something() -> None:
    assert ClientLimits(consumer=Bucket(rate=1, most=10, level=0, now_s=0)).most_bytes(0) == 1


def test_the_time_of_the_loop_counts_for_a_fetch_as_well() -> None:
    consumer, request = Bucket(1000, 10_000, 0, 0.0), Bucket(0.5, 5, 0, 0.0)
    request.take(1, 0)
    assert ClientLimits(request=request).fetch_wait_s(0) == 2
    assert ClientLimits(consumer=consumer, request=request).fetch_wait_s(0) == 2
    consumer.take(5000, 0)
    assert ClientLimits(consumer=consumer, request=request).fetch_wait_s(0) == 5.1
    assert ClientLimits(producer=consumer).fetch_wait_s(0) == 0
