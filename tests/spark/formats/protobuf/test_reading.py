"""Messages of Protobuf to columns and back: what google.protobuf makes of them, whatever a field is."""

from __future__ import annotations

import importlib.resources
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import json_format, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_sdk.schemas import SchemaError
from leafcuttr_spark.formats.pieces import PieceError
from leafcuttr_spark.formats.protobuf.reading import ProtobufReading
from leafcuttr_spark.formats.protobuf.schema import arrow_type_of, files_of, message_of
from leafcuttr_spark.formats.protobuf.writing import protobuf_writer
from leafcuttr_spark.formats.types import ddl
from support.gates_slice import sampled

PROTO = """syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
enum Size { SMALL = 0; LARGE = 7; }
message Other { int32 n = 1; }
message Order {
  message Line { string sku = 1; optional uint32 count = 2; repeated bytes tags = 3; Size size = 4; }
  int32 i = 1; sint64 s = 2; fixed64 u = 3; float f = 4; double d = 5; bool b = 6; string t = 7; bytes y = 8;
  Size size = 9; Line line = 10; repeated Line lines = 11; map<string, Line> by_name = 12; map<int32, string> m = 13;
  google.protobuf.Timestamp at = 14; google.protobuf.Int64Value maybe = 15; google.protobuf.Struct any = 16;
  oneof one { string left = 17; int64 right = 18; }
  repeated int64 many = 19; optional string note = 20; repeated google.protobuf.Timestamp times = 21;
}
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], bytes]:
    """A descriptor set of a text, as protoc writes it."""

    def compile_(text: str) -> bytes:
        folder = tmp_path_factory.mktemp("proto")
        (folder / "a.proto").write_text(text)
        known = Path(str(importlib.resources.files("grpc_tools"))) / "_proto"
        subprocess.run(
            [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder}", f"-I{known}", "--include_imports",
             f"--descriptor_set_out={folder / 'set'}", "a.proto"], check=True,
        )  # fmt: skip
        return (folder / "set").read_bytes()

    return compile_


@pytest.fixture(scope="module")
def orders(compiled: Callable[[str], bytes]) -> bytes:
    return compiled(PROTO)


def message(schema: bytes, name: str = "shop.Order") -> Any:
    return message_factory.GetMessageClass(message_of(files_of(schema), name))


FULL = {
    "i": -5, "s": -(2**40), "u": 2**64 - 1, "f": 0.5, "d": 1e300, "b": True, "t": "é", "y": "AAE=", "size": "LARGE",
    "line": {"sku": "x", "count": 2**32 - 1, "tags": ["AA=="]}, "lines": [{"sku": "y"}, {}],
    "byName": {"k": {"count": 0, "size": "LARGE"}}, "m": {"-1": "minus"}, "at": "9999-12-31T23:59:59.999999Z",
    "maybe": "5", "any": {"a": [1, None]}, "right": "9", "many": ["1", "-2"], "note": "",
    "times": ["0001-01-01T00:00:00Z"],
}  # fmt: skip


def test_every_kind_of_field(orders: bytes) -> None:
    reading = ProtobufReading(orders, "shop.Order")
    kind = message(orders)
    full = json_format.ParseDict(FULL, kind())
    found = reading.bare()(pa.array([full.SerializeToString(), b""], pa.binary()), b"")
    assert found.errors == {}
    found.values.validate(full=True)
    assert found.values.type == reading.type
    first, empty = found.values.to_pylist(maps_as_pydicts="strict")
    line = {"sku": "x", "count": 2**32 - 1, "tags": [b"\0"], "size": "SMALL"}
    nothing = {"sku": "", "count": None, "tags": [], "size": "SMALL"}
    assert first == {
        "i": -5, "s": -(2**40), "u": Decimal(2**64 - 1), "f": 0.5, "d": 1e300, "b": True, "t": "é", "y": b"\0\1",
        "size": "LARGE", "line": line, "lines": [{**nothing, "sku": "y"}, nothing],
        "by_name": {"k": {**nothing, "count": 0, "size": "LARGE"}}, "m": {-1: "minus"},
        "at": datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), "maybe": 5, "any": '{"a": [1.0, null]}',
        "left": None, "right": 9, "many": [1, -2], "note": "", "times": [datetime(1, 1, 1, tzinfo=UTC)],
    }  # fmt: skip
    assert empty == {
        "i": 0, "s": 0, "u": Decimal(0), "f": 0.0, "d": 0.0, "b": False, "t": "", "y": b"", "size": "SMALL",
        "line": None, "lines": [], "by_name": {}, "m": {}, "at": None, "maybe": None, "any": None, "left": None,
        "right": None, "many": [], "note": None, "times": [],
    }  # fmt: skip
    # And back: the message is the same.
    writable = pa.struct([field for field in reading.type if field.name not in ("left",)])
    rows = pa.array([{name: value for name, value in first.items() if name != "left"}], writable)
    again = protobuf_writer(message_of(files_of(orders), "shop.Order"), writable)(rows)
    assert kind.FromString(again[0].as_py()) == full


@given(st.data())
@settings(max_examples=sampled(100), deadline=None)
def test_columns_are_what_messages_have(orders: bytes, data: st.DataObject) -> None:
    reading = ProtobufReading(orders, "shop.Order")
    kind = message(orders)
    numbers = st.integers(-(2**31), 2**31 - 1)
    line = st.fixed_dictionaries(
        {}, optional={"sku": st.text(max_size=3), "count": st.integers(0, 2**32 - 1)}
    )
    rows = data.draw(
        st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "i": numbers,
                    "t": st.text(max_size=4),
                    "note": st.text(max_size=2),
                    "line": line,
                    "lines": st.lists(line, max_size=2),
                    "many": st.lists(numbers, max_size=3),
                    "left": st.text(max_size=2),
                },
            ),
            max_size=5,
        )
    )
    messages = [kind(**row) for row in rows]
    found = reading.bare()(pa.array([each.SerializeToString() for each in messages], pa.binary()), b"")
    assert found.errors == {}
    for row, each in zip(found.values.to_pylist(maps_as_pydicts="strict"), messages, strict=True):
        assert (row["i"], row["t"], row["many"]) == (each.i, each.t, list(each.many))
        assert row["note"] == (each.note if each.HasField("note") else None)
        assert row["left"] == (each.left if each.HasField("left") else None)
        assert (row["line"] is None) == (not each.HasField("line"))
        assert [one["sku"] for one in row["lines"]] == [one.sku for one in each.lines]


def test_bad_data_are_errors_of_their_records(orders: bytes) -> None:
    reading = ProtobufReading(orders, "shop.Order")
    late = json_format.ParseDict({"i": 1}, message(orders)())
    late.at.seconds = 253402300800
    deep = b"\x52\x7f" * 200
    values = [b"\x08\x01", b"\xff\xff", late.SerializeToString(), deep, b"\x3a\x01\xff", b"\x08\x02"]
    found = reading.bare()(pa.array(values, pa.binary()), b"")
    assert found.errors.keys() == {1, 2, 3, 4}
    assert found.errors[2] == "a time is outside of the years 1 to 9999"
    assert [row and row["i"] for row in found.values.to_pylist()] == [1, None, None, None, None, 2]


def test_messages_within_themselves_are_json(compiled: Callable[[str], bytes]) -> None:
    schema = compiled('syntax = "proto3"; message Tree { int32 n = 1; repeated Tree below = 2; }')
    reading = ProtobufReading(schema, None)
    assert ddl(reading.type) == "struct<`n` int, `below` array<string>>"
    kind = message(schema, "Tree")
    value = kind(n=1, below=[kind(n=2, below=[kind(n=3)])])
    found = reading.bare()(pa.array([value.SerializeToString()], pa.binary()), b"")
    assert found.values.to_pylist() == [{"n": 1, "below": ['{"n": 2, "below": [{"n": 3}]}']}]


def test_schemas_that_cannot_be_used(orders: bytes, compiled: Callable[[str], bytes]) -> None:
    for schema, name, said in (
        (b"no set", None, "it is no descriptor set"),
        (b"", None, "the schema has no message"),
        (orders, "shop.Nothing", "the schema has no message shop.Nothing; it has shop.Order, shop.Other"),
    ):
        with pytest.raises(SchemaError, match=said):
            ProtobufReading(schema, name)
    wide = "".join(f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }}\n" for n in range(30))
    bomb = compiled(f'syntax = "proto3";\n{wide}message M30 {{ int32 a = 1; }}')
    with pytest.raises(SchemaError, match="the schema has more than 5000 fields"):
        ProtobufReading(bomb, "M0")


def test_rows_that_are_no_such_messages(orders: bytes) -> None:
    of = message_of(files_of(orders), "shop.Order")
    for fields, said in (
        ({"i": pa.int64()}, "the column i is bigint, and its schema has int"),
        ({"x": pa.int64()}, "the message shop.Order has no field for the column x"),
        ({"lines": pa.string()}, "the column lines is string, and its schema has a repeated field"),
        ({"line": pa.string()}, "the column line is string, and its schema has a message"),
    ):
        with pytest.raises(SchemaError, match=said):
            protobuf_writer(of, pa.struct(list(fields.items())))
    type_ = pa.struct([("size", pa.string())])
    with pytest.raises(PieceError, match="HUGE"):
        protobuf_writer(of, type_)(pa.array([{"size": "HUGE"}], type_))
    assert arrow_type_of(of).field("size").type == pa.string()
