"""`Sequences` beside a set."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.storage.sequences import Sequences

SMALL = st.integers(0, 30)


def assert_as(sequences: Sequences, model: set[int]) -> None:
    assert {each for each in range(-2, 70) if each in sequences} == model
    ranges = list(sequences.ranges())
    assert [each for first, end in ranges for each in range(first, end)] == sorted(model)
    # None is empty, and none touches the next one.
    assert all(first < end for first, end in ranges)
    assert all(before[1] < after[0] for before, after in pairwise(ranges))
    assert bool(sequences) == bool(model)


@given(st.lists(st.tuples(SMALL, SMALL), max_size=20))
def test_ranges_and_single_ones(steps: list[tuple[int, int]]) -> None:
    sequences, model = Sequences(), set[int]()
    for first, count in steps:
        if count == 1:
            sequences.add(first)
        else:
            sequences.add_range(first, first + count)
        model.update(range(first, first + count))
        assert_as(sequences, model)
    assert list(Sequences(sequences.ranges()).ranges()) == list(sequences.ranges())


@given(st.sets(SMALL), SMALL)
def test_what_begins_with_the_first_is_taken_out(model: set[int], first: int) -> None:
    model = {each for each in model if each >= first}
    sequences = Sequences((each, each + 1) for each in model)
    end = first
    while end in model:
        model.discard(end)
        end += 1
    assert sequences.pop_from(first) == end
    assert_as(sequences, model)


@given(st.sets(st.integers(3, 20)))
def test_all_but_some(kept: set[int]) -> None:
    assert_as(Sequences.all_but(sorted(kept), 3, 21), set(range(3, 21)) - kept)


def test_neighbours_become_one() -> None:
    assert list(Sequences([(5, 6), (4, 5), (1, 2), (2, 4)]).ranges()) == [(1, 6)]


def test_an_empty_range_is_none() -> None:
    assert_as(Sequences([(4, 4), (5, 3)]), set())


def test_a_range_takes_no_more_than_one_sequence() -> None:
    sequences = Sequences()
    for first in range(0, 100, 2):
        sequences.add_range(first * 10**12, (first + 1) * 10**12)
    for sequence in range(10**15, 10**15 + 1000):
        sequences.add(sequence)
    assert len(list(sequences.ranges())) == 51
