"""The columns of sources with schemas: of files, and of a registry."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from leafcuttr_spark.pipelines.checking.columns import check_columns
from spark.pipelines.written import HEAD, SINK, read
from support.registry import RegistryProcess, running_registry

AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "amount", "type": ["null", "double"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "items", "type": {"type": "array", "items": "int"}},
    ],
}
OBJECT = {"type": "object", "properties": {"id": {"type": "string"}, "n": {"type": "integer"}}}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    with running_registry(tmp_path_factory.mktemp("registry")) as found:
        SchemaRegistryClient({"url": found.url}).register_schema("a-value", Schema(json.dumps(AVRO), "AVRO"))
        yield found


def of(source: str, folder: Path, *, registry: str = "") -> tuple[str, list[tuple[str, bool]]]:
    head = HEAD + (f"registry: {registry}\n" if registry else "")
    pipeline = read(f"{head}sources: {{a: {source}}}\n{SINK}", folder=folder)
    checked = check_columns(pipeline)
    return checked.frames["a"].text(), [(fault.what, fault.note) for fault in checked.faults]


def test_an_avro_file(tmp_path: Path) -> None:
    (tmp_path / "a.avsc").write_text(json.dumps(AVRO))
    columns = "id string, amount double, at timestamp, items array<int>"
    value = "value: {format: avro, schema: a.avsc}"
    assert of(f"{{topic: a, {value}}}", tmp_path) == (f"key binary, {columns}", [])
    assert of(f"{{topic: a, {value[:-1]}, as: v}}}}", tmp_path)[0] == (
        "key binary, v struct<id:string,amount:double,at:timestamp,items:array<int>>"
    )
    assert of(f"{{topic: a, key: {value.removeprefix('value: ')}}}", tmp_path)[0] == (
        "key struct<id:string,amount:double,at:timestamp,items:array<int>>, value binary"
    )


def test_a_json_schema_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(OBJECT))
    found = of("{topic: a, value: {format: json-schema, schema: a.json}}", tmp_path)
    assert found == ("key binary, id string, n bigint", [])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (None, "value.schema: "),
        (b"{", "value: the schema of values cannot be used: "),
        (b'{"type": "nope"}', "value: the schema of values cannot be used: "),
        (b"\xff", "value: the schema of values cannot be used: "),
        (b"[" * 100_000, "value: the schema of values cannot be used: "),
    ],
    ids=range(5),
)
def test_a_file_that_is_no_schema(data: bytes | None, said: str, tmp_path: Path) -> None:
    if data is not None:
        (tmp_path / "a.avsc").write_bytes(data)
    columns, faults = of("{topic: a, value: {format: avro, schema: a.avsc}}", tmp_path)
    assert columns == "key binary, ..."
    [(what, note)] = [one for one in faults if "no column" not in one[0]]
    assert what.startswith(said) and not note
    assert "\n" not in what and len(what) < 400


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    with (tmp_path / "a.avsc").open("wb") as file:
        file.truncate((16 << 20) + 1)
    columns, faults = of("{topic: a, value: {format: avro, schema: a.avsc}}", tmp_path)
    assert columns == "key binary, ..."
    assert faults == [(f"value.schema: {tmp_path / 'a.avsc'} is larger than 16 MiB", False)]


def test_a_registry(registry: RegistryProcess, tmp_path: Path) -> None:
    found = of("{topic: a, value: avro}", tmp_path, registry=registry.url)
    assert found == ("key binary, id string, amount double, at timestamp, items array<int>", [])


def test_a_registry_without_the_schema_is_noted(registry: RegistryProcess, tmp_path: Path) -> None:
    columns, [(what, note)] = of("{topic: b, value: avro}", tmp_path, registry=registry.url)
    assert (columns, note) == ("key binary, ...", True)
    assert what.startswith("value: the registry has no schema of the subject b-value")
    columns, [(what, note)] = of(
        "{topic: b, value: {format: json-schema, subject: a-value}}", tmp_path, registry=registry.url
    )
    assert (columns, note) == ("key binary, ...", True)
    assert what == "value: the subject a-value has schemas of AVRO, and value.format is json-schema"


def test_a_registry_that_is_away_is_noted(tmp_path: Path) -> None:
    with socket.socket() as bound:  # it does not listen
        bound.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{bound.getsockname()[1]}"
        columns, [(what, note)] = of("{topic: a, value: avro}", tmp_path, registry=address)
    assert (columns, note) == ("key binary, ...", True)
    assert what.startswith("value: ") and address.removeprefix("http://") in what
