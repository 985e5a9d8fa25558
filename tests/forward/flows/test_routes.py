"""Which partition takes what."""

from __future__ import annotations

from leafcuttr_forward.flows.routes import Route
from leafcuttr_sdk.batches import partition_of


def test_the_number_of_the_source_is_kept() -> None:
    route = Route("t", 4)
    assert [route.partition(number) for number in range(4)] == [0, 1, 2, 3]
    assert route.partition_for(2, b"any") == 2


def test_a_fixed_partition_takes_everything() -> None:
    route = Route("t", 4, fixed=3, by_key=True)
    assert route.partition(0) == 3
    assert route.partition_for(1, b"any") == 3


def test_keys_decide_and_what_has_none_stays_together() -> None:
    route = Route("t", 3, by_key=True)
    assert route.partition(1) is None
    assert route.partition_for(0, memoryview(b"k")) == partition_of(b"k", 3)
    assert {route.partition_for(4, None) for _ in range(5)} == {1}


def test_a_partition_that_the_target_does_not_have_yet() -> None:
    assert Route("t", 2).partition(3) == 1
