"""The columns of frames through all steps, and what is wrong with what names them."""

from __future__ import annotations

import pytest

from leafcuttr_spark.pipelines.checking.columns import RULES, columns_of
from leafcuttr_spark.pipelines.model import Pipeline, Sink, Source, Step, TopicOrigin, TopicTarget
from leafcuttr_spark.pipelines.operations import Apply, StepOperation
from spark.pipelines.written import HEAD, SINK, SOURCE, checked, read, step_faults, with_steps

ALL = (
    "key string, id string, customer string, amount double, count int,"
    " items array<struct<name:string,price:decimal(10,2)>>, address struct<street:string,city:string>,"
    " timestamp timestamp"
)


def last(*steps: str, source: str = SOURCE) -> str:
    """The columns of the last step."""
    pipeline = read(with_steps(*steps, source=source))
    return columns_of(pipeline)[pipeline.steps[-1].frames[0]].text()


def test_the_columns_of_a_source() -> None:
    assert columns_of(read(HEAD + SOURCE + SINK))["orders"].text() == ALL


@pytest.mark.parametrize(
    ("source", "columns"),
    [
        ("{topic: a}", "key binary, value binary"),
        ("{topic: a, key: none, value: text}", "value string"),
        (
            "{topic: a, value: {format: text, as: line}, watermark: 1s}",
            "key binary, line string, timestamp timestamp",
        ),
        (
            "{topic: a, value: text, time: at, columns: {at: timestamp}, watermark: 1s}",
            "key binary, value string, at timestamp",
        ),
        (
            "{topic: a, value: {format: json, columns: {x: int}, as: v}, key: {format: json, columns: y long, as: k}}",
            "k struct<y:bigint>, v struct<x:int>",
        ),
        (
            "{topic: a, columns: {t: topic, p: partition, o: offset, h: headers, k: key, at: timestamp}}",
            "key binary, value binary, t string, p int, o bigint, h array<struct<key:string,value:binary>>, k binary,"
            " at timestamp",
        ),
        ("{topic: a, value: {format: avro, schema: none.avsc}}", "key binary, ..."),
        ("{topic: a, value: {format: avro, schema: none.avsc, as: v}}", "key binary, v ?"),
        ("{file: a.csv, table: id}", "..."),
        ("{file: in.txt}", "value string"),
        ("{file: {path: in, format: csv, schema: 'id STRING'}}", "id string"),
    ],
)
def test_the_columns_of_other_sources(source: str, columns: str) -> None:
    assert columns_of(read(f"{HEAD}sources: {{a: {source}}}\n{SINK}"))["a"].text() == columns


@pytest.mark.parametrize(
    ("step", "columns"),
    [
        ("filter: amount > 1", ALL),
        (
            "map: {amount: count, total: amount * 2, more: f(id)}",
            ALL.replace("amount double", "amount int") + ", total double, more ?",
        ),
        (
            'select: [id, "amount * 2 AS total", address.city]',
            "id string, total double, city string",
        ),
        ("select: [id, upper(id)]", "id string, ..."),
        ("select: ['* EXCEPT (id)']", "..."),
        (
            'cast: {amount: "decimal(10,2)", count: string}',
            ALL.replace("amount double", "amount decimal(10,2)").replace("count int", "count string"),
        ),
        (
            "drop: [items, address, id]",
            "key string, customer string, amount double, count int, timestamp timestamp",
        ),
        ("rename: {id: order_id}", ALL.replace(" id string", " order_id string")),
        ("flat-map: {explode: items, as: item}", ALL + ", item struct<name:string,price:decimal(10,2)>"),
        ("flat-map: f(items)", ALL + ", item ?"),
        ("union: [orders, orders]", ALL),
        ("sql: 'SELECT id, amount FROM orders'", "id string, amount double"),
        ("python: a:b", "..."),
        ("python: {function: a:b, columns: {x: int}}", "x int"),
        ("transform: {type: drop-tombstones}", ALL),
        (
            "aggregate: {by: [customer], total: sum(amount), n: count(*), c: sum(count), a: avg(count), m:"
            " max(id), x: f(id)}",
            "customer string, total double, n bigint, c bigint, a double, m string, x ?",
        ),
        (
            "aggregate: {by: customer, window: {tumbling: 1m}, n: count(*)}",
            "customer string, window_start timestamp, window_end timestamp, n bigint",
        ),
        ("aggregate: {by: [], n: count(*)}", "n bigint"),
        (
            "aggregate: {by: [customer], x: count(*) + 1, y: 1, z: upper(customer)}",
            "customer string, x bigint, y int, z string",
        ),
        ("count: {by: customer, as: n}", "customer string, n bigint"),
        (
            "reduce: {by: customer, with: max_by(amount)}",
            "customer string, " + ALL.replace(" customer string,", ""),
        ),
        ("deduplicate: [id]", ALL),
        ("process: {class: a:B, by: id, output: {x: int, y: date}}", "x int, y date"),
    ],
)
def test_the_columns_that_an_operation_makes(step: str, columns: str) -> None:
    assert last(f"{{{step}}}") == columns
    assert step_faults(f"{{{step}}}") == []


OTHER = (
    SOURCE
    + """\
  payments: {topic: payments, value: {format: json, columns: {order: string, paid: double}}, watermark: 5s}
  customers: {topic: customers, value: {format: json, columns: {code: string, name: string}}, table: code}
  same: {topic: same, value: {format: json, columns: {id: string, amount: double}}, watermark: 5s}
"""
)


@pytest.mark.parametrize(
    ("step", "columns"),
    [
        ("{from: orders, join: {with: payments, on: {id: order}, within: 1m}}", ALL + ", paid double"),
        ("{from: orders, lookup: {table: customers, on: {customer: code}}}", ALL + ", name string"),
        ("{from: orders, branch: {big: amount > 1, small: amount < 1}}", ALL),
    ],
)
def test_the_columns_of_two_frames(step: str, columns: str) -> None:
    assert last(step, source=OTHER) == columns


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (
            "filter: amont > 1",
            "filter: there is no column amont: did you mean amount?; there are key, id, customer, amo",
        ),
        ("filter: amount", "filter: 'amount' is double, and has to be boolean"),
        ("map: {x: nme}", "map.x: there is no column nme"),
        ("map: {x: sum(amount)}", "map.x: 'sum(amount)' has the aggregate function sum"),
        ("map: {_lc_x: id}", "a column must not be named _lc_x: names with _lc_ are taken"),
        ("select: [nme]", "select: there is no column nme"),
        ("cast: {amont: int}", "cast.amont: there is no column amont: did you mean amount?"),
        ("cast: {amount: innt}", "cast.amount: there is no type innt: did you mean int?"),
        (
            "cast: {items: int}",
            "cast.items: array<struct<name:string,price:decimal(10,2)>> cannot become int",
        ),
        ("cast: {amount: array<int>}", "cast.amount: double cannot become array<int>"),
        ("drop: [nme]", "drop: there is no column nme"),
        ("drop: [ID]", "drop: there is no column ID: did you mean id?; there are key"),
        ("map: {Amount: count}", "map.Amount: there is a column of this name in other letters"),
        ('select: [id, "*"]', "select: the column id comes twice: AS gives another name"),
        ('select: ["amount AS total", "total + 1 AS more"]', "select: there is no column total"),
        ("rename: {nme: x}", "rename: there is no column nme"),
        ("rename: {id: amount}", "rename: the column amount comes twice: another one has the name already"),
        ("flat-map: amount", "flat-map: 'amount' is double, and has to be an array or a map"),
        (
            "flat-map: {explode: items, as: id}",
            "flat-map: there is a column id already: as gives another name",
        ),
        ("branch: {a: amount}", "branch.a: 'amount' is double, and has to be boolean"),
        ("sql: SELECT nme FROM orders", "sql: there is no column nme"),
        (
            "python: {function: a:b, columns: id STRNG}",
            "python.columns: there is no type strng: did you mean string?",
        ),
        ("transform: {type: mask, fields: [crd]}", "transform.fields: there is no column crd"),
        ("aggregate: {by: regin, n: count(*)}", "aggregate.by: there is no column regin"),
        ("aggregate: {by: id, n: sum(amont)}", "aggregate.n: there is no column amont: did you mean amount?"),
        (
            "aggregate: {by: id, n: amount}",
            "aggregate.n: 'amount' does not aggregate amount: as sum(amount), or name it ",
        ),
        (
            "aggregate: {by: id, n: amount + count}",
            "aggregate.n: 'amount + count' does not aggregate amount: as sum",
        ),
        (
            "aggregate: {by: id, id: count(*)}",
            "aggregate.id: by or the window has a column of this name already",
        ),
        ("count: {by: nme}", "count.by: there is no column nme"),
        (
            "count: {by: customer, as: customer}",
            "count: by or the window has a column customer already: as gives another",
        ),
        (
            "reduce: {by: id, with: max_by(amont)}",
            "reduce.with: there is no column amont: did you mean amount?",
        ),
        ("deduplicate: [nme]", "deduplicate.by: there is no column nme"),
        ("process: {class: a:B, by: nme, output: {x: int}}", "process.by: there is no column nme"),
        (
            "process: {class: a:B, by: id, output: {x: itn}}",
            "process.output: there is no type itn: did you mean int?",
        ),
    ],
)
def test_what_is_wrong_with_the_columns_of_a_step(step: str, said: str) -> None:
    found = step_faults(f"{{{step}}}")
    assert len(found) == 1 and found[0].startswith(said), found


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (
            "join: {with: payments, on: id, within: 1m}",
            "join.on: payments: there is no column id; there are key, order",
        ),
        (
            "join: {with: payments, on: {idd: order}, within: 1m}",
            "join.on: there is no column idd: did you mean id?",
        ),
        (
            "join: {with: payments, on: {items: order}, within: 1m}",
            "join.on: items is array<struct<name:string,price:",
        ),
        (
            "join: {with: same, on: id, within: 1m}",
            "join: both sides have a column amount: rename or drop one of them",
        ),
        (
            "lookup: {table: customers, on: {customer: cod}}",
            "lookup.on: customers: there is no column cod: did you mean",
        ),
        (
            "lookup: {table: customers, on: {customer: code}, as-of: att}",
            "lookup.as-of: there is no column att",
        ),
    ],
)
def test_what_is_wrong_with_two_frames(step: str, said: str) -> None:
    found = step_faults(f"{{from: orders, {step}}}", source=OTHER)
    assert len(found) == 1 and found[0].startswith(said), found


def test_frames_of_a_union_have_the_same_columns() -> None:
    assert step_faults(
        "{union: [same, payments]}", source=OTHER, sink="sinks: {o: {from: same, topic: o}}\n"
    ) == [
        "union: payments has no column id, which same has",
        "union: payments has no column amount, which same has",
        "union: payments has a column order, which same has not",
        "union: payments has a column paid, which same has not",
    ]
    assert "union: it takes two frames or more" in step_faults("{union: [orders]}")


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        ("{topic: o, key: nme}", "key: there is no column nme"),
        ("{topic: o, key: {columns: [id, nme]}}", "key.columns: there is no column nme"),
        (
            "{topic: o, key: address}",
            "key: struct<street:string,city:string> cannot be written as text; json can",
        ),
        ("{topic: {column: nme}}", "topic: there is no column nme"),
        ("{topic: o, headers-column: nme}", "headers-column: there is no column nme"),
        ("{topic: o, headers: {a: nme}}", "headers.a: there is no column nme"),
        ("{topic: o, partition: nme}", "partition: there is no column nme"),
        ("{topic: o, timestamp: nme}", "timestamp: there is no column nme"),
        ("{topic: o, value: {columns: [nme]}}", "value.columns: there is no column nme"),
        (
            "{topic: o, value: text}",
            "value: text is one column, and these are id, customer, amount, count, items, addr",
        ),
        (
            "{topic: o, value: {format: text, columns: items}}",
            "value: array<struct<name:string,price:decimal(10,2)>> can",
        ),
        ("{file: {path: x, partition-by: day}}", "file.partition-by: there is no column day"),
    ],
)
def test_what_is_wrong_with_the_columns_of_a_sink(sink: str, said: str) -> None:
    found = [fault.what for fault in checked(f"{HEAD}{SOURCE}sinks: {{o: {sink}}}\n")]
    assert len(found) == 1 and found[0].startswith(said), found


def test_a_value_has_to_have_a_column() -> None:
    text = (
        HEAD
        + "sources: {a: {topic: a, key: text, value: {format: text, as: x}}}\nsinks: {o: {topic: o, key: x}}\n"
    )
    assert [fault.what for fault in checked(text)] == [
        "value: no column is left for it; columns says which it has"
    ]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "{topic: a, value: {format: json, columns: {key: int, x: int}}}",
            "the column key comes twice: a source has each column",
        ),
        (
            "{topic: a, value: {format: json, columns: 'id STRNG'}}",
            "value.columns: there is no type strng: did you mea",
        ),
        ("{topic: a, time: at, watermark: 1s}", "time: there is no column at; there are key, value"),
        ("{topic: a, time: value, watermark: 1s}", "time: value is binary, and has to be a timestamp"),
        ("{topic: a, table: id}", "table.key: there is no column id; there are key, value"),
        ("{file: {path: a, format: csv, schema: 'a b c'}}", "file.schema: there is no type b"),
    ],
)
def test_what_is_wrong_with_the_columns_of_a_source(source: str, said: str) -> None:
    found = [fault.what for fault in checked(f"{HEAD}sources: {{a: {source}}}\n{SINK}") if not fault.note]
    assert len(found) == 1 and found[0].startswith(said), found


def test_behind_what_is_unknown_all_passes() -> None:
    assert (
        step_faults(
            "{python: a:b}", "{filter: any > 1}", "{aggregate: {by: [x], n: sum(y)}}", "{select: [n, x]}"
        )
        == []
    )


def test_each_operation_has_a_rule() -> None:
    def leaves(union: object) -> set[object]:
        return {leaf for one in getattr(union, "__args__", ()) for leaf in (leaves(one) or {one})}

    assert RULES.keys() == leaves(StepOperation)


def test_a_function_of_python_may_make_any_columns() -> None:
    pipeline = Pipeline(
        "p",
        {"a": Source(TopicOrigin(("a",)))},
        [Step("f", Apply(lambda frame: frame)), Step("g", Apply(lambda frame: frame, columns="x INT"))],
        {"o": Sink("g", TopicTarget("o"))},
    )
    assert [columns_of(pipeline)[name].text() for name in ("f", "g")] == ["...", "x int"]
