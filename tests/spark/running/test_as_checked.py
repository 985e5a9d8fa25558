"""What checks say without Spark of columns and types is what Spark makes of them; and of what Spark takes they say
nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest

from leafcuttr_spark.pipelines.checking.columns import check_columns
from leafcuttr_spark.pipelines.checking.expressions import Columns, condition, inferred, tree_of, type_of
from leafcuttr_spark.pipelines.checking.queries import SqlError, UnreadableSqlError, parsed
from leafcuttr_spark.pipelines.checking.select import columns_of_query
from leafcuttr_spark.pipelines.checking.types import parse_ddl, parse_type
from spark.pipelines.written import read, with_steps

_EACH = 4
"""Of the functions of Spark every fourth: all take three minutes, and are as right (1091 examples, 8 not read)."""
TYPES = {
    "ti": "tinyint",
    "sh": "smallint",
    "i": "int",
    "l": "bigint",
    "f": "float",
    "d": "double",
    "de": "decimal(10,2)",
    "s": "string",
    "b": "boolean",
    "bi": "binary",
    "da": "date",
    "ts": "timestamp",
    "a": "array<int>",
    "m": "map<string,int>",
    "st": "struct<x:int,y:string>",
    "sa": "array<struct<x:int>>",
}
COLUMNS = Columns(tuple((name, parse_type(type_)) for name, type_ in TYPES.items()))
NUMBERS = ("ti", "sh", "i", "l", "f", "d", "de")
EXPRESSIONS = (
    *(
        f"{left} {operator} {right}"
        for left in NUMBERS
        for right in NUMBERS
        for operator in ("+", "-", "*", "/", "%", "=")
    ),
    *(
        f"{left} {operator} {right}"
        for left in ("d", "s")
        for right in ("i", "d")
        for operator in ("+", "=", "<=>")
    ),
    *(
        f"{function}({name})"
        for function in ("upper", "lower", "length", "-")
        for name in ("s", "i", "d", "de")
    ),
    *(
        "1",
        "1.5",
        "1e3",
        "3000000000",
        "'x'",
        "true",
        "null",
        "1L",
        "2.0D",
        "st.x",
        "m.k",
        "sa.x",
        "a[0]",
        "m['k']",
    ),
    *(
        "st",
        "sa[0].x",
        "i in (1, 2)",
        "not b",
        "b and true",
        "i is null",
        "s like 'a'",
        "exists(a, x -> x > 1)",
    ),
    *(
        "transform(a, x -> x + i)",
        "aggregate(a, 0, (acc, x) -> acc + x)",
        "filter(sa, e -> e.x > 1)",
        "ts",
        "da",
        "bi",
    ),
)
AGGREGATES = tuple(
    f"{function}({name})"
    for function in ("sum", "avg", "min", "max", "count", "first")
    for name in (
        *NUMBERS,
        *(("s", "b", "ts", "st", "a") if function in ("min", "max", "count", "first") else ("s",)),
    )
)


@pytest.fixture(scope="module")
def frame(spark: Any) -> Any:
    made = spark.createDataFrame([], ", ".join(f"{name} {type_}" for name, type_ in TYPES.items()))
    made.createOrReplaceTempView("lc_types")
    return made


@pytest.mark.usefixtures("frame")
@pytest.mark.parametrize("expressions", [EXPRESSIONS, AGGREGATES], ids=["each row", "aggregates"])
def test_types_that_are_said_are_those_of_spark(spark: Any, expressions: tuple[str, ...]) -> None:
    all_ = ", ".join(f"{expression} AS c{at}" for at, expression in enumerate(expressions))
    wrong: list[str] = []
    known = 0
    for expression, field in zip(expressions, spark.sql(f"SELECT {all_} FROM lc_types").schema, strict=True):
        said: list[str] = []
        tree = tree_of(expression, said.append)
        ours = None if tree is None else type_of(tree, COLUMNS, said.append)
        theirs = field.dataType.simpleString()
        known += ours is not None
        if said or (ours is not None and ours.text() != theirs):
            wrong.append(f"{expression}: Spark {theirs}, here {ours and ours.text()} {said}")
    assert wrong == []
    assert known > len(expressions) / 3


@pytest.mark.usefixtures("frame")
@pytest.mark.parametrize("name", TYPES)
def test_conditions_that_are_refused_are_refused_by_spark(spark: Any, name: str) -> None:
    said: list[str] = []
    condition(name, COLUMNS, said.append)
    try:
        spark.sql(f"SELECT * FROM lc_types WHERE {name}")
        refused = False
    except Exception:
        refused = True
    assert bool(said) == refused


def test_of_the_examples_of_spark_s_functions_nothing_is_said(spark: Any) -> None:
    """Those with a FROM as queries, the others one expression at a time."""
    examples: dict[str, Any] = {}
    for row in spark.sql("SHOW FUNCTIONS").collect()[::_EACH]:
        try:
            lines = spark.sql(f"DESCRIBE FUNCTION EXTENDED `{row[0]}`").collect()
        except Exception:
            continue
        for query in re.findall(r"> (SELECT .*?);\s*$", "\n".join(line[0] for line in lines), re.M | re.S):
            examples.setdefault(query, None)
    wrong: list[str] = []
    unreadable = 0
    for query in examples:
        try:
            tree = parsed(query)
        except UnreadableSqlError:
            unreadable += 1
            continue
        except SqlError as error:
            wrong.append(f"{query}: {error}")
            continue
        said: list[str] = []
        columns_of_query(query, {"any": Columns(is_open=True)}, said.append)
        try:
            theirs = [field.dataType.simpleString() for field in spark.sql(query).schema]
        except Exception:
            continue  # it shows an error, or needs what is not here
        ours = [inferred(one, Columns()) for one in tree.expressions] if hasattr(tree, "expressions") else []
        if len(ours) == len(theirs):
            said += (f"{b} for {a.text()}" for a, b in zip(ours, theirs, strict=True) if a and a.text() != b)
        wrong += (f"{query}: {what}" for what in said)
    assert wrong == []
    assert len(examples) > 900 / _EACH
    assert unreadable < 20


STEPS = (
    "filter: amount > 1",
    'map: {amount: count, total: amount * 2, more: "concat(id, customer)"}',
    'select: [id, "amount * 2 AS total", address.city]',
    'cast: {amount: "decimal(10,2)", count: string}',
    "drop: [items, address, id]",
    "rename: {id: order_id}",
    "flat-map: {explode: items, as: item}",
    "union: [orders, orders]",
    "sql: 'SELECT customer, amount + 1 AS n, address.city FROM orders'",
    "transform: {type: extract, field: address}",
    "transform: {type: extract, field: amount}",
    "transform: {type: insert, static.field: s, static.value: x, topic.field: t, offset.field: o, timestamp.field: at}",
    "transform: {type: replace, include: [id, amount], renames: {id: x}}",
    "transform: {type: mask, fields: [id]}",
    "transform: {type: hash, fields: [count]}",
    "transform: {type: flatten, delimiter: _}",
    "transform: {type: timestamp, field: timestamp, target.type: unix}",
    "transform: {type: timestamp, field: timestamp, target.type: string, format: yyyy}",
    "transform: {type: route, regex: a, replacement: b}",
    "transform: {type: drop-tombstones}",
    "transform: {type: value-to-key, fields: [count]}",
    "transform: {type: value-to-key, fields: [id, count]}",
    "transform: {type: header, fields: [id], headers: [x], operation: move}",
)


@pytest.mark.parametrize("step", STEPS)
def test_the_columns_of_a_step_are_those_that_it_makes(step: str, spark: Any) -> None:
    from pyspark.sql import functions as f

    from leafcuttr_spark.running.compilers import COMPILERS
    from leafcuttr_spark.running.compiling import Compilation, compile_steps
    from leafcuttr_spark.running.rows import RECORD, RECORD_DDL, user_columns

    pipeline = read(with_steps(f"{{name: made, {step}}}"))
    checked = check_columns(pipeline)
    assert checked.faults == []
    source = ", ".join(f"`{name}` {type_.text()}" for name, type_ in checked.frames["orders"] if type_)

    def orders() -> Any:
        return spark.createDataFrame([], source).withColumn(RECORD, f.lit(None).cast(RECORD_DDL))

    frames = compile_steps(Compilation(pipeline, spark, catches=False), {"orders": orders}, COMPILERS)
    made = frames["made"]
    theirs = [(name, made.schema[name].dataType.simpleString()) for name in user_columns(made)]
    ours = checked.frames["made"]
    assert [name for name, _ in theirs] == [*ours.names]
    assert [(name, type_.text()) for name, type_ in ours if type_] == [
        one for one, (_, type_) in zip(theirs, ours, strict=True) if type_
    ]


def test_the_ddl_of_types_is_read_as_spark_reads_it(spark: Any) -> None:
    from pyspark.sql.types import StructType

    for text in (
        "id STRING NOT NULL COMMENT 'x, y', `a b` DECIMAL(10,2), c VARCHAR(5), d DEC, e TIMESTAMP_NTZ",
        "a ARRAY<STRUCT<x: INT, `y z`: MAP<STRING, ARRAY<DOUBLE>>>>, b LONG, c BYTE, d SHORT, e REAL, f VOID",
        "a: int, b: struct<c: timestamp_ltz, d: binary>",
    ):
        theirs = [(field.name, field.dataType.simpleString()) for field in StructType.fromDDL(text)]
        ours = [(name, type_.text() if type_ else "?") for name, type_ in parse_ddl(text)]
        assert [(name, re.sub(r"varchar\(\d+\)", "string", type_)) for name, type_ in theirs] == ours
