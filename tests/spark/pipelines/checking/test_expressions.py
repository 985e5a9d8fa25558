"""Expressions of Spark SQL: their columns, and their types where these are certain."""

from __future__ import annotations

import pytest

from leafcuttr_spark.pipelines.checking.expressions import Columns, condition, expression
from leafcuttr_spark.pipelines.checking.types import parse_ddl

COLUMNS = Columns(
    parse_ddl(
        "id STRING, amount DOUBLE, n INT, l BIGINT, b BOOLEAN, price DECIMAL(10,2), at TIMESTAMP, raw BINARY,"
        " items ARRAY<STRUCT<name: STRING, price: DOUBLE>>, address STRUCT<street: STRING, place: STRUCT<city:"
        " STRING>>,"
        " tags MAP<STRING, INT>, month INT"
    )
)


def of(text: str, columns: Columns = COLUMNS) -> tuple[str | None, list[str]]:
    said: list[str] = []
    type_ = expression(text, columns, said.append)
    return (type_.text() if type_ else None), said


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("id", "string"),
        ("ID", "string"),
        ("`id`", "string"),
        ("(amount)", "double"),
        ("address.place.city", "string"),
        ("address.place", "struct<city:string>"),
        ("n + 1", "int"),
        ("n * l", "bigint"),
        ("n - amount", "double"),
        ("-n", "int"),
        ("amount > 10 AND NOT b OR id LIKE 'x%'", "boolean"),
        ("id IN ('a', 'b')", "boolean"),
        ("n BETWEEN 1 AND 2", "boolean"),
        ("id IS NOT NULL", "boolean"),
        ("id RLIKE 'x'", "boolean"),
        ("n <=> l", "boolean"),
        ("true", "boolean"),
        ("'x'", "string"),
        ("7", "int"),
        ("7000000000", "bigint"),
        ("CAST(id AS DECIMAL(5,1))", "decimal(5,1)"),
        ("id :: date", "date"),
        ("upper(id)", "string"),
        # What is not certain is unknown.
        ("1.5", None),
        ("price + 1", None),
        ("tags.x", None),
        ("items.name", None),
        ("items[0].price", None),
        ("concat(id, raw)", None),
        ("my_function(id, n)", None),
        ("CASE WHEN b THEN 1 ELSE 'x' END", None),
        ("transform(items, i -> i.price * n)", None),
        ("aggregate(items, 0D, (acc, i) -> acc + i.price)", None),
        ("exists(items, i -> i.name = id)", None),
        ("date_trunc('DAY', at)", None),
        ("extract(YEAR FROM at)", None),
        ("timestampadd(HOUR, 2, at)", None),
        ("datediff(DAY, at, current_date)", None),
        ("trim(BOTH 'x' FROM id)", None),
        ("at - INTERVAL 5 MINUTES", None),
        ("named_struct('a', n, 'b', id)", None),
        ("n >>> 1", None),
        ("month", "int"),
        ("default", None),
    ],
)
def test_what_is_right_passes_with_its_type_where_it_is_certain(text: str, type_: str | None) -> None:
    assert of(text) == (type_, [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "amont > 10",
            "there is no column amont: did you mean amount?; there are id, amount, n, l, b, price, at, raw",
        ),
        ("upper(nme) || id", "there is no column nme; there are id"),
        ("address.stret", "address has no field stret: did you mean street?; there are street, place"),
        ("address.place.citty", "address.place has no field citty: did you mean city?; there are city"),
        ("id.x", "id is string and has no field x"),
        *((f"{letter} + 1", f"there is no column {letter}; there are id") for letter in "defaut"),
        ("sum(amount) > 1", "'sum(amount) > 1' has the aggregate function sum, which is for `aggregate`"),
        ("count(*)", "'count(*)' has the aggregate function count, which is for `aggregate`"),
        ("transform(items, i -> i.price * nn)", "there is no column nn"),
        ("amount >", "'amount >' is no SQL: it ends too early"),
        ("upper(id", "'upper(id' is no SQL: a '(' is not closed"),
        ("upper id)", "'upper id)' is no SQL: there is a ')' without '('"),
        ("id = 'x", '"id = \'x" is no SQL: a quote or a comment is not closed'),
        ("id; n", "'id; n' is no SQL: there is a `;` in it"),
        ("/* */", "'/* */' is no SQL: there is nothing in it"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    found = of(text)[1]
    assert len(found) == 1 and found[0].startswith(said), found


def test_what_an_open_frame_has_is_unknown() -> None:
    open_ = Columns((("id", COLUMNS.type_of("id")),), is_open=True)
    assert of("upper(nme) || id.x", open_)[1] == ["id is string and has no field x"]
    assert of("nme", open_) == (None, [])


@pytest.mark.parametrize("text", ["b", "amount > 1", "id = 'x' OR b", "my_function(id)", "tags.x", "NULL"])
def test_a_condition(text: str) -> None:
    said: list[str] = []
    condition(text, COLUMNS, said.append)
    assert said == []


@pytest.mark.parametrize("text", ["amount", "id", "n + 1", "address", "items", "at", "price", "raw"])
def test_what_is_certainly_no_condition(text: str) -> None:
    said: list[str] = []
    condition(text, COLUMNS, said.append)
    assert len(said) == 1 and said[0].endswith(", and has to be boolean")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 3000 + "id" + ")" * 3000,
        "id" + " + id" * 4000,
        "x" * 30_000,
        "NOT " * 4000 + "b",
        "f(" * 500 + "id" + ")" * 500,
        "CASE WHEN b THEN " * 300 + "1" + " END" * 300,
        "\x00",
        "SELECT",
        "id AS",
        "..",
        "{{id}}",
        "${id}",
    ],
    ids=range(12),
)
def test_hostile_texts_have_a_verdict_of_one_line(text: str) -> None:
    said: list[str] = []
    expression(text, COLUMNS, said.append)
    assert all(len(line) < 1000 and "\n" not in line for line in said)
