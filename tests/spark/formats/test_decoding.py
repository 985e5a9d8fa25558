"""Keys and values that Confluent's serializers have written with a registry of ours, decoded without Spark; and what
the registry or the records lack."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import (
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    dual_schema_id_deserializer,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import timestamp_pb2, wrappers_pb2

from leafcuttr_sdk.schemas import SchemaProviderError
from leafcuttr_spark.codec.headers import HEADERS
from leafcuttr_spark.formats.decoding import FieldDecoder, FormatPlan, plan_format
from leafcuttr_spark.formats.encoding import encoding
from leafcuttr_spark.formats.options import FormatName, FormatOptions, IdPlace
from leafcuttr_spark.formats.registry import RegistrySchemas
from leafcuttr_spark.options import OptionError
from support.http_registry import scripted_registry
from support.registry import RegistryProcess, running_registry

OLD: dict[str, Any] = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "int"}]}
NEW: dict[str, Any] = {
    **OLD,
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
}
DUAL = {"schema.id.deserializer": dual_schema_id_deserializer}
PERSON = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "P", "type": "object",
          "properties": {"name": {"type": "string"}, "age": {"type": ["null", "integer"]}}}  # fmt: skip


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    with running_registry(tmp_path_factory.mktemp("registry")) as found:
        yield found


@pytest.fixture(scope="module")
def client(registry: RegistryProcess) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


def options(registry: RegistryProcess, name: FormatName, **more: Any) -> FormatOptions:
    settings = {"schema.registry.url": registry.url, **more.pop("settings", {})}
    return FormatOptions(name, registry=settings, **more)


def decoder(plan: FormatPlan) -> FieldDecoder:
    return FieldDecoder(pickle.loads(pickle.dumps(plan)))


def binary(*values: bytes | None) -> pa.Array:
    return pa.array(values, pa.binary())


def place(topic: str, headers: Any = None) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE, headers)


def test_several_writers_are_resolved_to_the_latest(
    registry: RegistryProcess, client: SchemaRegistryClient
) -> None:
    old, new = (AvroSerializer(client, json.dumps(each)) for each in (OLD, NEW))
    values = [
        old({"id": 1}, place("a")),
        None,
        new({"id": 2**40, "note": "n"}, place("a")),
        old({"id": 3}, place("a")),
        b"",
        b"\0\0\0\0",
        b"\x07",
        b"\0\x7f\xff\xff\xff\x02",
        old({"id": 4}, place("a"))[:-1],
    ]
    plan = plan_format(options(registry, FormatName.AVRO), "value", ("a",))
    assert plan.type == pa.struct([("id", pa.int64()), ("note", pa.string())])
    found = decoder(plan).decode(binary(*values))
    assert found.values.to_pylist() == [
        {"id": 1, "note": None}, None, {"id": 2**40, "note": "n"}, {"id": 3, "note": None}, *[None] * 5
    ]  # fmt: skip
    assert found.errors.keys() == {4, 5, 6, 7, 8}
    assert found.errors[4] == "there are no bytes where the magic byte is expected"
    assert found.errors[6] == "the magic byte is 7; it is 0 before an id, 1 before a guid"
    assert found.errors[7].startswith("schema 2147483647: ")
    assert found.errors[8] == "it ends within a field of its schema"
    # A part of an array as well.
    assert (
        decoder(plan).decode(binary(*values).slice(2, 2)).values.to_pylist() == found.values.to_pylist()[2:4]
    )


def test_ids_in_headers(registry: RegistryProcess, client: SchemaRegistryClient) -> None:
    serializer = AvroSerializer(
        client, json.dumps(NEW), conf={"schema.id.serializer": header_schema_id_serializer}
    )
    headers: list[Any] = []
    data = serializer({"id": 7, "note": None}, place("in-headers", headers))
    ((name, guid),) = headers
    assert name == "__value_schema_id"
    payload = AvroSerializer(client, json.dumps(NEW))({"id": 8, "note": None}, place("in-headers"))
    column = pa.array(
        [
            [{"key": "a", "value": b"x"}, {"key": name, "value": guid}],
            None,
            [{"key": name, "value": guid}],
            [{"key": name, "value": b"\1short"}],
            [{"key": name, "value": None}],
        ],
        HEADERS,
    )
    values = binary(data, payload, None, data, data)
    either = decoder(plan_format(options(registry, FormatName.AVRO), "value", ("in-headers",))).decode(
        values, column
    )
    assert [row and row["id"] for row in either.values.to_pylist()] == [7, 8, None, None, None]
    assert either.errors[3].startswith("the header __value_schema_id: 6 bytes end before the schema's guid")
    only = decoder(
        plan_format(options(registry, FormatName.AVRO, id=IdPlace.HEADER), "value", ("in-headers",))
    ).decode(values, column)
    assert only.errors[1] == "it has no header __value_schema_id, where its schema's id is expected"
    assert only.values[0].as_py() == {"id": 7, "note": None}
    in_payload = plan_format(options(registry, FormatName.AVRO, id=IdPlace.PAYLOAD), "value", ("in-headers",))
    assert not in_payload.options.needs_headers
    guid_first = decoder(in_payload).decode(binary(guid + data, guid + data))
    assert [row["id"] for row in guid_first.values.to_pylist()] == [7, 7]


def test_json_schema(registry: RegistryProcess, client: SchemaRegistryClient) -> None:
    serializer = JSONSerializer(json.dumps(PERSON), client)
    values = binary(
        serializer({"name": "ada", "age": 36}, place("p")), serializer({"name": "bob"}, place("p")), b"{}"
    )
    plan = plan_format(options(registry, FormatName.JSON_SCHEMA), "value", ("p",))
    found = decoder(plan).decode(values)
    assert found.values.to_pylist() == [{"name": "ada", "age": 36}, {"name": "bob", "age": None}, None]
    assert list(found.errors) == [2]
    avro = AvroSerializer(client, json.dumps(OLD))({"id": 1}, place("other"))
    assert "it is one of AVRO, where JSON is expected" in decoder(plan).decode(binary(avro)).errors[0]


def test_protobuf(registry: RegistryProcess, client: SchemaRegistryClient) -> None:
    serializer = ProtobufSerializer(wrappers_pb2.Int64Value, client, {"use.deprecated.format": False})
    values = binary(serializer(wrappers_pb2.Int64Value(value=5), place("w")), b"\0\0\0\0\1")
    plan = plan_format(
        options(registry, FormatName.PROTOBUF, message="google.protobuf.Int64Value"), "value", ("w",)
    )
    assert plan.type == pa.struct([("value", pa.int64())])
    found = decoder(plan).decode(values)
    assert found.values.to_pylist() == [{"value": 5}, None] and list(found.errors) == [1]
    other = decoder(
        plan_format(
            options(registry, FormatName.PROTOBUF, message="google.protobuf.StringValue"), "value", ("w",)
        )
    ).decode(values)
    assert other.errors[0] == (
        "it is a message google.protobuf.Int64Value, where google.protobuf.StringValue is expected"
    )
    inner = 'syntax = "proto3"; package a; message In { int32 n = 1; }'
    client.register_schema("in", Schema(inner, "PROTOBUF"))
    text = (
        'syntax = "proto3"; import "in.proto"; import "google/protobuf/timestamp.proto";'
        " message Out { a.In one = 1; google.protobuf.Timestamp at = 2; message Deep { int32 d = 1; } }"
    )
    id_ = client.register_schema(
        "out-value", Schema(text, "PROTOBUF", [SchemaReference("in.proto", "in", 1)])
    )
    prefix = b"\0" + id_.to_bytes(4, "big")
    at = timestamp_pb2.Timestamp(seconds=5)
    out = b"\x0a\x02\x08\x07\x12" + bytes([at.ByteSize()]) + at.SerializeToString()
    plan = plan_format(options(registry, FormatName.PROTOBUF), "value", ("out",))
    found = decoder(plan).decode(
        binary(
            prefix + b"\0" + out,
            prefix + b"\x02\x00" + out,
            prefix + b"\x04\x00\x00\x08\x01",
            prefix + b"\x02\x0a",
        )
    )
    assert [row and row["one"] for row in found.values.to_pylist()] == [{"n": 7}, {"n": 7}, None, None]
    assert found.errors == {
        2: "it is a message Out.Deep, where Out is expected",
        3: "its schema has no message at the path [5]",
    }


def test_without_a_registry() -> None:
    avro = plan_format(FormatOptions(FormatName.AVRO, schema=json.dumps(OLD).encode()), "value", ("a", "b"))
    assert decoder(avro).decode(binary(b"\x0e")).values.to_pylist() == [{"id": 7}]
    text = plan_format(FormatOptions(FormatName.TEXT), "key", ())
    found = decoder(text).decode(binary("é".encode(), b"\xff", None))
    assert found.values.to_pylist() == ["é", None, None] and list(found.errors) == [1]
    plain = plan_format(FormatOptions(), "key", ())
    assert decoder(plain).decode(binary(b"\xff")).values.to_pylist() == [b"\xff"]


@pytest.mark.parametrize(
    ("given", "topics", "said"),
    [
        ({}, ("none-there",), "the registry has no schema of the subject none-there-value: Subject"),
        (
            {},
            ("a", "b"),
            r"the option value.subject, or value.schema, is needed where there are several topics",
        ),
        ({"subject": "p-value"}, (), "the subject p-value has schemas of JSON, and value.format is avro"),
        ({"schema": b"{"}, (), "the schema of values cannot be used: the schema is no JSON"),
        ({"schema": b'["int", "int", "string"]'}, (), "the schema of values cannot be used: two members"),
        (
            {"settings": {"schema.registry.wait.ms": "soon"}},
            (),
            "the option schema.registry.wait.ms has the value",
        ),
        ({"settings": {"schema.registry.basic.auth.user.info": "x"}}, (), "basic.auth.user.info"),
    ],
)
def test_what_cannot_be_planned(
    registry: RegistryProcess, client: SchemaRegistryClient, given: Any, topics: Any, said: str
) -> None:
    JSONSerializer(json.dumps(PERSON), client)({"name": "x"}, place("p"))
    if "settings" in given:
        given = {**given, "subject": "p-value"}
    with pytest.raises(OptionError, match=said):
        plan_format(options(registry, FormatName.AVRO, **given), "value", topics)


def test_a_registry_that_is_away_is_waited_for() -> None:
    """No record is in error because of it; in the end the task fails."""
    away = [True]

    def give(asked: Any) -> tuple[int, object]:
        if away[0]:
            return 503, {}
        return 200, {"id": 7, "schema": json.dumps(OLD), "guid": ""}

    slept: list[float] = []
    now = [0.0]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds
        away[0] = len(slept) < 3

    with scripted_registry(give) as scripted:
        settings = {
            "schema.registry.url": scripted.url,
            "schema.registry.max.retries": "0",
            "schema.registry.wait.ms": "5000",
        }
        plan = plan_format(
            FormatOptions(FormatName.AVRO, schema=json.dumps(OLD).encode(), registry=settings), "value", ()
        )
        made = FieldDecoder(plan, RegistrySchemas(settings, sleep=sleep, clock=lambda: now[0]))
        found = made.decode(binary(b"\0\0\0\0\x07\x0e"))
        assert found.errors == {} and found.values.to_pylist() == [{"id": 7}]
        assert slept == [1.0, 1.0, 1.0]

        def sleep_only(seconds: float) -> None:
            now[0] += seconds

        away[0] = True
        never = FieldDecoder(plan, RegistrySchemas(settings, sleep=sleep_only, clock=lambda: now[0]))
        with pytest.raises(SchemaProviderError, match="answers 503"):
            never.decode(binary(b"\0\0\0\0\x07\x0e"))


BOMB = json.dumps(
    [
        *(
            {
                "type": "record",
                "name": f"B{n}",
                "fields": [{"name": x, "type": f"B{n - 1}" if n else "int"} for x in "ab"],
            }
            for n in range(30)
        )
    ]
)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (BOMB, "the schema has .* fields, those of repeated types counted each time; at most 5000"),
        ('{"type":"array","items":"null"}', "an array of items that take no bytes"),
        (
            '{"type":"record","name":"R","fields":[{"name":"n","type":["null","R"]}]}',
            "R has itself within it",
        ),
        ('{"type":"array","items":' * 300 + '"int"' + "}" * 300, "nested too deep|recursion"),
        ('"nothing"', "the type nothing is not defined"),
    ],
)
def test_schemas_that_are_bombs(schema: str, said: str) -> None:
    """As the reader's schema, and as one that records name."""
    with pytest.raises(OptionError, match=said):
        plan_format(FormatOptions(FormatName.AVRO, schema=schema.encode()), "value", ())

    with scripted_registry(lambda asked: (200, {"id": 7, "schema": schema, "guid": ""})) as scripted:
        settings = {"schema.registry.url": scripted.url}
        plan = plan_format(
            FormatOptions(FormatName.AVRO, schema=json.dumps(OLD).encode(), registry=settings), "value", ()
        )
        found = FieldDecoder(plan).decode(binary(b"\0\0\0\0\x07\x0e", b"\0\0\0\0\x07\x0e"))
    import re

    assert found.errors.keys() == {0, 1} and re.search(said, found.errors[0])


# Written here, read by Confluent's


def test_what_is_encoded_is_read_by_confluent_s(
    registry: RegistryProcess, client: SchemaRegistryClient
) -> None:
    type_ = pa.struct([("id", pa.int64()), ("name", pa.string()), ("tags", pa.list_(pa.string()))])
    rows = pa.array(
        [{"id": 1, "name": "a", "tags": ["x"]}, None, {"id": None, "name": "longer", "tags": []}], type_
    )
    wanted = [{"id": 1, "name": "a", "tags": ["x"]}, None, {"id": None, "name": "longer", "tags": []}]
    for name, read in (
        (FormatName.AVRO, AvroDeserializer(client, conf=DUAL)),
        (FormatName.JSON_SCHEMA, JSONDeserializer(None, schema_registry_client=client, conf=DUAL)),
    ):
        for where in (IdPlace.PAYLOAD, IdPlace.HEADER):
            how = encoding(options(registry, name, id=where), type_, f"made-{name.value}-value")
            found = pickle.loads(pickle.dumps(how)).encode(rows)
            assert found.errors == {} and found.values.type == pa.binary()
            headers = [how.header] if how.header is not None else []
            assert bool(headers) == (where is IdPlace.HEADER)
            got = [one and read(one, place("t", headers)) for one in found.values.to_pylist()]
            assert got == wanted
        plan = plan_format(options(registry, name, subject=f"made-{name.value}-value"), "value", ())
        again = encoding(options(registry, name), type_, f"made-{name.value}-value").encode(rows)
        assert decoder(plan).decode(again.values).values.to_pylist() == rows.to_pylist()


def test_protobuf_is_read_by_confluent_s(registry: RegistryProcess, client: SchemaRegistryClient) -> None:
    wrapper = 'syntax = "proto3"; package google.protobuf; message Int64Value { int64 value = 1; }'
    type_ = pa.struct([("value", pa.int64())])
    how = encoding(options(registry, FormatName.PROTOBUF, schema=wrapper.encode()), type_, "pb-value")
    found = how.encode(pa.array([{"value": 5}, {"value": None}], type_))
    read = ProtobufDeserializer(wrappers_pb2.Int64Value, {"use.deprecated.format": False})
    assert [read(one, place("pb")).value for one in found.values.to_pylist()] == [5, 0]
    derived = pa.struct(
        [
            ("id", pa.int64()),
            ("at", pa.timestamp("us", "UTC")),
            ("l", pa.list_(type_)),
            ("m", pa.map_(pa.string(), type_)),
        ]
    )
    how = encoding(options(registry, FormatName.PROTOBUF), derived, "derived-value")
    rows = [{"id": 1, "at": None, "l": [{"value": 2}], "m": [("k", {"value": 3})]}]
    made = how.encode(pa.array(rows, derived))
    assert made.errors == {}
    plan = plan_format(options(registry, FormatName.PROTOBUF, subject="derived-value"), "value", ())
    assert decoder(plan).decode(made.values).values.to_pylist() == rows


def test_rows_that_cannot_be_written_are_errors_of_their_own(registry: RegistryProcess) -> None:
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}).encode()
    type_ = pa.struct([("id", pa.int64())])
    how = encoding(options(registry, FormatName.AVRO, schema=schema), type_, "strict-value")
    rows = [{"id": None if number % 40 == 7 else number} for number in range(200)]
    rows[50] = None
    found = how.encode(pa.array(rows, type_))
    assert found.errors == {
        number: "id is null, which its schema does not have" for number in range(200) if number % 40 == 7
    }
    assert [one is None for one in found.values.to_pylist()] == [
        number == 50 or number % 40 == 7 for number in range(200)
    ]


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("name", "given", "type_", "said"),
    [
        (
            FormatName.TEXT,
            {},
            pa.struct([("a", pa.int32())]),
            "values cannot be written as text: the column is struct",
        ),
        (FormatName.BYTES, {}, pa.int32(), "bytes are binary or string"),
        (
            FormatName.AVRO,
            {"schema": b'"int"'},
            pa.string(),
            "the column value is string, and its schema has int",
        ),
        (FormatName.AVRO, {}, pa.struct([("a b", pa.int32())]), "the column 'a b' has no name of Avro"),
        (FormatName.PROTOBUF, {}, pa.int32(), "a message of Protobuf has fields"),
        (
            FormatName.AVRO,
            {"settings": {"schema.registry.auto.register.schemas": "false"}},
            pa.int32(),
            "the registry",
        ),
        (FormatName.AVRO, {"schema": b'{"type":"x"}'}, pa.int32(), "cannot be written as avro"),
    ],
)
def test_what_cannot_be_encoded(
    registry: RegistryProcess, name: FormatName, given: Any, type_: Any, said: str
) -> None:
    with pytest.raises(OptionError, match=said):
        encoding(options(registry, name, **given), type_, f"never-{len(str(given))}-value")
