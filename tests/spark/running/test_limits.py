"""How many dead letters stop a run."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr_spark.pipelines.errors import DeadLetterLimitError
from leafcuttr_spark.pipelines.model import DeadLetters
from leafcuttr_spark.running.limits import Limits


def limits(**given: Any) -> Limits:
    return Limits(DeadLetters("dead", **given))


def test_without_limits_all_pass() -> None:
    for each in (Limits(None), limits()):
        each.add(1000, 1000)
    assert limits().dead == 0


def test_so_many_in_one_run_stop_it() -> None:
    found = limits(stop_after=10)
    found.add(4, 5)
    found.add(5, 5)
    found.add(0, 5)
    assert found.dead == 9
    with pytest.raises(DeadLetterLimitError) as caught:
        found.add(1, 5)
    assert (
        caught.value.message == "10 dead letters in this run: stop-after is 10. The last batch is not written"
    )
    assert caught.value.step == "dead-letters"
    assert found.dead == 9, "a batch that is not written does not count"
    found.add(0, 5)


def test_a_share_of_the_last_records_stops_it() -> None:
    found = limits(stop_above=0.01, window=1000)
    found.add(10, 10)
    found.add(0, 990)
    with pytest.raises(
        DeadLetterLimitError, match=r"11 of the last 1005 records are dead letters: stop-above is 0\.01"
    ):
        found.add(1, 5)
    # The first ten leave the window with this batch.
    found.add(1, 10)
    found.add(0, 1000)
    found.add(10, 1000)
    with pytest.raises(DeadLetterLimitError, match="21 of the last 2000 records"):
        found.add(21, 2000)
    assert found.dead == 21
