"""Types and DDL of Spark SQL."""

from __future__ import annotations

import pytest

from leafcuttr_spark.pipelines.checking.types import DdlError, parse_ddl, parse_type


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("int", "int"),
        ("INTEGER", "int"),
        (" Long ", "bigint"),
        ("decimal", "decimal(10,0)"),
        ("dec(5)", "decimal(5,0)"),
        ("NUMERIC(10, 2)", "decimal(10,2)"),
        ("varchar(10)", "string"),
        ("string collate UTF8_LCASE", "string"),
        ("timestamp_ltz", "timestamp"),
        (
            "array<struct<a:int,b:map<string,array<double>>>>",
            "array<struct<a:int,b:map<string,array<double>>>>",
        ),
        ("STRUCT<`a b`: INT NOT NULL COMMENT 'it''s', c STRING>", "struct<a b:int,c:string>"),
        ("struct<>", "struct<>"),
        ("array<interval day to second>", "array<?>"),
    ],
)
def test_a_type(text: str, shown: str) -> None:
    found = parse_type(text)
    assert found is not None and found.text() == shown


def test_types_of_which_nothing_is_known() -> None:
    assert parse_type("interval year to month") is None
    assert parse_type("time(6)") is None


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("strng", "there is no type strng: did you mean string?"),
        ("array", "'<' is expected, not the end"),
        ("array<int", "'>' is expected, not the end"),
        ("map<int>", "',' is expected, not '>'"),
        ("decimal(a)", "'a' is no number"),
        ("int int", "'int' is not expected; allowed: NAME TYPE, NAME TYPE, ..."),
        ("", "it ends where a type is expected"),
        ("<", "'<' is no type"),
        ("array<" * 60 + "int" + ">" * 60, "types are nested more than 50 deep"),
        ("struct<a:int,A:int>", "the column A comes twice"),
    ],
)
def test_what_is_no_type(text: str, what: str) -> None:
    with pytest.raises(DdlError) as raised:
        parse_type(text)
    assert str(raised.value) == what


@pytest.mark.parametrize(
    "text",
    [
        "id STRING, total DECIMAL(10,2) NOT NULL COMMENT 'x, y', `a``b` INT DEFAULT 5",
        "struct<id:string,total:decimal(10,2),`a``b`:int>",
        "id: string, total: decimal(10, 2), `a``b`: int",
    ],
)
def test_ddl(text: str) -> None:
    assert [(name, type_.text() if type_ else None) for name, type_ in parse_ddl(text)] == [
        ("id", "string"),
        ("total", "decimal(10,2)"),
        ("a`b", "int"),
    ]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("id", "it ends where a type is expected"),
        ("id STRING,", "it ends where the name of a column is expected"),
        ("id STRING total INT", "'total' is not expected; allowed: NAME TYPE, NAME TYPE, ..."),
        ("'id' STRING", "\"'id'\" is no name of a column"),
        ("id STRING, id INT", "the column id comes twice"),
    ],
)
def test_what_is_no_ddl(text: str, what: str) -> None:
    with pytest.raises(DdlError) as raised:
        parse_ddl(text)
    assert str(raised.value) == what
