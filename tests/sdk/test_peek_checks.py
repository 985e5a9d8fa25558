"""The checks of validators that get batches pass what keeps its contract, and name what is wrong with another."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from leafcuttr_sdk import NotReady, Peek, PeekedBatch, ProduceValidatorSpec, Record, TopicContext
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.peek import distinct, own_peek, why_no_peek, words_of
from leafcuttr_sdk.testing import ContractError, check_produce_validator, peeked_batch, sample_records
from leafcuttr_sdk.testing.context import topic_context
from leafcuttr_sdk.testing.record_checks import validator_report

ID = "__value_schema_id"
SLEEP_IS_TOLD = sys.version_info >= (3, 13)


class Registered:
    """The id of a schema stands in front of the value, or in a header."""

    def __init__(self, context: TopicContext) -> None:
        self.seen: list[PeekedBatch] = []

    def why_not(self, value: bytes | None, ids: tuple[bytes | None, ...]) -> str | None:
        if value is None or (ids and ids[-1] is not None and len(ids[-1]) == 17):
            return None
        return None if len(value) == 5 and value[0] == 0 else "there is no id of a schema"

    def validate_batch(self, batch: PeekedBatch) -> Mapping[int, str]:
        self.seen.append(batch)
        pairs = zip(batch.values, batch.headers[ID], strict=True)
        return {n: why for n, pair in enumerate(pairs) if (why := self.why_not(*pair))}


PEEK = Peek(value_bytes=5, headers=(ID,))


def spec(validate: Callable[..., Any] | None, peek: Any = PEEK) -> ProduceValidatorSpec:
    class Validator:
        def __init__(self, context: TopicContext) -> None:
            if validate is not None:
                self.validate_batch = validate

    return ProduceValidatorSpec("v", "is checked", Validator, peek)


def test_a_good_one_passes_and_has_seen_what_clients_send() -> None:
    made: list[Registered] = []

    def make(context: TopicContext) -> Registered:
        made.append(Registered(context))
        return made[-1]

    checked = ProduceValidatorSpec("registered", "values have schemas", make, PEEK)
    check_produce_validator(checked)
    seen = made[0].seen
    values = {value for batch in seen for value in batch.values}
    assert {None, b"", b"\0", b"\0" * 4, b"\0\0\0\0\1", b"\0\xff\xff\xff\xff", b"\xff" * 5} <= values
    ids = {found for batch in seen for found in batch.headers[ID]}
    assert {(), (None,), (b"",), (b"\0\0\0\0\1", None)} <= ids
    assert all(len(value or b"") <= 5 for value in values)
    assert {batch.record_count for batch in seen} > {1}
    assert max(batch.record_count for batch in seen) > 40
    report = validator_report(checked, topic_context())
    promises = {check.name: check.promise for check in report.checks}
    assert promises["called"].endswith(f"needs the first 5 bytes of values and the header {ID}")
    assert "batches" in promises


def refuses(answer: Any) -> Callable[[PeekedBatch], Any]:
    return lambda batch: answer


def index_of_the_first(batch: PeekedBatch) -> dict[int, str]:
    return {0: "bad"} if batch.values[0] is None else {}


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("checked", "check", "says"),
    [
        (spec(refuses(None)), "verdicts", "returned None: return a mapping of indexes"),
        (spec(refuses(["bad"])), "verdicts", "returned a list: return a mapping"),
        (spec(refuses({1: "bad"})), "verdicts", "1, which is no index in a batch of 1"),
        (spec(refuses({-1: "bad"})), "verdicts", "-1, which is no index"),
        (spec(refuses({True: "bad"})), "verdicts", "True, which is no index"),
        (spec(refuses({"0": "bad"})), "verdicts", "'0', which is no index"),
        (spec(refuses({0: None})), "verdicts", "returned None as a reason"),
        (spec(refuses({0: "one\ntwo"})), "verdicts", "the reason has several lines"),
        (spec(lambda batch: {0: "no"} if batch.values[0][0] else {}), "exceptions", "validate_batch raised"),
        (
            spec(index_of_the_first),
            "batches",
            "it accepts a tombstone (a key without a value) (and 1 other record) in a batch",
        ),
        (
            spec(lambda batch: dict.fromkeys(range(batch.record_count - 1), "no")),
            "batches",
            "it refuses a plain record (and",
        ),
        (spec(lambda batch: 1 / (batch.record_count < 9) and {}), "batches", "ZeroDivisionError"),
        (spec(lambda batch: {} if batch.record_count < 9 else None), "batches", "returned None"),
        (
            spec(lambda batch: time.sleep(0.001) or {}),
            "does not wait",
            "it sleeps" if SLEEP_IS_TOLD else "it waits for",
        ),
        (spec(lambda *, other: {}), "called", "validate_batch cannot be called with one batch"),
        (spec(None), "called", "Validator has no method validate_batch"),
        (spec(refuses({}), Peek()), "peek", "it asks for nothing"),
        (spec(refuses({}), Peek(value_bytes=-1)), "peek", "value_bytes has to be a number of bytes"),
    ],
)
def test_a_broken_one_is_told_what_is_wrong(checked: ProduceValidatorSpec, check: str, says: str) -> None:
    with pytest.raises(ContractError) as caught:
        check_produce_validator(checked)
    found = {one.name: one.problems for one in caught.value.report.checks}
    assert any(says in problem for problem in found[check]), str(caught.value)


def test_one_that_decides_by_what_it_saw_is_not_compared() -> None:
    class Alternate:
        def __init__(self, context: TopicContext) -> None:
            self.odd = False

        def validate_batch(self, batch: PeekedBatch) -> Mapping[int, str]:
            self.odd = not self.odd
            return {0: "odd"} if self.odd else {}

    checked = ProduceValidatorSpec("alternate", "every other batch", Alternate, Peek(value_bytes=0))
    with pytest.raises(ContractError, match="batch"):
        check_produce_validator(checked)
    check_produce_validator(checked, repeatable=False)


def test_a_record_of_the_author() -> None:
    def never(batch: PeekedBatch) -> Mapping[int, str]:
        assert b"mine" not in batch.values
        return {}

    check_produce_validator(spec(never))
    with pytest.raises(ContractError, match="record 0 of the author's"):
        check_produce_validator(spec(never), records=[Record(b"mine")])


def test_what_a_broker_shows() -> None:
    records = [Record(b"value", b"key", (("a", b"1"), ("b", b""), ("a", None))), Record(None)]
    assert peeked_batch(records, Peek(2, 9, ("a", "c"))) == PeekedBatch(
        2, [b"ke", None], [b"value", None], {"a": [(b"1", None), ()], "c": [(), ()]}
    )
    assert peeked_batch(records, Peek(key_bytes=0)) == PeekedBatch(2, [b"", None], [], {})
    assert len(sample_records()) < 60


@pytest.mark.parametrize(
    ("peek", "says"),
    [
        ("value", "it has to be a Peek"),
        ((None, 5, ()), "it has to be a Peek"),
        (Peek(), "it asks for nothing"),
        (Peek(key_bytes=-1), "key_bytes has to be a number of bytes, 0 or more, or None"),
        (Peek(value_bytes=True), "value_bytes has"),
        (Peek(value_bytes=5.0), "value_bytes has"),  # type: ignore[arg-type]
        (Peek(headers=["a"]), "headers has to be a tuple of names"),  # type: ignore[arg-type]
        (Peek(headers=(b"a",)), "headers has to be a tuple of names"),  # type: ignore[arg-type]
        (Peek(headers="a"), "headers has to be a tuple of names"),  # type: ignore[arg-type]
        (Peek(headers=("a", "a")), "headers names a twice"),
        (Peek(headers=("\ud800",)), "headers has a name that is no Unicode"),
        (Peek(0), None),
        (Peek(headers=("",)), None),
    ],
)
def test_what_can_be_asked_for(peek: Any, says: str | None) -> None:
    found = why_no_peek(peek)
    assert found == says or (says and found and says in found)


def test_the_words() -> None:
    assert words_of(Peek(value_bytes=5)) == "the first 5 bytes of values"
    assert words_of(Peek(0, 1, ("a", "b"))) == (
        "whether there are keys, the first byte of values, the header a and the header b"
    )


def test_one_that_gets_ready_meanwhile_keeps_its_contract() -> None:
    def validate(batch: PeekedBatch) -> Mapping[int, str | NotReady]:
        return {} if batch.record_count > 1 else {0: NotReady("the schemas")}

    check_produce_validator(spec(validate))


def test_one_that_waits_for_no_text_does_not() -> None:
    with pytest.raises(ContractError, match="a NotReady that waits for an int"):
        check_produce_validator(spec(lambda _: {0: NotReady(5)}))  # type: ignore[arg-type]


class Narrow:
    """Of a topic that needs less than its spec says."""

    def __init__(self, context: TopicContext) -> None:
        self.peek: Any = Peek(value_bytes=1)

    def validate_batch(self, batch: PeekedBatch) -> Mapping[int, str]:
        return {
            index: f"has {value!r}"
            for index, value in enumerate(batch.values)
            if value is not None and value[1:]
        }


def test_one_that_needs_less_for_its_topic_is_shown_that() -> None:
    check_produce_validator(ProduceValidatorSpec("narrow", "first bytes", Narrow, Peek(value_bytes=5)))
    assert own_peek(object(), Peek(key_bytes=2)) == Peek(key_bytes=2)


def test_what_it_needs_for_its_topic_has_to_be_a_peek() -> None:
    made = Narrow(topic_context())
    made.peek = 5
    with pytest.raises(PluginError, match="what it makes has 5 as its peek: it has to be a Peek"):
        own_peek(made, Peek(value_bytes=5))


@pytest.mark.parametrize(
    "items", [[], [b"a"], [b"a", b"a"], [None, None], [(), (b"a",), ()], [b"a", b"b", b"a"]]
)
def test_each_distinct_item_once(items: list[Any]) -> None:
    found = distinct(items)
    assert len(found) == len(set(items)) and set(found) == set(items)
