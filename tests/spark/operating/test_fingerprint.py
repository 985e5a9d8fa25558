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
    Sql,
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
        replace(BASE, sinks={"other": Sink("totals", TopicTarget("else")), "two": Sink("totals", TopicTarget("l"))}),
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


def places(*steps: Step, sinks: tuple[str, ...] = (), **sources: Source) -> list[str]:
    """The sources that are read, once for each place."""
    given = {**BASE.sources, **sources}
    targets = {name: Sink(name, TopicTarget(name)) for name in sinks or (steps[-1].name,)}
    found = fingerprint_of(replace(BASE, steps=steps, sinks=targets, sources=given))
    return [found.sources[place]["source"] for place in found.places]


def sql(query: str, *frames: str, name: str = "queried") -> Step:
    return Step(name, Sql(query, frames or ("orders", "payments")))


def test_a_source_counts_in_each_place_where_it_is_read() -> None:
    large = BASE.steps[0]
    assert places(*BASE.steps) == ["orders", "payments", "customers"]
    assert places(large, sinks=("large", "orders", "payments")) == ["orders", "orders", "payments"]
    assert places(large, Step("both", Union(("payments", "large", "orders")))) == [
        "payments",
        "orders",
        "orders",
    ]
    split = Step("split", Branch({"big": "amount > 10"}, "rest"), from_="orders")
    assert places(split, sinks=("big", "rest")) == ["orders", "orders"]
    assert places(split, Step("both", Union(("big", "rest"))), sinks=("both", "big")) == ["orders"] * 3


def test_a_query_counts_in_each_place_where_its_text_names_a_frame() -> None:
    union = "SELECT * FROM {} UNION ALL SELECT * FROM {} UNION ALL SELECT * FROM {}"
    for frames in (["orders", "orders", "payments"], ["orders", "payments", "payments"]):
        assert places(sql(union.format(*frames))) == frames
    own = "WITH x AS (SELECT * FROM {}) SELECT * FROM {} UNION ALL SELECT * FROM x UNION ALL SELECT * FROM x"
    assert places(sql(own.format("orders", "payments"))) == ["orders", "payments"]
    assert places(sql(own.format("payments", "orders"))) == ["payments", "orders"]
    # Only what is a view: another table may have the name of a frame.
    assert places(sql("SELECT * FROM orders JOIN other.payments USING (id)")) == ["orders"]
    assert places(sql("SELECT * FROM orders JOIN payments USING (id)", "orders")) == ["orders"]
    # What cannot be read counts each frame once.
    assert places(sql("SELECT FROM WHERE", "payments", "orders")) == ["payments", "orders"]
    twice = sql("SELECT * FROM first f JOIN first g USING (id)", "first")
    assert places(sql(union.format("orders", "payments", "orders"), name="first"), twice) == [
        *("orders", "payments", "orders"),
        *("orders", "payments", "orders"),
    ]


def test_what_spark_reads_in_one_place_or_with_each_batch() -> None:
    files = Source(FileOrigin("in/", schema="id STRING"))
    both = Step("both", Union(("orders", "payments", "orders")))
    assert places(both, orders=files) == ["orders", "payments"]
    for table in (
        Source(TopicOrigin(("customers",)), table=Table(("id",), is_global=True)),
        Source(FileOrigin("customers/"), table=Table(("id",))),
    ):
        assert places(*BASE.steps, customers=table) == ["orders", "payments"]


def test_other_places_are_a_change() -> None:
    def of(query: str) -> Pipeline:
        return replace(BASE, steps=[sql(query)], sinks={"out": Sink("queried", TopicTarget("t"))})

    union = "SELECT * FROM orders UNION ALL SELECT * FROM {} UNION ALL SELECT * FROM payments"
    before, now = of(union.format("orders")), of(union.format("payments"))
    said = 'were read as ["orders", "orders", "payments"] and are read as ["orders", "payments", "payments"]'
    assert changes(now, before) == [Change("sources", said)]
    assert changes(of(union.format("orders").replace("*", "id")), before) == []
    old = fingerprint_of(before)._replace(places=())
    assert changes_between(old, fingerprint_of(now)) == [], "one that was kept without places tells nothing"
    two = {**BASE.sinks, "large": Sink("large", TopicTarget("l"))}
    said = 'were read as ["orders", "payments", "customers"] and are read as'
    (change,) = changes(replace(BASE, sinks=two))
    assert change == Change("sources", f'{said} ["orders", "payments", "customers", "orders"]')


def test_so_many_places_that_spark_would_not_plan_them_are_unknown() -> None:
    steps = [Step("s0", Union(("orders", "orders")))]
    steps += [Step(f"s{number}", Union((f"s{number - 1}",) * 2)) for number in range(1, 60)]
    assert len(places(*steps[:10])) == 1024
    assert places(*steps) == []


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
    assert found.places == [0, 1, 2]
    path.write_text(found.as_json().replace('"places"', '"other"'))
    assert read_fingerprint(path) == found._replace(places=[])
    for text in (
        "",
        "{}",
        "[]",
        '{"version": 2, "store": "x", "sources": [], "steps": []}',
        '{"version": 1}',
        '{"version": 1, "store": "x", "sources": [], "steps": [], "places": [0]}',
        '{"version": 1, "store": "x", "sources": [{}], "steps": [], "places": [-1]}',
        '{"version": 1, "store": "x", "sources": [], "steps": [], "places": null}',
    ):
        path.write_text(text)
        assert read_fingerprint(path) is None
    assert read_fingerprint(tmp_path / "none") is None
    assert changes_between(Fingerprint("a", [], []), Fingerprint("a", [], [])) == []
