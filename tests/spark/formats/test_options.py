"""The options of keys and values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leafcuttr_spark.formats.options import FormatName, FormatOptions, IdPlace
from leafcuttr_spark.options import OptionError, Query
from leafcuttr_spark.source.options import row_options, source_options

LEAST = {"kafka.bootstrap.servers": "a:1", "subscribe": "orders"}
REGISTRY = {"schema.registry.url": "http://r:8081"}


def value(**given: Any) -> FormatOptions:
    options = {name.replace("_", "."): each for name, each in given.items()}
    found = source_options({**LEAST, **options}, Query.STREAM).value_format
    assert row_options({**LEAST, **options}).value_format == found
    return found


def test_bytes_are_the_default() -> None:
    assert value() == FormatOptions()
    assert not value(**REGISTRY).needs_headers


def test_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "orders.avsc").write_text('"int"')
    found = value(
        value_format="AVRO",
        value_schema=str(tmp_path / "orders.avsc"),
        value_subject="s",
        value_id="header",
        **{"Schema.Registry.URL": "http://r:8081", "schema.registry.basic.auth.user.info": "a:b"},
    )
    assert found == FormatOptions(
        FormatName.AVRO,
        b'"int"',
        "s",
        IdPlace.HEADER,
        registry={"schema.registry.url": "http://r:8081", "schema.registry.basic.auth.user.info": "a:b"},
    )
    assert found.has_ids and found.needs_headers
    assert value(value_format="json", value_schema="id BIGINT").schema == b"id BIGINT"
    assert value(value_format="protobuf", value_message="a.B", **REGISTRY).message == "a.B"
    assert not value(value_format="avro", value_schema='"int"', value_id="none", **REGISTRY).has_ids
    assert not value(value_format="avro", value_id="payload", **REGISTRY).needs_headers


def test_what_is_read_because_of_them() -> None:
    """Headers, where they have the ids of what is decoded."""
    for given, needed in (
        ({}, (True, True, False)),
        ({"value.format": "avro", **REGISTRY}, (True, True, True)),
        ({"key.format": "avro", **REGISTRY}, (True, True, True)),
        ({"value.format": "avro", "value.id": "payload", **REGISTRY}, (True, True, False)),
        ({"value.format": "avro", "columns": "key", **REGISTRY}, (True, False, False)),
        ({"columns": "keyBytes,headers"}, (True, False, True)),
        ({"columns": "valueBytes"}, (False, True, False)),
        ({"columns": "offset"}, (False, False, False)),
    ):
        found = source_options({**LEAST, **given}, Query.STREAM)
        assert (found.needs_keys, found.needs_values, found.needs_headers) == needed, given


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"value_format": "xml"},
            "the option value.format has the value 'xml'; allowed is bytes or text or json",
        ),
        ({"value_format": "avro"}, "the format avro needs the option value.schema, or schema.registry.url"),
        ({"value_format": "json", **REGISTRY}, "the format json needs the option value.schema$"),
        (
            {"value_format": "json-schema", "value_schema": "{}"},
            "the format json-schema needs the option schema.reg",
        ),
        (
            {"value_schema": "a INT"},
            "the option value.schema is for a format with a schema; value.format is bytes",
        ),
        ({"value_format": "avro", "value_id": "somewhere", **REGISTRY}, "the option value.id has the value"),
        (
            {"value_format": "avro", "value_schema": "/not/there"},
            "names the file /not/there, which cannot be read: No",
        ),
        ({"value_formt": "avro"}, "there is no option value.formt: did you mean value.format"),
        ({"columns": "value,values"}, "allowed is key, value, topic"),
    ],
)
def test_what_cannot_be_used(given: dict[str, str], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        value(**given)


def test_a_file_may_not_be_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from leafcuttr_spark.formats import options

    monkeypatch.setattr(options, "LARGEST_FILE", 3)
    (tmp_path / "s.avsc").write_text('"int"')
    with pytest.raises(OptionError, match="which is larger than 3 bytes"):
        value(value_format="avro", value_schema=str(tmp_path / "s.avsc"))
