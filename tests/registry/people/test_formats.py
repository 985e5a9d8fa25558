"""The formats of `consume` and `produce`: what they write is what Confluent's serializers write, and the other way."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from leafcuttr_registry.people import bounded
from leafcuttr_registry.people.formats import SchemaRecordFormat, record_formats
from leafcuttr_sdk.formats import FormatError, Place
from leafcuttr_sdk.schema_framing import guid_prefix, id_prefix
from leafcuttr_sdk.testing import check_record_format
from support import librdkafka
from support.registry import RegistryProcess

FORMATS = {each.name: each for each in record_formats()}
AVRO = (
    '{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},'
    '{"name":"note","type":["null","string"]}]}'
)
JSON = '{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}'
PROTOBUF = 'syntax = "proto3";\nmessage A {\n  int32 n = 1;\n  message B {\n    string s = 1;\n  }\n}\nmessage C {}\n'


def leafcuttr(*words: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("leafcuttr")), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def opened(registry: RegistryProcess, name: str, **options: str) -> Any:
    given = {key.replace("_", "-"): value for key, value in options.items()}
    return FORMATS[name].open({"registry": registry.url, **given})


def value(topic: str) -> Place:
    return Place(topic, "value")


@pytest.mark.parametrize("format", FORMATS.values(), ids=FORMATS)
def test_they_keep_their_contract(format: SchemaRecordFormat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAFCUTTR_SCHEMA_REGISTRY_URL", "http://127.0.0.1:1")
    check_record_format(format)


def test_avro_is_read_and_written_as_confluent_does(registry: RegistryProcess) -> None:
    client = SchemaRegistryClient({"url": registry.url})
    context = SerializationContext("fmt-avro", MessageField.VALUE)
    theirs = AvroSerializer(client, AVRO)({"id": 7, "note": "hi"}, context)
    assert theirs is not None
    codec = opened(registry, "avro")
    text = codec.decode(theirs, value("fmt-avro"))
    assert json.loads(text) == {"id": 7, "note": {"string": "hi"}} and "\n" not in text
    ours = codec.encode(text, value("fmt-avro"))
    assert ours == theirs
    assert AvroDeserializer(client)(ours, context) == {"id": 7, "note": "hi"}
    assert opened(registry, "schema").decode(theirs, value("fmt-avro")) == text


def test_json_schema(registry: RegistryProcess) -> None:
    id = registry.ask.register("fmt-json-value", JSON, schemaType="JSON")["id"]
    codec = opened(registry, "jsonschema")
    data = codec.encode('{"id": 1}', value("fmt-json"))
    assert data[:5] == b"\0" + id.to_bytes(4, "big") and json.loads(data[5:]) == {"id": 1}
    assert codec.decode(data, value("fmt-json")) == '{"id":1}'
    with pytest.raises(FormatError, match="id"):
        codec.encode("{}", value("fmt-json"))


@pytest.mark.long
def test_a_schema_that_some_values_would_keep_busy_for_ever(
    registry: RegistryProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded, "DEADLINE_S", 0.5)
    text = '{"type":"string","pattern":"^(a+)+$"}'
    id = registry.ask.register("fmt-busy-value", text, schemaType="JSON")["id"]
    reading, writing = opened(registry, "schema"), opened(registry, "jsonschema")
    assert reading.decode(id_prefix(id) + b'"aa"', value("fmt-busy")) == '"aa"'
    assert writing.encode('"aa"', value("fmt-busy")) == id_prefix(id) + b'"aa"'
    busy = '"' + "a" * 60 + '!"'
    for call, given in ((reading.decode, id_prefix(id) + busy.encode()), (writing.encode, busy)):
        with pytest.raises(FormatError, match=r"takes longer than 0\.5 s"):
            call(given, value("fmt-busy"))


def test_protobuf_by_the_name_of_its_message(registry: RegistryProcess) -> None:
    registry.ask.register("fmt-proto-value", PROTOBUF, schemaType="PROTOBUF")
    first, nested = opened(registry, "protobuf"), opened(registry, "protobuf", message="A.B")
    assert first.encode('{"n":5}', value("fmt-proto"))[5:] == b"\0\x08\5"
    data = nested.encode('{"s":"a"}', value("fmt-proto"))
    assert data[5:] == b"\4\0\0\x0a\1a"
    assert json.loads(first.decode(data, value("fmt-proto"))) == {"s": "a"}
    with pytest.raises(FormatError, match=r"the schema has no message D; it has A, A\.B, C"):
        opened(registry, "protobuf", message="D").encode("{}", value("fmt-proto"))


def test_a_schema_that_a_header_names(registry: RegistryProcess) -> None:
    answer = registry.ask.register("fmt-header-value", AVRO, schemaType="AVRO")
    id, guid = id_prefix(answer["id"]), guid_prefix(UUID(answer["guid"]))
    registry.ask.register("fmt-header-proto", PROTOBUF, schemaType="PROTOBUF")
    proto = id_prefix(registry.ask.get("/subjects/fmt-header-proto/versions/1")["id"])
    codec, all_types = opened(registry, "avro"), opened(registry, "schema")

    def read(data: bytes, *headers: tuple[str, bytes | None], part: Any = "value") -> str:
        text: str = all_types.decode(data, Place("fmt-header", part, headers))
        if not any(proto in (data[:5], value) for _, value in headers):
            assert codec.decode(data, Place("fmt-header", part, headers)) == text
        return text

    seven = '{"id":7,"note":null}'
    assert read(b"\x0e\0", ("__value_schema_id", guid)) == seven
    assert read(b"\x0e\0", ("__value_schema_id", id)) == seven
    assert read(b"\x0e\0", ("__value_schema_id", b"?"), ("a", b""), ("__value_schema_id", guid)) == seven
    assert read(b"\x0e\0", ("__key_schema_id", guid), part="key") == seven
    assert read(id + b"\x0e\0", ("__key_schema_id", b"?")) == seven
    assert read(b"\4\0\0\x0a\1a", ("__value_schema_id", proto)) == '{"s":"a"}'
    for header in (b"", None, b"?", guid + b"x", id + b"x"):
        with pytest.raises(FormatError, match="the header __value_schema_id "):
            read(id + b"\x0e\0", ("__value_schema_id", header))
    # What is written does not depend on headers.
    assert codec.encode(seven, Place("fmt-header", "value", (("a", b""),))) == id + b"\x0e\0"
    codec._writer = None  # nor is the registry asked anew for others
    assert codec.encode(seven, Place("fmt-header", "value", (("b", None),))) == id + b"\x0e\0"


@pytest.mark.long
def test_confluents_serializer_with_headers_is_consumed_and_filtered(registry: RegistryProcess) -> None:
    """A condition sees what the format makes of keys and values."""
    from confluent_kafka import Producer
    from confluent_kafka.schema_registry import header_schema_id_serializer

    client, broker = SchemaRegistryClient({"url": registry.url}), registry.broker.address
    with_headers = AvroSerializer(client, AVRO, conf={"schema.id.serializer": header_schema_id_serializer})
    with_prefix = AvroSerializer(client, AVRO)
    producer = Producer({"bootstrap.servers": broker})
    for number in range(4):
        headers: list[tuple[str, Any]] = []
        context = SerializationContext("fmt-guid", MessageField.VALUE, headers)
        serialize = with_headers if number % 2 else with_prefix
        data = serialize({"id": number, "note": f"n{number}"}, context)
        assert bool(headers) is bool(number % 2)
        producer.produce("fmt-guid", data, headers=headers)
    producer.flush()
    usual = ("consume", "fmt-guid", "-b", broker, "--format", "avro", "--format-option")
    option = f"registry={registry.url}"
    ran = leafcuttr(*usual, option, "--max", "4")
    assert ran.returncode == 0, ran.stderr
    assert [json.loads(line)["id"] for line in ran.stdout.splitlines()] == [0, 1, 2, 3]
    for condition, ids in (
        ("value.id >= 2", [2, 3]),
        ('value.note.string == "n1"', [1]),
        ("value.id < 0", []),
    ):
        ran = leafcuttr(*usual, option, "--json", "--filter", condition)
        assert ran.returncode == 0, ran.stderr
        assert [json.loads(line)["value"]["id"] for line in ran.stdout.splitlines()] == ids
    (log,) = registry.broker.data.glob("fmt-guid-0/*.log")
    ran = leafcuttr("dump", str(log), "-r", "--json", "--format", "schema", "--format-option", option)
    assert [f'"id": {number}' in ran.stdout for number in range(4)] == [True] * 4


def test_which_schema_is_written_by(registry: RegistryProcess, tmp_path: Path) -> None:
    old = registry.ask.register("fmt-which-value", '"int"', schemaType="AVRO")["id"]
    latest = registry.ask.register("fmt-which-value", '"long"', schemaType="AVRO")["id"]
    file = tmp_path / "new.avsc"
    file.write_text('["null","long"]')
    place = value("fmt-which")
    assert opened(registry, "avro").encode("1", place)[:5] == b"\0" + latest.to_bytes(4, "big")
    assert opened(registry, "avro", schema_id=str(old)).encode("1", place)[:5] == b"\0" + old.to_bytes(
        4, "big"
    )
    assert opened(registry, "avro", subject="fmt-which-value").encode("1", Place("t", "key"))[5:] == b"\2"
    written = opened(registry, "avro", schema=str(file)).encode("null", place)
    assert registry.ask.get("/subjects/fmt-which-value/versions/3")["id"] == int.from_bytes(
        written[1:5], "big"
    )


@pytest.mark.parametrize(
    "name, data, said",
    [
        ("avro", b"", "no bytes"),
        ("avro", b"{}", "the magic byte is 123"),
        ("avro", b"\0\0\0\0", "4 bytes end before the schema id"),
        ("avro", b"\0\x7f\0\0\0", "Schema 2130706432 not found"),
        ("avro", b"\0json", "is of type JSON; --format schema takes all types"),
    ],
)
def test_what_is_none_is_one_line(registry: RegistryProcess, name: str, data: bytes, said: str) -> None:
    if data == b"\0json":
        data = b"\0" + registry.ask.register("fmt-none-value", "{}", schemaType="JSON")["id"].to_bytes(
            4, "big"
        )
    with pytest.raises(FormatError) as caught:
        opened(registry, name).decode(data, value("t"))
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "options, said",
    [
        ({"schema": "a", "schema-id": "1"}, "schema and schema-id exclude each other"),
        ({"schema-id": "x"}, "schema-id=x: allowed is a number"),
        ({"registry": "ftp://a"}, "'ftp://a' is no address of a schema registry"),
        ({"cafile": "/nowhere"}, "/nowhere: no certificates can be read from it"),
    ],
)
def test_options_that_cannot_be_used(options: dict[str, str], said: str) -> None:
    with pytest.raises(FormatError) as caught:
        FORMATS["avro"].open(options)
    assert said in str(caught.value)


def test_text_that_is_none(registry: RegistryProcess) -> None:
    registry.ask.register("fmt-text-value", '"int"', schemaType="AVRO")
    for text in ("", "{", "[" * 100_000, '"a"', "3000000000"):
        with pytest.raises(FormatError):
            opened(registry, "avro").encode(text, value("fmt-text"))
    with pytest.raises(FormatError, match="Subject 'nowhere-value' not found"):
        opened(registry, "avro").encode("1", value("nowhere"))


def test_records_of_a_schema_that_evolves(registry: RegistryProcess) -> None:
    """The manual's producer: a new version of the schema after every so many records, each of which is compatible."""
    broker = registry.broker.address
    ran = leafcuttr(
        *("perf", "produce", "-b", broker, "-t", "evolves", "-n", "250", "--record-size", "50"),
        *("--schema-evolution-interval", "100", "--json", "--format-option", f"registry={registry.url}"),
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["records"] == 250
    assert registry.ask.get("/subjects/evolves-value/versions") == [1, 2, 3]
    ids = [registry.ask.get(f"/subjects/evolves-value/versions/{each}")["id"] for each in (1, 2, 3)]
    values = [each.value() for each in librdkafka.read(broker, "evolves", 250)]
    assert [ids.index(int.from_bytes(each[1:5], "big")) for each in values] == [0] * 100 + [1] * 100 + [
        2
    ] * 50
    codec = opened(registry, "avro")
    first, last = (json.loads(codec.decode(values[at], value("evolves"))) for at in (0, 249))
    assert set(first) == {"payload"} and len(first["payload"]) == 50
    assert last["added_2"] == {"string": "of generation 2"} and last["added_1"] is None


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "words, said",
    [
        (("--payload-monotonic",), "--schema-evolution-interval is for --record-size and --format"),
        (("--format", "text"), "text makes no records"),
        (
            ("--format-option", "registry=http://127.0.0.1:1"),
            "no schema registry answers at http://127.0.0.1:1",
        ),
        (("--format-option", "size=x"), "size=x: allowed is a number"),
    ],
)
def test_what_cannot_evolve(words: tuple[str, ...], said: str) -> None:
    given = ("perf", "produce", "-t", "t", "-n", "10", "--schema-evolution-interval", "5", *words)
    ran = leafcuttr(*given)
    assert ran.returncode == 2 and said in ran.stderr
