"""How many dead letters stop a run."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_spark.pipelines.errors import DeadLetterLimitError
from leafcuttr_spark.pipelines.model import DeadLetters
from leafcuttr_spark.running.limits import Limits


def limits(**given: Any) -> Limits:
    return Limits(DeadLetters("dead", **given))


def add(found: Limits, dead: int, records: int) -> None:
    """One batch."""
    found.check(dead, records)
    found.add(dead, records)


def test_without_limits_all_pass() -> None:
    for each in (Limits(None), limits()):
        add(each, 1000, 1000)
    assert limits().dead == 0


def test_so_many_in_one_run_stop_it() -> None:
    found = limits(stop_after=10)
    add(found, 4, 5)
    add(found, 5, 5)
    add(found, 0, 5)
    assert found.dead == 9
    with pytest.raises(DeadLetterLimitError) as caught:
        add(found, 1, 5)
    assert (
        caught.value.message == "10 dead letters in this run: stop-after is 10. The last batch is not written"
    )
    assert caught.value.step == "dead-letters"
    assert found.dead == 9, "a batch that is not written does not count"
    add(found, 0, 5)


def test_a_share_of_the_last_records_stops_it() -> None:
    found = limits(stop_above=0.01, window=1000)
    add(found, 10, 10)
    add(found, 0, 990)
    with pytest.raises(
        DeadLetterLimitError, match=r"11 of the last 1005 records are dead letters: stop-above is 0\.01"
    ):
        add(found, 1, 5)
    # The first ten leave the window with this batch.
    add(found, 1, 10)
    add(found, 0, 1000)
    add(found, 10, 1000)
    with pytest.raises(DeadLetterLimitError, match="21 of the last 2000 records"):
        add(found, 21, 2000)
    assert found.dead == 21


def test_batches_of_which_no_number_is_known_do_not_stay_in_the_window() -> None:
    found = limits(stop_above=0.5, window=10)
    for _ in range(1000):
        add(found, 0, 0)
    assert not found._last
    for _ in range(1000):
        add(found, 1, 2)
    assert len(found._last) == 5
    assert found.dead == 1000


def test_what_is_checked_is_not_counted() -> None:
    found = limits(stop_after=3)
    found.check(2, 2)
    found.check(2, 2)
    assert found.dead == 0
    found.add(2, 2)
    assert found.dead == 2
