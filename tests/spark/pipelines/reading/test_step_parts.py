"""The operations of steps as they are written, and what each has to have."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from leafcuttr_spark.pipelines import operations as op
from leafcuttr_spark.pipelines.reading.step_parts import OPERATIONS
from spark.pipelines.written import HEAD, SINK, faults_of, read

SOURCES = "sources: {orders: {topic: orders}, payments: {topic: payments}, customers: {topic: customers, table: key}}\n"


def file_of(step: str) -> str:
    return f"{HEAD}{SOURCES}steps:\n  - from: orders\n    {step}\n{SINK}"


def operation_of(step: str) -> op.StepOperation:
    return read(file_of(step)).steps[0].operation


@pytest.mark.parametrize(
    ("step", "operation"),
    [
        ("filter: amount > 10", op.Filter("amount > 10")),
        ("map: {total: amount * 2, n: 1}", op.Map({"total": "amount * 2", "n": "1"})),
        ('select: [id, "upper(name) AS name"]', op.Select(("id", "upper(name) AS name"))),
        ("select: id", op.Select(("id",))),
        ('cast: {amount: "decimal(10,2)"}', op.Cast({"amount": "decimal(10,2)"})),
        ("drop: [a, b]", op.Drop(("a", "b"))),
        ("rename: {old: new}", op.Rename({"old": "new"})),
        ("flat-map: items", op.FlatMap("items")),
        ("flat-map: {explode: items, as: i, keep-empty: true}", op.FlatMap("items", "i", keep_empty=True)),
        (
            "branch: {big: a > 1, small: a <= 1, default: rest}",
            op.Branch({"big": "a > 1", "small": "a <= 1"}, "rest"),
        ),
        ("branch: {big: a > 1}", op.Branch({"big": "a > 1"})),
        ("python: a.b:c", op.PythonFunction("a.b:c")),
        (
            "python: {function: a:b, arguments: {n: 1}, per: record, columns: {id: string}}",
            op.PythonFunction("a:b", {"n": 1}, "id string", "record"),
        ),
        ("transform: drop-tombstones", op.Transform("drop-tombstones", {})),
        (
            "transform: {type: hash, fields: email}",
            op.Transform("hash", {"algorithm": "sha256", "fields": ("email",)}),
        ),
        (
            "aggregate: {by: region, window: {tumbling: 1m}, grace: 5s, emit: final, total: sum(a), n: count(*)}",
            op.Aggregate(
                ("region",), {"total": "sum(a)", "n": "count(*)"}, op.TumblingWindow(60_000), 5000, "final"
            ),
        ),
        ("aggregate: {by: [], n: count(*)}", op.Aggregate((), {"n": "count(*)"})),
        ("count: [a, b]", op.Count(("a", "b"))),
        (
            "count: {by: a, as: n, window: {hopping: {size: 5m, advance: 1m}}}",
            op.Count(("a",), "n", op.HoppingWindow(300_000, 60_000)),
        ),
        ("count: {by: a, window: {sliding: 30s}}", op.Count(("a",), window=op.SlidingWindow(30_000))),
        (
            "count: {by: a, window: {sliding: {difference: 30s}}}",
            op.Count(("a",), window=op.SlidingWindow(30_000)),
        ),
        (
            "count: {by: a, window: {session: {gap: 30m}}}",
            op.Count(("a",), window=op.SessionWindow(1_800_000)),
        ),
        (
            "count: {by: a, window: {tumbling: {size: 1h}}}",
            op.Count(("a",), window=op.TumblingWindow(3_600_000)),
        ),
        ("reduce: {by: a, with: max_by(amount)}", op.Reduce(("a",), "max_by(amount)")),
        ("deduplicate: id", op.Deduplicate(("id",))),
        ("deduplicate: {by: [id], within: 1h}", op.Deduplicate(("id",), 3_600_000)),
        ("join: {with: payments, on: id, within: 10m}", op.Join("payments", {"id": "id"}, 600_000)),
        (
            "join: {with: payments, on: {id: order}, within: 0s, kind: full, grace: 1s}",
            op.Join("payments", {"id": "order"}, 0, "full", 1000),
        ),
        (
            "lookup: {table: customers, on: {customer: key}, kind: left, as-of: at}",
            op.Lookup("customers", {"customer": "key"}, "left", "at"),
        ),
        (
            "process: {class: a:B, by: id, output: {n: int}, mode: final, timers: event, arguments: {x: 1}}",
            op.Process("a:B", ("id",), "n int", "final", "event", {"x": 1}),
        ),
    ],
)
def test_an_operation(step: str, operation: op.StepOperation) -> None:
    assert operation_of(step) == operation


def test_a_union_and_a_query_name_their_frames_themselves() -> None:
    text = HEAD + SOURCES + "steps: [{union: [orders, payments]}, {sql: SELECT * FROM union_1}]\n" + SINK
    first, second = read(text).steps
    assert (first.from_, first.inputs, first.operation) == (
        None,
        ("orders", "payments"),
        op.Union(("orders", "payments")),
    )
    assert (second.from_, second.inputs) == (None, ("union_1",))


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("select: [a: b]", 'select: write "b AS a", in quotes; allowed: a list of columns and expressions'),
        ("select: []", "select: the list is empty; allowed: a list of columns"),
        ("map: {}", "map: there is nothing in it; allowed: names with expressions"),
        ("map: {a: }", "map.a: there is no value; allowed: an expression of Spark SQL"),
        ("branch: {default: a}", "branch: there is no branch; allowed: names of frames with conditions"),
        ("branch: {a: x, default: b > 1}", "branch: default: 'b > 1' is no name of a frame"),
        ("python: clean", "python: 'clean' is not allowed; allowed: package.module:name"),
        (
            "python: {function: a:b, per: record}",
            "python: per: record needs columns: those of the result with",
        ),
        (
            "aggregate: {by: a}",
            "aggregate: there is nothing to compute: names with expressions are missing, as total",
        ),
        ("aggregate: {total: sum(a)}", "aggregate: the key by is missing: a column, or a list of columns"),
        (
            "aggregate: {by: a, n: count(*), emit: final}",
            "aggregate.emit: is for windows: the key window is missing",
        ),
        (
            "aggregate: {by: a, n: count(*), grace: 1s}",
            "aggregate.grace: is for windows: the key window is missing",
        ),
        (
            "aggregate: {by: a, windw: {tumbling: 1s}}",
            "aggregate: there is no key windw: did you mean window?; allowed: by, window, gr",
        ),
        (
            "count: {by: a, window: {tumbling: 1s, session: 1s}}",
            "count.window: allowed: one of tumbling, hopping, slid",
        ),
        (
            "count: {by: a, window: {hopping: {size: 1s, advance: 2s}}}",
            "count.window.hopping: advance is longer than",
        ),
        (
            "count: {by: a, window: {hopping: 5m}}",
            "count.window.hopping: '5m' is not allowed; allowed: a mapping with",
        ),
        (
            "count: {by: a, window: {slide: 5m}}",
            "count.window: there is no key slide: did you mean sliding?; allowed:",
        ),
        (
            "reduce: {by: a, with: max(b)}",
            "reduce.with: 'max(b)' is not allowed; allowed: max_by(EXPRESSION), min_by(",
        ),
        (
            "join: {with: payments, on: id}",
            "join: the key within is missing: rows of streams are joined within a time",
        ),
        (
            "join: {with: payments, within: 1s}",
            "join: the key on is missing: columns of both sides, as [id], or those",
        ),
        (
            "lookup: {table: t, on: id, kind: full}",
            "lookup.kind: 'full' is not allowed; allowed: inner or left",
        ),
        ("process: {class: a:B, by: id}", "process: the key output is missing: columns with their types, as"),
        (
            "transform: {type: hsh, fields: a}",
            "transform: there is no transform hsh: did you mean hash?; allowed: ext",
        ),
        ("transform: {fields: a}", "transform: the key type is missing: extract, insert, replace, mask"),
        ("transform: {type: drop-tombstones, x: 1}", "transform: there is no key x; allowed: type"),
        (
            "transform: {type: insert, static.field: a}",
            "transform: static.field and static.value belong together",
        ),
        (
            "transform: {type: insert}",
            "transform: one of static.field, topic.field, partition.field, offset.field",
        ),
        ("transform: {type: replace}", "transform: one of include, exclude, renames is needed"),
        (
            "transform: {type: timestamp, field: a, target.type: string}",
            "transform: target.type string needs format",
        ),
        (
            "transform: {type: route, regex: a, topic.format: b}",
            "transform: either regex with replacement, or topic.",
        ),
        ("transform: {type: route, regex: a}", "transform: regex and replacement belong together"),
        (
            "transform: {type: header, fields: [a, b], headers: c}",
            "transform: fields and headers have to be of the s",
        ),
        ("transform: {type: header}", "transform: one of fields, insert, drop is needed"),
        ("transform: {type: mask}", "transform: the key fields is missing: a column, or a list of columns"),
    ],
)
def test_what_is_wrong_with_an_operation(step: str, said: str) -> None:
    found = faults_of(file_of(step))
    assert len(found) == 1, found
    assert found[0].partition("): ")[2].startswith(said)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_the_example_of_each_operation_is_read(operation: object, tmp_path: Path) -> None:
    example = operation.example
    names = "orders payments customers large rest"
    sources = "".join(f"  {name}: {{topic: {name}}}\n" for name in names.split())
    text = f"{HEAD}sources:\n{sources}steps:\n  {example}\n{SINK}"
    if "union" not in example and "sql" not in example:
        text = text.replace(f"  {example}\n", f"  {example}\n    from: orders\n")
    assert yaml.safe_load(text)
    assert faults_of(text) == []
