"""Record filters outside of a topic's chain: what becomes of each record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from leafcuttr.plugins.filter_chain import OutsideChain, OutsideFilter
from leafcuttr.runtime.plugin_parts import Part
from leafcuttr_sdk import DROP, DeadLetter, FilterFailure, NotReady, Record, Routed


def record(value: bytes, timestamp: int = 5) -> Record:
    return Record(value, b"key", (("h", b"1"),), timestamp)


def chain(*calls: Callable[[Record], Any], forget: Callable[[], None] | None = None) -> OutsideChain:
    return OutsideChain(
        [
            OutsideFilter(f"f{number}", call, Part("p", f"record filter f{number}"), forget)
            for number, call in enumerate(calls)
        ]
    )


def verdicts(**of: Any) -> Callable[[Record], Any]:
    """A filter with a verdict for some values, which may be a function of the record."""

    def judge(one: Record) -> Any:
        verdict = of.get((one.value or b"").decode(), one)
        return verdict(one) if callable(verdict) and not isinstance(verdict, type) else verdict

    return judge


def shout(one: Record) -> Record:
    return one._replace(value=(one.value or b"").upper())


def test_what_all_keep_is_the_same_object() -> None:
    records = [record(b"a"), record(b"b")]
    outcomes = chain(lambda one: one, lambda one: one).filter(records)
    assert all(after is before for after, before in zip(outcomes, records, strict=True))
    assert chain().filter(records) == records and chain(shout).filter([]) == []
    assert chain(shout, shout).names == ("f0", "f1")


def test_each_filter_sees_what_the_one_before_has_left() -> None:
    seen: list[bytes | None] = []

    def see(one: Record) -> Record:
        seen.append(one.value)
        return one

    outcomes = chain(verdicts(b=DROP), shout, see).filter([record(b"a"), record(b"b"), record(b"c")])
    assert outcomes == [record(b"A"), DROP, record(b"C")]
    assert seen == [b"A", b"C"]


def test_a_record_without_a_time_of_its_own_keeps_the_one_before() -> None:
    (outcome,) = chain(lambda one: Record(b"new")).filter([record(b"a", 77)])
    assert outcome == Record(b"new", timestamp=77)


def test_a_dead_letter_has_the_record_as_the_filter_got_it_and_the_name_of_the_filter() -> None:
    letters = verdicts(A=DeadLetter("bad"), B=DeadLetter("bad", "quarantine", Record(b"**")))
    assert chain(shout, letters).filter([record(b"a"), record(b"b")]) == [
        DeadLetter("bad", None, record(b"A"), "f1"),
        DeadLetter("bad", "quarantine", Record(b"**", timestamp=5), "f1"),
    ]


def test_routed_records_go_on_in_the_chain_and_the_last_route_counts() -> None:
    first = verdicts(
        a=lambda one: Routed(one, "first"),
        b=lambda one: Routed(one, "first"),
        c=lambda one: Routed(one, "first"),
    )
    second = verdicts(B=lambda one: Routed(one, "second"), C=DROP)
    outcomes = chain(first, shout, second).filter([record(b"a"), record(b"b"), record(b"c"), record(b"d")])
    assert outcomes == [Routed(record(b"A"), "first"), Routed(record(b"B"), "second"), DROP, record(b"D")]


def fail(one: Record) -> Any:
    raise LookupError("no table")


def stop(one: Record) -> Any:
    raise StopIteration


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        (fail, "LookupError: no table"),
        (stop, "StopIteration"),
        (None, "its verdict is None, none of Record, DROP, DeadLetter, NotReady and Routed"),
        (Record("text"), "the record that it returned has a value that is a str, neither bytes nor None"),  # type: ignore[arg-type]
        (Record(b"", timestamp=-2), "the record that it returned has a timestamp that is an int"),
        (DeadLetter(3), "its verdict is a DeadLetter, whose reason or topic is no text"),  # type: ignore[arg-type]
        (NotReady(3), "its verdict is a NotReady, which waits for an int, not a text"),  # type: ignore[arg-type]
        (Routed(Record(b""), ""), "it routes to a topic whose name is empty"),
        (
            Routed(Record(b""), "a\n"),
            "it routes to a topic whose name is empty, or no text that can be printed",
        ),
        (Routed(b"", "t"), "its verdict is a Routed without a record"),  # type: ignore[arg-type]
        (Routed(Record(3), "t"), "the record that it returned has a value that is an int"),  # type: ignore[arg-type]
    ],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_a_filter_that_fails_has_failed_on_that_record_alone(verdict: Any, reason: str) -> None:
    outcomes = chain(verdicts(b=verdict), shout).filter([record(b"a"), record(b"b"), record(b"c")])
    assert [outcomes[0], outcomes[2]] == [record(b"A"), record(b"C")]
    assert isinstance(outcomes[1], FilterFailure)
    assert outcomes[1].filter == "f0" and outcomes[1].reason.startswith(reason)


def test_the_list_ends_where_one_is_not_ready_and_records_are_forgotten() -> None:
    forgotten: list[str] = []
    waits = chain(
        verdicts(a=DROP),
        verdicts(c=NotReady("the schemas")),
        forget=lambda: forgotten.append("all"),
    )
    records = [record(b"a"), record(b"b"), record(b"c"), record(b"d")]
    assert waits.filter(records) == [DROP, record(b"b"), NotReady("the schemas")]
    assert forgotten == ["all", "all"]
    assert waits.filter(records[:2]) == [DROP, record(b"b")] and len(forgotten) == 2


def test_a_route_of_a_record_behind_one_that_is_not_ready_is_forgotten() -> None:
    routes = chain(lambda one: Routed(one, "t"), verdicts(b=NotReady("it")))
    assert routes.filter([record(b"a"), record(b"b"), record(b"c")]) == [
        Routed(record(b"a"), "t"),
        NotReady("it"),
    ]


def test_one_that_fails_to_forget_judges_on() -> None:
    def forget() -> None:
        raise LookupError

    keeps = chain(lambda one: one, forget=forget)
    keeps.forget()
    assert keeps.filter([record(b"a")]) == [record(b"a")]


def test_what_ends_an_instance_is_called_once() -> None:
    ended: list[int] = []
    closed = OutsideChain((), [lambda: ended.append(1)])
    closed.close()
    closed.close()
    assert ended == [1]
