"""`rate`: a bucket of tokens, of the topic or of each key."""

from __future__ import annotations

from leafcuttr_sdk import DROP, DeadLetter
from leafcuttr_sdk.testing import HandClock
from support.making_filters import made, of


def test_so_many_pass_and_the_bucket_fills_again() -> None:
    clock = HandClock()
    rate = made("rate records=3 per=1s", clock=clock).filter
    record = of(b"")
    assert [rate(record) is record for _ in range(5)] == [True, True, True, False, False]
    clock.ms += 333
    assert rate(record) is DROP
    clock.ms += 1
    assert [rate(record) is record for _ in range(2)] == [True, False]
    clock.ms += 100_000
    assert [rate(record) is record for _ in range(5)] == [True, True, True, False, False]


def test_each_key_has_a_bucket() -> None:
    rate = made("rate records=1 per=1m by=key over=dead-letter").filter
    first, second = of(b"", b"a"), of(b"", b"b")
    assert (rate(first), rate(second)) == (first, second)
    assert rate(first) == DeadLetter("rate: more than 1 records in 60000 ms") == rate(second)
    none = of(b"")
    assert rate(none) is none and rate(none) is not none


def test_keys_seen_last_are_kept_count_of() -> None:
    rate = made("rate records=1 per=1m by=key keys=2").filter
    a, b, c = of(b"", b"a"), of(b"", b"b"), of(b"", b"c")
    assert [rate(one) is one for one in (a, b, a, c)] == [True, True, False, True]
    assert [rate(one) is one for one in (a, b)] == [False, True], "b was forgotten, seen before a"
