"""Which edits of a pipeline a checkpoint allows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leafcuttr_spark.operating.fingerprint import (
    Change,
    Fingerprint,
    _frames_in_order,
    changes_between,
    fingerprint_of,
    read_fingerprint,
)
from leafcuttr_spark.pipelines.model import (
    FileOrigin,
    Pipeline,
    Sink,
    Source,
    Start,
    Step,
    Table,
    TopicOrigin,
    TopicTarget,
    Trigger,
)
from leafcuttr_spark.pipelines.operations import (
    Aggregate,
    Branch,
    Count,
    Filter,
    Join,
    Lookup,
    Process,
    SessionWindow,
    TumblingWindow,
    Union,
)

ORDERS = Source(TopicOrigin(("orders",)), watermark_ms=1000)
PAYMENTS = Source(TopicOrigin(("payments",)), watermark_ms=1000)
CUSTOMERS = Source(TopicOrigin(("customers",)), table=Table(("id",)))
TOTALS = Aggregate(("region",), {"total": "sum(amount)"}, TumblingWindow(60_000))
BASE = Pipeline(
    "p",
    {"orders": ORDERS, "payments": PAYMENTS, "customers": CUSTOMERS, "unused": PAYMENTS},
    [
        Step("large", Filter("amount > 10"), from_="orders"),
        Step("paid", Join("payments", {"id": "id"}, 1000), from_="large"),
        Step("named", Lookup("customers", {"customer": "id"}), from_="paid"),
        Step("totals", TOTALS, from_="named"),
    ],
    {"out": Sink("totals", TopicTarget("totals"))},
)


def changes(now: Pipeline, before: Pipeline = BASE) -> list[Change]:
    return changes_between(fingerprint_of(before), fingerprint_of(now))


def step(number: int, **given: Any) -> Pipeline:
    """The base with another operation of a step."""
    steps = list(BASE.steps)
    steps[number] = replace(steps[number], operation=replace(steps[number].operation, **given))
    return replace(BASE, steps=steps)


def source(name: str, new: Source, base: Pipeline = BASE) -> Pipeline:
    return replace(base, sources={**base.sources, name: new})


def test_sources_and_states_in_the_order_of_the_query() -> None:
    found = fingerprint_of(BASE)
    assert found.store == "rocksdb"
    assert [one["source"] for one in found.sources] == ["orders", "payments", "customers"]
    assert [(one["step"], one["operation"]) for one in found.steps] == [
        ("paid", "join"),
        ("named", "lookup"),
        ("totals", "aggregate"),
    ]
    assert found.steps[2]["window"] == {"type": "TumblingWindow", "size_ms": 60_000}


@pytest.mark.parametrize(
    "now",
    [
        BASE,
        replace(BASE, trigger=Trigger(0), records_per_batch=7, name="q", checkpoint="/else"),
        step(0, condition="amount > 11"),
        replace(BASE, steps=[replace(one, line=9) for one in BASE.steps]),
        replace(BASE, sinks={"other": Sink("totals", TopicTarget("else")), "two": Sink("large", TopicTarget("l"))}),
        source("orders", Source(TopicOrigin(("more", "orders"), start=Start("latest")), watermark_ms=5)),
    ],
)  # fmt: skip
def test_what_may_change(now: Pipeline) -> None:
    assert changes(now) == []


def test_a_step_without_state_may_come_between() -> None:
    steps = [
        *BASE.steps[:3],
        Step("big", Filter("amount > 20"), from_="named"),
        replace(BASE.steps[3], from_="big"),
    ]
    assert changes(replace(BASE, steps=steps)) == []


def test_names_of_steps_without_state_and_of_sources_may_change() -> None:
    steps = [
        Step("big", BASE.steps[0].operation, from_="bought"),
        replace(BASE.steps[1], from_="big"),
        *BASE.steps[2:],
    ]
    sources = {"bought": ORDERS, "payments": PAYMENTS, "customers": CUSTOMERS}
    assert changes(replace(BASE, steps=steps, sources=sources)) == []


def test_the_name_of_a_step_with_state_may_not() -> None:
    steps = [*BASE.steps[:3], replace(BASE.steps[3], name="sums")]
    now = replace(BASE, steps=steps, sinks={"out": Sink("sums", TopicTarget("totals"))})
    assert changes(now) == [Change("step sums", "was totals (aggregate) and is aggregate")]


def test_what_two_sinks_need_is_there_once() -> None:
    sinks = {name: Sink("totals", TopicTarget(name)) for name in "ab"}
    assert fingerprint_of(replace(BASE, sinks=sinks)) == fingerprint_of(BASE)
    one_by_one = list(_frames_in_order(replace(BASE, sinks=sinks), {step.name: step for step in BASE.steps}))
    assert len(one_by_one) == len(set(one_by_one))


@pytest.mark.parametrize(
    ("now", "part", "what"),
    [
        (replace(BASE, state_store="memory"), "state", "the store was rocksdb and is memory"),
        (step(3, by=("country",)), "step totals", 'by was ["region"] and is ["country"]'),
        (
            step(3, columns={"total": "sum(price)"}),
            "step totals",
            'columns was {"total": "sum(amount)"} and is {"total": "sum(price)"}',
        ),
        (
            step(3, window=SessionWindow(5)),
            "step totals",
            'window was {"type": "TumblingWindow", "size_ms": 60000} and is {"type": "SessionWindow", "gap_ms": 5}',
        ),
        (step(1, within_ms=2000), "step paid", "within_ms was 1000 and is 2000"),
        (step(3, emit="final"), "step totals", 'emit was "update" and is "final"'),
        (step(1, kind="left"), "step paid", 'kind was "inner" and is "left"'),
        (
            source("orders", Source(TopicOrigin(("other",)))),
            "source orders",
            'topics was ["orders"] and is ["other"]',
        ),
        (
            source("orders", Source(TopicOrigin(pattern="or.*"))),
            "source orders",
            'topics was ["orders"] and is null',
        ),
        (
            source("orders", Source(FileOrigin("in/"))),
            "source orders",
            "was orders (topics by leafcuttr) and is files of parquet",
        ),
        (
            source("customers", Source(TopicOrigin(("customers",)), table=Table(("name",)))),
            "source customers",
            'table was ["id"] and is ["name"]',
        ),
    ],
)
def test_what_may_not(now: Pipeline, part: str, what: str) -> None:
    assert changes(now)[0] == Change(part, what)


def test_another_operation_in_the_place() -> None:
    steps = [*BASE.steps[:3], Step("totals", Count(("region",)), from_="named")]
    assert changes(replace(BASE, steps=steps)) == [
        Change("step totals", "was totals (aggregate) and is count")
    ]


def test_a_state_more_and_a_state_less() -> None:
    steps = [*BASE.steps, Step("counted", Count(("region",)), from_="totals")]
    more = replace(BASE, steps=steps, sinks={"out": Sink("counted", TopicTarget("t"))})
    assert changes(more) == [Change("step counted", "is new")]
    assert changes(BASE, more) == [Change("step counted", "is gone")]


def test_a_source_more_and_another_order() -> None:
    def union(*frames: str) -> Pipeline:
        steps = [Step("both", Union(frames))]
        return replace(BASE, steps=steps, sinks={"out": Sink("both", TopicTarget("t"))})

    assert changes(union("orders", "payments"), union("orders")) == [Change("source payments", "is new")]
    assert changes(union("payments", "orders"), union("orders", "payments")) == [
        Change("source payments", 'topics was ["orders"] and is ["payments"]'),
        Change("source orders", 'topics was ["payments"] and is ["orders"]'),
    ]


def test_the_order_of_sinks_is_that_of_sources() -> None:
    one, two = Sink("orders", TopicTarget("a")), Sink("payments", TopicTarget("b"))
    before = replace(BASE, sinks={"one": one, "two": two})
    assert changes(replace(BASE, sinks={"two": two, "one": one}), before)


def test_branches_are_one_step() -> None:
    steps = [
        Step("split", Branch({"big": "amount > 10"}, "rest"), from_="orders"),
        Step("counted", Count(("id",)), from_="big"),
        Step("state", Process("a:B", ("id",), "n INT"), from_="rest"),
    ]
    pipeline = replace(
        BASE,
        steps=steps,
        sinks={"a": Sink("counted", TopicTarget("a")), "b": Sink("state", TopicTarget("b"))},
    )
    found = fingerprint_of(pipeline)
    assert [one["source"] for one in found.sources] == ["orders"]
    assert [one["operation"] for one in found.steps] == ["count", "process"]


def test_it_is_kept_as_text(tmp_path: Path) -> None:
    path = tmp_path / "pipeline.json"
    found = fingerprint_of(BASE)
    path.write_text(found.as_json())
    assert read_fingerprint(path) == found
    for text in (
        "",
        "{}",
        "[]",
        '{"version": 2, "store": "x", "sources": [], "steps": []}',
        '{"version": 1}',
    ):
        path.write_text(text)
        assert read_fingerprint(path) is None
    assert read_fingerprint(tmp_path / "none") is None
    assert changes_between(Fingerprint("a", [], []), Fingerprint("a", [], [])) == []
