"""Requests and answers as plain dictionaries, in any version, by the definitions that `kio` carries.

Only the shapes come from `kio` (dataclasses generated from Kafka's own message definitions); the bytes are
written and read here, because a scenario must also be able to say what a typed class refuses: null where
null is not allowed, numbers out of range of their meaning. Nothing of LeafCuttr's codec may be used here.

Values: integers for every number, time and error code (times in milliseconds), `str`, `bytes`, `bool`,
lists, dictionaries; a uuid is its usual text. A field that a version lacks is left out of what is sent,
so that one dictionary serves all versions; a name that no version knows is an error of the scenario.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from datetime import timedelta
from functools import cache
from pkgutil import resolve_name
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin

from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType

Kind = Literal["request", "response"]
Body = Mapping[str, Any]

API_KEYS: dict[str, int] = {name: key for key, name in api_key_map.items()}
NUMBERS = {
    "int8": ">b",
    "int16": ">h",
    "int32": ">i",
    "int64": ">q",
    "uint16": ">H",
    "float64": ">d",
    "error_code": ">h",
    "timedelta_i32": ">i",
    "timedelta_i64": ">q",
    "datetime_i64": ">q",
    "bool": ">?",
}
# Fields that Kafka's own serializer writes as nullable or that hold a time as -1 keep their plain number.
ZERO_UUID = str(uuid.UUID(int=0))


class AnswerError(Exception):
    """An answer's bytes do not fit the definition of its version."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One field of one version: how its bytes lie."""

    name: str
    kind: str  # a key of NUMBERS, "string", "bytes", "records", "uuid" or "struct"
    struct: type | None
    array: bool
    nullable: bool
    tag: int | None
    default: Any


@cache
def entity(api: str, version: int, kind: Kind) -> type:
    """The `kio` class of an API's request or response in one version."""
    where = schema_name_map[api][version]
    path = where[EntityType.request] if kind == "request" else where[EntityType.response]
    found: type = resolve_name(path)
    return found


def versions(api: str) -> range:
    """Every version of the API that `kio` has a definition of."""
    known = sorted(schema_name_map[api])
    return range(known[0], known[-1] + 1)


@cache
def known_names(api: str, kind: Kind) -> frozenset[str]:
    """Every field name of any version of the message."""
    names: set[str] = set()

    def visit(cls: type) -> None:
        for slot in slots(cls):
            names.add(slot.name)
            if slot.struct is not None:
                visit(slot.struct)

    for version in versions(api):
        visit(entity(api, version, kind))
    return frozenset(names)


@cache
def slots(cls: type) -> tuple[Slot, ...]:
    return tuple(_slot(field) for field in fields(cls))


def _slot(field: Field[Any]) -> Slot:
    def bare(annotation: Any) -> tuple[Any, bool]:
        if get_origin(annotation) is UnionType:
            inner = [arg for arg in get_args(annotation) if arg is not NoneType]
            return inner[0], True
        return annotation, False

    inner, nullable = bare(field.type)
    array = get_origin(inner) is tuple
    if array:
        inner, _ = bare(get_args(inner)[0])
    nested = inner if is_dataclass(inner) and isinstance(inner, type) else None
    kind = "struct" if nested else field.metadata["kafka_type"]
    default = _plain(field.default) if field.default is not MISSING else MISSING
    return Slot(field.name, kind, nested, array, nullable, field.metadata.get("tag"), default)


def _plain(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, bool | str | bytes | float | NoneType):
        return value
    return int(value)


def default_of(slot: Slot) -> Any:
    """What stands for a field that the scenario did not name."""
    if slot.default is not MISSING:
        return slot.default
    if slot.array:
        return []
    if slot.struct is not None:
        return {}
    if slot.nullable and slot.kind != "uuid":
        return None
    return {"string": "", "bytes": b"", "records": b"", "uuid": ZERO_UUID, "bool": False}.get(slot.kind, 0)


def encode(api: str, version: int, body: Body, kind: Kind = "request") -> bytes:
    """The body's bytes, without header. Raises KeyError for a name that no version of the API knows."""
    _check_names(body, known_names(api, kind))
    cls = entity(api, version, kind)
    out = bytearray()
    _write_struct(out, cls, body, bool(getattr(cls, "__flexible__")))  # noqa: B009 (mypy: no such attribute)
    return bytes(out)


def _check_names(value: Any, known: frozenset[str]) -> None:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if name not in known:
                raise KeyError(f"{name!r} is in no version of this message; it has {sorted(known)}")
            _check_names(inner, known)
    elif isinstance(value, list | tuple):
        for item in value:
            _check_names(item, known)


def _write_struct(out: bytearray, cls: type, body: Body, flexible: bool) -> None:
    tagged: list[tuple[int, bytes]] = []
    for slot in slots(cls):
        value = body.get(slot.name, default_of(slot))
        if slot.tag is None:
            _write_value(out, slot, value, flexible)
        elif value != default_of(slot):
            inner = bytearray()
            _write_value(inner, slot, value, flexible)
            tagged.append((slot.tag, bytes(inner)))
    if flexible:
        _write_unsigned(out, len(tagged))
        for tag, data in sorted(tagged):
            _write_unsigned(out, tag)
            _write_unsigned(out, len(data))
            out += data


def _write_value(out: bytearray, slot: Slot, value: Any, flexible: bool) -> None:
    if not slot.array:
        if slot.struct is not None and slot.nullable:
            out += struct.pack(">b", -1 if value is None else 1)
        if value is not None or slot.struct is None:
            _write_one(out, slot, value, flexible)
        return
    _write_length(out, None if value is None else len(value), ">i", flexible)
    for item in value or ():
        _write_one(out, slot, item, flexible)


def _write_one(out: bytearray, slot: Slot, value: Any, flexible: bool) -> None:
    if slot.struct is not None:
        _write_struct(out, slot.struct, value, flexible)
    elif slot.kind in NUMBERS:
        out += struct.pack(NUMBERS[slot.kind], value)
    elif slot.kind == "uuid":
        out += uuid.UUID(value).bytes
    else:
        data = value.encode() if isinstance(value, str) else value
        width = ">h" if slot.kind == "string" else ">i"
        _write_length(out, None if data is None else len(data), width, flexible)
        out += data or b""


def _write_length(out: bytearray, length: int | None, width: str, flexible: bool) -> None:
    if flexible:
        _write_unsigned(out, 0 if length is None else length + 1)
    else:
        out += struct.pack(width, -1 if length is None else length)


def _write_unsigned(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def decode(api: str, version: int, data: bytes, kind: Kind = "response") -> dict[str, Any]:
    """The body as a dictionary. Raises AnswerError when the bytes do not fit exactly."""
    cls = entity(api, version, kind)
    source = _Source(data, bool(getattr(cls, "__flexible__")))  # noqa: B009
    body = source.struct(cls)
    if source.at != len(data):
        raise AnswerError(f"{api} v{version}: {len(data) - source.at} bytes after the end of the message")
    return body


def decode_header(api: str, version: int, frame: bytes) -> tuple[dict[str, Any], bytes]:
    """The header of an answer, with the tags that are in it, and the bytes of the body. Raises AnswerError.

    Of an API whose versions `kio` does not know the header is that of the nearest one.
    """
    known = versions(api)
    body = entity(api, min(max(version, known[0]), known[-1]), "response")
    cls: type = getattr(body, "__header_schema__")  # noqa: B009
    source = _Source(frame, bool(getattr(cls, "__flexible__")))  # noqa: B009
    header = source.struct(cls)
    return header, frame[source.at :]


class _Source:
    def __init__(self, data: bytes, flexible: bool) -> None:
        self.data, self.at, self.flexible = data, 0, flexible

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise AnswerError(f"{size} bytes wanted at {self.at}, {len(self.data)} there are")
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, form: str) -> Any:
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def length(self, width: str) -> int | None:
        size = self.unsigned() - 1 if self.flexible else int(self.number(width))
        return None if size < 0 else size

    def struct(self, cls: type) -> dict[str, Any]:
        body: dict[str, Any] = {}
        by_tag: dict[int, Slot] = {}
        for slot in slots(cls):
            if slot.tag is None:
                body[slot.name] = self.value(slot)
            else:
                by_tag[slot.tag] = slot
                body[slot.name] = default_of(slot)
        for _ in range(self.unsigned() if self.flexible else 0):
            tag, size = self.unsigned(), self.unsigned()
            end = self.at + size
            if tag in by_tag:
                body[by_tag[tag].name] = self.value(by_tag[tag])
            else:
                body[f"unknown tag {tag}"] = self.take(size).hex()
            if self.at != end:
                raise AnswerError(f"tag {tag} of {cls.__name__} does not end where it says")
        return body

    def value(self, slot: Slot) -> Any:
        if slot.array:
            count = self.length(">i")
            if count is not None and count > len(self.data):
                raise AnswerError(f"{slot.name} claims {count} items")
            return None if count is None else [self.one(slot) for _ in range(count)]
        if slot.struct is not None and slot.nullable and self.number(">b") < 0:
            return None
        return self.one(slot)

    def one(self, slot: Slot) -> Any:
        if slot.struct is not None:
            return self.struct(slot.struct)
        if slot.kind in NUMBERS:
            return self.number(NUMBERS[slot.kind])
        if slot.kind == "uuid":
            return str(uuid.UUID(bytes=self.take(16)))
        size = self.length(">h" if slot.kind == "string" else ">i")
        if size is None:
            return None
        return self.take(size).decode() if slot.kind == "string" else self.take(size)
