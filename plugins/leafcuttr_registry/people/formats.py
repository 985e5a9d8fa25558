"""The formats `avro`, `jsonschema`, `protobuf` and `schema` of `consume`, `produce` and `dump`: JSON on the terminal,
and in the record what Confluent's serializers write, with the id of the schema before the data.

Of records that are read a header can name the schema too, `__key_schema_id` or `__value_schema_id`: then the data have
nothing before them. `schema` takes whatever type a record's schema is of. Which schema a record is written by says an
option; without one it is the latest of the subject `<topic>-key` or `<topic>-value`.
"""

import json
from collections.abc import Iterator, Mapping
from string import ascii_uppercase
from typing import TYPE_CHECKING, Final
from uuid import UUID

from leafcuttr_registry.people.bounded import codec_of
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.formats import FormatCodec, FormatError, Place
from leafcuttr_sdk.records import Record
from leafcuttr_sdk.schema_framing import (
    FIRST_MESSAGE,
    KEY_HEADER,
    VALUE_HEADER,
    Prefix,
    id_prefix,
    indexes,
    read_indexes,
    read_prefix,
)
from leafcuttr_sdk.schemas import DataError, ParsedSchema, SchemaCodec

if TYPE_CHECKING:
    from random import Random

    from leafcuttr_registry.people.schemas import HttpSchemas

PROTOBUF: Final = "PROTOBUF"
_HEADERS: Final = {"key": KEY_HEADER, "value": VALUE_HEADER}
_OPTIONS: Final = {
    "registry": "where the registry is [default: LEAFCUTTR_SCHEMA_REGISTRY_URL, else http://localhost:8081]",
    "cafile": "certificates (PEM) that the registry's has to be signed by [default: the system's]",
    "schema": "a file with the schema to write by; it is registered first",
    "schema-id": "the id of the schema to write by [default: the latest of the subject]",
    "subject": "the subject of that schema [default: <topic>-key, <topic>-value]",
    "message": "the full name of the message to write [default: the first of the schema]",
}
_MAKING_DEFAULTS: Final = {"size": 100, "generation": 0}
_MAKING: Final = {
    "size": "letters of the payload of records that are made [default: 100]",
    "generation": "how many fields their schema has more than at first [default: 0]",
}
_DIGITS: Final = 7
_WRITING: Final = ("schema", "schema-id", "subject")


class SchemaRecordFormat:
    """A `RecordFormat`."""

    json_text = True

    def __init__(self, name: str, type: str | None, summary: str) -> None:
        self.name: Final = name
        self.summary: Final = summary
        self.options: Mapping[str, str] = (
            _OPTIONS
            if type in (None, PROTOBUF)
            else {key: _OPTIONS[key] for key in _OPTIONS if key != "message"}
        )
        self._type = type

    def open(self, options: Mapping[str, str]) -> FormatCodec:
        from leafcuttr_registry.people.client import RegistryClient
        from leafcuttr_registry.people.schemas import HttpSchemas

        if sum(name in options for name in _WRITING[:2]) > 1:
            raise FormatError("schema and schema-id exclude each other")
        given = options.get("schema-id")
        if given is not None and not given.isdecimal():
            raise FormatError(f"schema-id={given}: allowed is a number")
        try:
            client = RegistryClient(options.get("registry"), ca_file=options.get("cafile"))
        except PluginError as error:
            raise FormatError(str(error)) from None
        return SchemaRecordCodec(self._type, HttpSchemas(client), options)


class AvroRecordFormat(SchemaRecordFormat):
    """A `RecordMaker` too. Each generation of its records has a schema with one field more, which can be null."""

    def __init__(self, name: str, type: str, summary: str) -> None:
        super().__init__(name, type, summary)
        self.options = {**self.options, **_MAKING}

    def make_records(self, topic: str, options: Mapping[str, str], random: "Random") -> "Iterator[Record]":
        size, generation = (_number(options, name, default) for name, default in _MAKING_DEFAULTS.items())
        fields: list[dict[str, object]] = [{"name": "payload", "type": "string"}]
        fields += [
            {"name": f"added_{number}", "type": ["null", "string"], "default": None}
            for number in range(1, generation + 1)
        ]
        text = json.dumps({"type": "record", "name": "PerformanceRecord", "fields": fields})
        with_schema = {name: value for name, value in options.items() if name not in _MAKING}
        codec = self.open(with_schema)
        assert isinstance(codec, SchemaRecordCodec)
        place = Place(topic, "value")
        codec.register(place, text)
        values: dict[str, object] = {f"added_{number}": None for number in range(1, generation)}
        if generation:
            values[f"added_{generation}"] = {"string": f"of generation {generation}"}
        while True:
            payload = "".join(random.choices(ascii_uppercase, k=size))
            yield Record(codec.encode(json.dumps({"payload": payload, **values}), place))


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    given = options.get(name, str(default))
    if not given.isdecimal() or len(given) > _DIGITS:
        raise FormatError(f"{name}={given}: allowed is a number of at most {_DIGITS} digits")
    return int(given)


def record_formats() -> Iterator[SchemaRecordFormat]:
    """All four."""
    yield AvroRecordFormat("avro", "AVRO", "JSON; in the record Avro with the id of its schema")
    yield SchemaRecordFormat("jsonschema", "JSON", "JSON with the id of a JSON Schema before it")
    yield SchemaRecordFormat("protobuf", PROTOBUF, "JSON; in the record Protobuf with the id of its schema")
    yield SchemaRecordFormat("schema", None, "JSON; in the record what the schema of its id says")


class SchemaRecordCodec:
    """A `HeadersCodec`."""

    json_text = True
    needs_headers = True

    def __init__(self, type: str | None, schemas: "HttpSchemas", options: Mapping[str, str]) -> None:
        self._type = type
        self._schemas = schemas
        self._options = options
        self._readers: dict[tuple[int | str, tuple[int, ...]], SchemaCodec] = {}
        self._writers: dict[tuple[str, str], tuple[bytes, SchemaCodec]] = {}

    def decode(self, data: bytes, place: Place) -> str:
        try:
            schema, at = read_prefix(data) if not place.headers else _schema_of_record(data, place)
            key = str(schema) if isinstance(schema, UUID) else schema
            type, parsed = self._schemas.by_key(key)
            self._check(type, f"schema {key}")
            path = FIRST_MESSAGE
            if type == PROTOBUF:
                path, at = read_indexes(data, at)
            codec = self._readers.get((key, path))
            if codec is None:
                codec = self._readers[key, path] = codec_of(parsed, path)
            return json.dumps(codec.decode(data[at:]), ensure_ascii=False, separators=(",", ":"))
        except (DataError, PluginError) as error:
            raise FormatError(str(error)) from None

    def encode(self, text: str, place: Place) -> bytes:
        try:
            prefix, codec = self._writers.get(place[:2]) or self._writer(place)
            return prefix + codec.encode(json.loads(text))
        except (DataError, PluginError) as error:
            raise FormatError(str(error)) from None
        except (ValueError, RecursionError) as error:
            raise FormatError(f"no JSON: {error}") from None

    def register(self, place: Place, text: str) -> None:
        """From now on write by this schema, which is registered. Raises FormatError."""
        from leafcuttr_registry.people.client import subject_path

        subject = self._options.get("subject", f"{place.topic}-{place.part}")
        body = {"schema": text}
        try:
            id = self._schemas.client.post(subject_path(subject, "versions"), body)["id"]
            _, parsed = self._schemas.parsed(body, "the schema")
        except PluginError as error:
            raise FormatError(str(error)) from None
        self._writers[place[:2]] = id_prefix(id), parsed.codec()

    def close(self) -> None:
        """Holds nothing open."""

    def _check(self, type: str, what: str) -> None:
        if self._type is not None and type != self._type:
            raise FormatError(f"{what} is of type {type}; --format schema takes all types")

    def _writer(self, place: Place) -> tuple[bytes, SchemaCodec]:
        id, type, parsed = self._schema_of(place)
        self._check(type, f"schema {id}")
        prefix = id_prefix(id)
        path = FIRST_MESSAGE
        if type == PROTOBUF:
            path = self._path(parsed)
            prefix += indexes(path)
        found = self._writers[place[:2]] = prefix, codec_of(parsed, path)
        return found

    def _schema_of(self, place: Place) -> tuple[int, str, ParsedSchema]:
        from leafcuttr_registry.people.client import subject_path
        from leafcuttr_registry.people.files import body_of

        client, options = self._schemas.client, self._options
        subject = options.get("subject", f"{place.topic}-{place.part}")
        if "schema-id" in options:
            id = int(options["schema-id"])
            return id, *self._schemas.by_key(id)
        if "schema" in options:
            body = body_of(options["schema"], self._type, ())
            id = client.post(subject_path(subject, "versions"), body)["id"]
            return id, *self._schemas.parsed(body, options["schema"])
        body = client.get(subject_path(subject, "versions", "latest"))
        return body["id"], *self._schemas.parsed(body, f"subject {subject}")

    def _path(self, schema: ParsedSchema) -> tuple[int, ...]:
        """The path of indexes to the message that is named."""
        wanted = self._options.get("message")
        if wanted is None:
            return FIRST_MESSAGE
        names: list[str | None] = []
        for path in _paths(schema, ()):
            names.append(schema.message_name(path))
            if names[-1] == wanted:
                return path
        raise FormatError(f"the schema has no message {wanted}; it has {', '.join(map(str, names[:20]))}")


def _schema_of_record(data: bytes, place: Place) -> Prefix:
    """As the last header of that name says, or else the first bytes. Raises DataError."""
    name = _HEADERS[place.part]
    header = next((value for each, value in reversed(place.headers) if each == name), data)
    if header is data:
        return read_prefix(data)
    try:
        schema, end = read_prefix(header or b"")
    except DataError as error:
        raise DataError(f"the header {name} is none: {error}") from None
    if header is not None and end != len(header):
        raise DataError(f"the header {name} has {len(header)} bytes; it has {end}")
    return Prefix(schema, 0)


def _paths(schema: ParsedSchema, within: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    index = 0
    while True:
        path = (*within, index)
        try:
            schema.message_name(path)
        except DataError:
            return
        yield path
        yield from _paths(schema, path)
        index += 1
