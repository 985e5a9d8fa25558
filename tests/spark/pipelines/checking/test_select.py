"""The columns of queries over frames."""

from __future__ import annotations

import pytest

from leafcuttr_spark.pipelines.checking.expressions import Columns
from leafcuttr_spark.pipelines.checking.select import columns_of_query
from leafcuttr_spark.pipelines.checking.types import parse_ddl

FRAMES = {
    "orders": Columns(
        parse_ddl("id STRING, customer STRING, amount DOUBLE, address STRUCT<city: STRING>, xs ARRAY<INT>")
    ),
    "customers": Columns(parse_ddl("code STRING, name STRING, id BIGINT")),
    "anything": Columns((("n", None),), is_open=True),
}


def of(query: str) -> tuple[str, list[str]]:
    said: list[str] = []
    return columns_of_query(query, FRAMES, said.append).text(), said


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT id, amount * 2 AS twice FROM orders", "id string, twice double"),
        (
            "SELECT * FROM Orders",
            "id string, customer string, amount double, address struct<city:string>, xs array<int>",
        ),
        ("SELECT o.*, name FROM orders o JOIN customers c ON o.customer = c.code WHERE c.id > 1", None),
        (
            "SELECT o.id, c.id AS cid FROM orders AS o JOIN customers AS c ON o.customer = c.code",
            "id string, cid bigint",
        ),
        ("SELECT id FROM orders JOIN customers USING (id)", "id ?"),
        ("SELECT address.city, o.address.city AS c FROM orders o", "city string, c ?"),
        (
            "SELECT count(*) AS n, customer FROM orders GROUP BY customer HAVING n > 1 ORDER BY n",
            "n bigint, customer string",
        ),
        ("SELECT amount + 1 AS more, more + 1 AS most FROM orders", "more double, most ?"),
        ("WITH x AS (SELECT id AS k FROM orders) SELECT k FROM x", "k string"),
        ("SELECT k FROM (SELECT id AS k FROM orders) AS x", "k string"),
        ("SELECT id FROM orders UNION ALL SELECT code FROM customers", "id string"),
        (
            "SELECT id FROM orders WHERE customer IN (SELECT code FROM customers WHERE amount > 1)",
            "id string",
        ),
        ("SELECT id, x FROM orders LATERAL VIEW explode(xs) t AS x", "id string, x ?, ..."),
        ("SELECT upper(id) FROM orders", "..."),
        ("SELECT * EXCEPT (id) FROM customers", "code string, name string, id bigint, ..."),
        ("SELECT n, m FROM anything", "n ?, m ?"),
        ("SELECT id FROM elsewhere", "id ?"),
        ("SELECT window.start AS s, count(*) AS n FROM orders GROUP BY window(at, '5 minutes')", None),
    ],
)
def test_what_is_right_passes(query: str, columns: str | None) -> None:
    found, said = of(query)
    if columns is not None:
        assert found == columns
        assert said == []


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT nme FROM customers", "there is no column nme: did you mean name?; there are code, name, id"),
        (
            "SELECT c.nme FROM customers c",
            "there is no column nme: did you mean name?; there are code, name, id",
        ),
        (
            "SELECT id FROM orders WHERE amont > 1",
            "there is no column amont: did you mean amount?; there are id, custo",
        ),
        ("SELECT x.id FROM orders o", "there is no frame or column x; its frames are o"),
        (
            "SELECT address.citty FROM orders",
            "address has no field citty: did you mean city?; there are city",
        ),
        ("SELECT k FROM (SELECT id AS kk FROM orders)", "there is no column k; there are kk"),
        (
            "WITH x AS (SELECT nope FROM orders) SELECT 1 AS one FROM x",
            "there is no column nope; there are id, customer",
        ),
        ("INSERT INTO orders VALUES (1)", "it is no SELECT"),
        ("SELECT id FROM", "'SELECT id FROM' is no SQL: it ends too early"),
        ("SELECT (id FROM orders", "'SELECT (id FROM orders' is no SQL: a '(' is not closed"),
    ],
)
def test_what_is_wrong_is_said(query: str, what: str) -> None:
    said = of(query)[1]
    assert len(said) == 1 and said[0].startswith(what), said


def test_a_query_names_a_frame() -> None:
    said: list[str] = []
    columns_of_query("SELECT 1 AS one", {}, said.append)
    assert said == ["it names no frame"]
