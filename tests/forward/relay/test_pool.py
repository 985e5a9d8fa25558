"""Which source is read: the table of states, each decision, and that no run of observations takes a source that lacks
the position."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_forward.relay.pool import STAY, GiveUp, Health, Pauses, Range, SourcePool, Switch
from leafcuttr_sdk.types import TopicPartition

ONE = TopicPartition("orders", 0)
TWO = TopicPartition("orders", 1)


def ends(*found: int, start: int = 0) -> dict[TopicPartition, Range]:
    return {TopicPartition("orders", index): Range(start, end) for index, end in enumerate(found)}


def pool(count: int = 3, **more: int) -> SourcePool:
    made = SourcePool([f"node{index + 1}" for index in range(count)], **{"lag_threshold": 10, **more})
    for index in range(count):
        made.answered(index, ends(100, 100))
    return made


def down(made: SourcePool, index: int) -> None:
    made.failed(index, "no broker answers")
    made.failed(index, "no broker answers")


def test_the_first_is_read_at_the_beginning() -> None:
    made = pool()
    assert made.decide({}) == Switch(0, "it is the first that can be read", first=True)
    assert (made.current, made.switches) == (0, 0)
    assert made.decide({}) == STAY


def test_another_first_one_may_be_chosen() -> None:
    made = pool(first=2)
    assert made.decide({}) == Switch(2, "it is the first that can be read", first=True)


def test_the_beginning_waits_for_the_probe_of_the_first_and_for_no_other() -> None:
    made = SourcePool(["node1", "node2", "node3"], lag_threshold=10)
    made.answered(1, ends(5))
    assert made.decide({}) == STAY
    made.failed(0, "no broker answers")
    assert made.sources[0].health is Health.DOWN
    decision = made.decide({})
    assert isinstance(decision, Switch)
    assert decision.to == 1


def test_one_failed_probe_is_no_switch_and_is_repeated_at_once() -> None:
    made = pool()
    made.decide({})
    made.failed(0, "no answer within 100ms")
    assert made.suspects == [0]
    assert made.decide({}) == STAY
    made.answered(0, ends(100, 100))
    assert made.suspects == []
    made.failed(0, "no answer within 100ms")
    assert made.sources[0].health is Health.SUSPECT


def test_a_source_that_is_down_is_followed_by_the_next_one() -> None:
    made = pool()
    made.decide({})
    down(made, 0)
    assert made.decide({ONE: 100}) == Switch(1, "node1: no broker answers")
    down(made, 1)
    assert made.decide({ONE: 100}) == Switch(2, "node2: no broker answers")
    made.answered(0, ends(100, 100))
    down(made, 2)
    assert made.decide({ONE: 100}) == Switch(0, "node3: no broker answers")
    assert made.switches == 3


def test_the_next_one_is_passed_over_if_it_would_be_left_at_once() -> None:
    made = pool()
    made.decide({})
    made.answered(2, ends(150, 150))
    down(made, 0)
    assert made.decide({}) == Switch(2, "node1: no broker answers")


def test_the_next_one_is_taken_where_it_lags_by_no_more_than_the_threshold() -> None:
    made = pool()
    made.decide({})
    made.answered(2, ends(105, 105))
    down(made, 0)
    assert made.decide({}) == Switch(1, "node1: no broker answers")


def rounds(made: SourcePool, *found: int) -> None:
    """Two rounds in which the sources have so many records in each of two partitions."""
    for _ in range(2):
        for index, end in enumerate(found):
            made.answered(index, ends(end, 100))
        made.round_ended()


def test_a_lag_beyond_the_threshold_is_a_switch_to_the_healthiest() -> None:
    made = pool()
    made.decide({})
    rounds(made, 100, 110, 100)
    assert made.decide({ONE: 90}) == STAY
    rounds(made, 100, 111, 112)
    assert made.decide({ONE: 90}) == Switch(
        2, "node1 lags behind node3 by 12 records, more than 10", lagging=0
    )
    assert made.decide({ONE: 90}) == STAY


def test_what_came_between_two_probes_of_a_round_is_no_lag() -> None:
    made = pool(2)
    made.decide({})
    for grown in range(1000, 20000, 1000):
        made.answered(0, ends(grown, 100))
        made.answered(1, ends(grown + 900, 100))
        assert made.decide({}) == STAY
        made.round_ended()
        assert made.decide({}) == STAY


def test_a_source_that_stands_still_is_left_after_the_second_round() -> None:
    made = pool(2)
    made.decide({})
    for grown in (1000, 2000):
        made.answered(0, ends(500, 100))
        made.answered(1, ends(grown, 100))
        assert made.decide({}) == STAY
        made.round_ended()
    assert made.decide({}) == Switch(1, "node1 lags behind node2 by 500 records, more than 10", lagging=0)


def test_a_source_that_ends_before_the_position_is_waited_for() -> None:
    made = pool(2)
    made.decide({})
    down(made, 0)
    made.answered(1, ends(100, 99))
    position = {ONE: 100, TWO: 100}
    assert made.decide(position) == STAY
    assert made.why_not(1, position) == "orders-1 ends at 99, before the position 100"
    made.answered(1, ends(100, 100))
    assert made.decide(position) == Switch(1, "node1: no broker answers")


def test_a_source_whose_log_begins_behind_the_position_is_not_taken() -> None:
    made = pool(2)
    made.decide({})
    down(made, 0)
    made.answered(1, ends(200, 200, start=101))
    assert made.decide({ONE: 100}) == STAY
    assert made.why_not(1, {ONE: 100}) == "orders-0 begins at 101, behind the position 100"
    assert made.why_not(1, {ONE: 101}) is None


def test_a_source_without_the_partition_is_not_taken() -> None:
    made = pool(2)
    made.decide({})
    down(made, 0)
    made.answered(1, ends(100))
    assert made.decide({TWO: 0}) == STAY
    assert made.why_not(1, {TWO: 0}) == "it does not have orders-1"


def test_a_source_with_other_records_is_left_and_never_taken() -> None:
    made = pool(3)
    made.decide({})
    down(made, 0)
    assert made.decide({}) == Switch(1, "node1: no broker answers")
    made.refuse(1, "record 99 of orders-0 is another one")
    assert made.decide({}) == Switch(2, "node2: record 99 of orders-0 is another one")
    made.answered(1, ends(500, 500))
    assert made.decide({}) == STAY
    assert made.why_not(1, {}) == "record 99 of orders-0 is another one"


def test_it_ends_once_every_source_has_other_records() -> None:
    made = pool(2)
    made.decide({})
    made.refuse(0, "record 9 is another one")
    assert made.decide({}) == Switch(1, "node1: record 9 is another one")
    made.refuse(1, "record 9 is not there")
    assert made.decide({}) == GiveUp(
        "no source has what was copied last: node1: record 9 is another one; node2: record 9 is not there"
    )


def test_where_no_other_is_up_the_source_that_is_read_stays() -> None:
    made = pool(2)
    made.decide({})
    down(made, 0)
    down(made, 1)
    assert made.decide({}) == STAY
    made.answered(0, ends(100, 100))
    assert made.decide({}) == STAY
    assert made.current == 0


def test_it_ends_after_as_many_switches_as_are_allowed() -> None:
    made = pool(2, max_failovers=1)
    made.decide({})
    down(made, 0)
    assert made.decide({}) == Switch(1, "node1: no broker answers")
    made.answered(0, ends(100, 100))
    down(made, 1)
    assert made.decide({}) == GiveUp(
        "node2: no broker answers, and max_failovers allows 1 switches of source"
    )
    assert made.current == 1


def test_none_is_allowed() -> None:
    made = pool(2, max_failovers=0)
    assert isinstance(made.decide({}), Switch)
    down(made, 0)
    assert isinstance(made.decide({}), GiveUp)


def test_it_ends_after_as_many_rounds_in_vain_as_are_allowed() -> None:
    made = pool(2, max_retries=2)
    made.decide({})
    for _ in range(2):
        down(made, 0)
        down(made, 1)
        made.round_ended()
        assert made.decide({}) == STAY or made.vain == 2
    assert made.decide({}) == GiveUp(
        "no source answers after 2 tries: node1: no broker answers; node2: no broker answers"
    )


def test_an_answer_of_one_source_starts_the_count_anew() -> None:
    made = pool(2, max_retries=2)
    made.decide({})
    down(made, 0)
    down(made, 1)
    made.round_ended()
    assert made.vain == 1
    made.answered(1, ends(100, 100))
    assert made.vain == 0
    made.round_ended()
    assert made.vain == 0


def test_no_retries_end_with_the_first_round_in_vain_and_not_before() -> None:
    made = SourcePool(["node1"], lag_threshold=10, max_retries=0)
    assert made.decide({}) == STAY
    made.failed(0, "no broker answers")
    made.round_ended()
    assert made.decide({}) == GiveUp("no source answers after 1 tries: node1: no broker answers")


def test_without_a_limit_it_never_ends() -> None:
    made = SourcePool(["node1"], lag_threshold=10)
    for _ in range(1000):
        made.failed(0, "no broker answers")
        made.round_ended()
        assert made.decide({}) == STAY


def test_pauses_double_with_jitter_up_to_the_longest() -> None:
    pauses = Pauses(True, 2.0, 10.0)
    random = Random(7)
    for tries, least, most in (
        (1, 1.6, 2.4),
        (2, 3.2, 4.8),
        (3, 6.4, 9.6),
        (4, 10.0, 10.0),
        (10**6, 10.0, 10.0),
    ):
        found = {pauses.after(tries, random) for _ in range(200)}
        assert least <= min(found) <= max(found) <= most
    assert len({pauses.after(1, random) for _ in range(20)}) > 1


def test_without_back_off_a_pause_is_a_second() -> None:
    assert {Pauses(False, 2.0, 10.0).after(tries, Random(1)) for tries in (1, 2, 50)} == {1.0}


@pytest.mark.parametrize("health", Health)
def test_every_state_has_a_next_one(health: Health) -> None:
    made = SourcePool(["node1"], lag_threshold=10)
    made.sources[0].health = health
    made.answered(0, ends(1))
    assert made.sources[0].health is Health.UP


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.one_of(st.none(), st.tuples(st.integers(0, 40), st.integers(0, 40)))),
        max_size=60,
    ),
    st.integers(0, 40),
)
def test_a_source_is_taken_only_if_it_has_the_position(
    events: list[tuple[int, tuple[int, int] | None]], offset: int
) -> None:
    made = SourcePool(["node1", "node2", "node3"], lag_threshold=5)
    position = {ONE: offset}
    for index, found in events:
        if found is None:
            made.failed(index, "no broker answers")
        else:
            made.answered(index, {ONE: Range(min(found), max(found))})
        before = made.current
        decision = made.decide(position)
        if isinstance(decision, Switch):
            assert decision.to == made.current != before
            taken = made.sources[decision.to]
            assert taken.health is Health.UP
            assert taken.ranges[ONE].start <= offset <= taken.ranges[ONE].end
        else:
            assert made.current == before
