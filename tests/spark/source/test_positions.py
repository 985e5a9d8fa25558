"""Where a stream is, what is missing between two places, how much a batch gets, and the parts that tasks read."""

from __future__ import annotations

import json
import logging
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.options import OptionError
from leafcuttr_spark.source.admission import Idleness, Patience, admitted
from leafcuttr_spark.source.losses import DataLossError, Span, next_positions, reporter, spans_between
from leafcuttr_spark.source.offsets import Positions, id_text, positions_of
from leafcuttr_spark.source.ranges import divided

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def at(offsets: dict[TopicPartition, int], **ids: str) -> Positions:
    return Positions(offsets, ids)


class Losses(list[str]):
    def __call__(self, loss: str) -> None:
        self.append(loss)


# What is in the checkpoint


def test_positions_are_kept_as_json() -> None:
    found = at({B0: 3, A1: 2, A0: 1}, a="x")
    kept = found.as_json()
    assert kept == {"version": 1, "offsets": {"a": {"0": 1, "1": 2}, "b": {"0": 3}}, "topics": {"a": "x"}}
    assert json.dumps(kept) == json.dumps(at({A0: 1, B0: 3, A1: 2}, a="x").as_json()), "Spark compares texts"
    assert positions_of(json.loads(json.dumps(kept))) == found


@pytest.mark.parametrize(
    "kept", [None, {}, {"version": 1}, {"version": 1, "offsets": [], "topics": {}}, {"a": {"0": 1}}]
)
def test_what_is_none_of_ours_is_refused(kept: object) -> None:
    with pytest.raises(OptionError, match="not of this source"):
        positions_of(kept)


def test_a_later_version_is_said() -> None:
    with pytest.raises(OptionError, match="a later LeafCuttr"):
        positions_of({"version": 2})


def test_the_time_that_a_source_without_records_has_come_to_is_kept() -> None:
    kept = Positions({A0: 5}, {}, tick_ms=1_700_000_000_000)
    assert kept.as_json()["tick"] == 1_700_000_000_000
    assert positions_of(kept.as_json()) == kept
    assert "tick" not in Positions({A0: 5}, {}).as_json()
    assert positions_of(Positions({A0: 5}, {}).as_json()).tick_ms is None
    with pytest.raises(OptionError):
        positions_of({**kept.as_json(), "tick": "soon"})


def test_ids_of_topics() -> None:
    assert id_text(bytes(16)) is None
    assert id_text(bytes(range(16))) == "AAECAwQFBgcICQoLDA0ODw"


# What is missing


def test_nothing_is_missing() -> None:
    losses = Losses()
    found = next_positions(
        at({A0: 5, A1: 7}, a="x"), at({A0: 9, A1: 7, B0: 3}, a="x", b="y"), {A0: 0, A1: 7, B0: 0}, losses
    )
    assert found == at({A0: 5, A1: 7, B0: 0}, a="x", b="y")
    assert losses == []


@pytest.mark.parametrize(
    ("start", "now", "begins", "said", "expected"),
    [
        (at({A0: 5, B0: 5}), at({A0: 9}), {A0: 0}, "b-0 do not exist any more", {A0: 5}),
        (at({A0: 5}, a="x"), at({A0: 2}, a="y"), {A0: 0}, "topic a was deleted and created anew", {A0: 0}),
        (at({A0: 5}), at({A0: 3}), {A0: 0}, "it was truncated", {A0: 3}),
        (at({A0: 5}), at({A0: 9}), {A0: 7}, "records are gone", {A0: 7}),
        (
            at({A0: 5}),
            at({A0: 9, A1: 9}),
            {A0: 0, A1: 4},
            "a-1 is new, and begins at offset 4",
            {A0: 5, A1: 4},
        ),
    ],
)
def test_what_is_missing_is_said_once(
    start: Positions,
    now: Positions,
    begins: dict[TopicPartition, int],
    said: str,
    expected: dict[TopicPartition, int],
) -> None:
    losses = Losses()
    assert next_positions(start, now, begins, losses).offsets == expected
    assert len(losses) == 1
    assert said in losses[0]


def test_a_query_fails_or_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataLossError, match="gone; failOnDataLoss=false goes on"):
        reporter(True)("gone")
    with caplog.at_level(logging.WARNING):
        reporter(False)("gone")
    assert "gone; the query goes on" in caplog.text


def test_spans() -> None:
    losses = Losses()
    found = spans_between(at({A0: 5, A1: 7}), at({A0: 9, A1: 7, B0: 3}), {A0: 0, A1: 0, B0: 1}, {}, losses)
    assert found == [Span(A0, 5, 9), Span(B0, 1, 3)]
    assert losses == []


@pytest.mark.parametrize(
    ("start", "end", "begins", "ids", "said", "expected"),
    [
        (at({A0: 5}), at({A0: 9}), {}, {}, "a-0 does not exist any more", []),
        (at({A0: 5}), at({A0: 9}), {A0: 7}, {}, "offsets from 5 on", [Span(A0, 7, 9)]),
        (at({A0: 5}), at({A0: 9}), {A0: 12}, {}, "offsets from 5 on", []),
        (at({A0: 5}, a="x"), at({A0: 9}, a="x"), {A0: 0}, {"a": "y"}, "what this batch was to read", []),
    ],
)
def test_spans_of_what_is_gone(
    start: Positions,
    end: Positions,
    begins: dict[TopicPartition, int],
    ids: dict[str, str],
    said: str,
    expected: list[Span],
) -> None:
    losses = Losses()
    assert spans_between(start, end, begins, ids, losses) == expected
    assert len(losses) == 1
    assert said in losses[0]


def test_a_topic_that_was_created_anew_between_the_two_is_read_from_its_beginning() -> None:
    losses = Losses()
    found = spans_between(at({A0: 50}, a="x"), at({A0: 9}, a="y"), {A0: 2}, {"a": "y"}, losses)
    assert (found, losses) == ([Span(A0, 2, 9)], [])


def test_a_partition_that_is_gone_and_was_read_to_its_end_is_no_loss() -> None:
    losses = Losses()
    assert spans_between(at({A0: 9}), at({A0: 9}), {}, {}, losses) == []
    assert losses == []


# How much


@given(
    st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 2**62)), min_size=1, max_size=6),
    st.none() | st.integers(1, 2**62),
)
def test_admission(sizes: list[tuple[int, int]], maximum: int | None) -> None:
    first = {TopicPartition("t", number): begin for number, (begin, _) in enumerate(sizes)}
    ends = {one: first[one] + size for one, (_, size) in zip(first, sizes, strict=True)}
    found = admitted(first, ends, maximum)
    total = sum(size for _, size in sizes)
    assert found.keys() == ends.keys()
    for one, end in found.items():
        assert first[one] <= end <= ends[one]
        assert end > first[one] or ends[one] == first[one], "none starves"
    taken = sum(found[one] - first[one] for one in found)
    if maximum is None or total <= maximum:
        assert found == ends
    else:
        assert 0 < taken <= maximum + len(sizes)
        assert taken > maximum - len(sizes) or taken == total


def test_admission_is_in_proportion() -> None:
    assert admitted({A0: 0, A1: 100, B0: 7}, {A0: 300, A1: 200, B0: 7}, 40) == {A0: 30, A1: 110, B0: 7}


def test_a_source_is_idle_once_nothing_has_come_for_a_while_and_again_each_time_that_has_passed() -> None:
    idleness = Idleness(10.0)
    said = [idleness.tick(False, now) for now in (100.0, 109.9, 110.0, 110.1, 119.9, 120.0)]
    assert said == [False, False, True, False, False, True]
    assert not idleness.tick(True, 125.0)
    assert not idleness.tick(False, 130.0), "ten seconds since the last tick, five since the last record"
    assert idleness.tick(False, 135.0)
    never = Idleness(None)
    assert not any(never.tick(False, now) for now in (0.0, 1e9))


def test_patience() -> None:
    patience = Patience(10, 60.0)
    assert not patience.waits({A0: 0}, {A0: 1}, 100.0), "the first batch does not wait"
    assert patience.waits({A0: 1}, {A0: 9}, 110.0)
    assert patience.waits({A0: 1}, {A0: 1}, 500.0), "nothing is not given out, however long it waits"
    assert not patience.waits({A0: 1}, {A0: 11}, 120.0)
    assert patience.waits({A0: 11}, {A0: 12}, 179.9)
    assert not patience.waits({A0: 11}, {A0: 12}, 180.0)
    assert not Patience(None, 60.0).waits({A0: 0}, {A0: 0}, 0.0)


# Parts

spans = st.lists(st.integers(1, 1000), min_size=0, max_size=6).map(
    lambda sizes: [Span(TopicPartition("t", n), 10 * n, 10 * n + size) for n, size in enumerate(sizes)]
)


@given(spans, st.none() | st.integers(1, 50), st.none() | st.integers(1, 300))
def test_parts_are_the_spans_in_order(some: list[Span], minimum: int | None, largest: int | None) -> None:
    found = divided(some, minimum, largest)
    for span in some:
        mine = [part for part in found if part.partition == span.partition]
        assert (mine[0].first, mine[-1].end) == (span.first, span.end)
        assert all(before.end == after.first for before, after in pairwise(mine))
        assert all(part.first < part.end for part in mine)
    assert [part.partition for part in found] == sorted(part.partition for part in found)
    if largest is not None:
        assert all(part.end - part.first <= largest for part in found)
    if minimum is None and largest is None:
        assert found == some


def test_the_larger_a_span_the_more_parts() -> None:
    some = [Span(A0, 0, 10), Span(A1, 0, 600), Span(B0, 0, 300)]
    found = divided(some, 10, None)
    assert [sum(part.partition == one.partition for part in found) for one in some] == [1, 6, 3]
    assert divided(some, 3, None) == some
    assert len(divided(some, None, 100)) == 10
