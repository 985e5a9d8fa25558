"""The values of a record that a condition names, and how values compare. No syntax."""

import json
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, NoReturn, Protocol, TypeAlias

from leafcuttr_sdk.formats import FormatError

FIELDS: Final = ("key", "value", "headers", "topic", "partition", "offset", "timestamp")
Path: TypeAlias = tuple[str | int, ...]
Decode: TypeAlias = Callable[[Literal["key", "value"], bytes], str | None]
"""The text of a key or a value. None, or raising FormatError, makes it null."""


Document: TypeAlias = Callable[[Literal["key", "value"], bytes], Any]
"""The JSON value of a key or a value: None, bool, int, float, str, list or dict. None too for what is none."""

_UNREAD: Final = object()


class RecordFields(Protocol):
    """What a condition reads of a record: `Record` and `StoredRecord` have it. `topic`, `partition` and `offset` are
    read too where there are such attributes, and are null elsewhere."""

    @property
    def key(self) -> bytes | None:
        """Its bytes."""
        ...

    @property
    def value(self) -> bytes | None:
        """Its bytes."""
        ...

    @property
    def headers(self) -> Iterable[tuple[str, bytes | None]]:
        """Names and values; a name may come twice."""
        ...

    @property
    def timestamp(self) -> int | None:
        """Milliseconds since the Unix epoch; None if there is none."""
        ...


def utf8_text(part: Literal["key", "value"], data: bytes) -> str:
    """Bytes as text in UTF-8; what is none is kept as lone surrogates (PEP 383)."""
    return data.decode(errors="surrogateescape")


class RecordValues:
    """One record, with its texts and documents made when they are first needed."""

    __slots__ = ("_decode", "_document", "_key", "_key_text", "_value", "_value_text", "record")

    def __init__(self, record: RecordFields, decode: Decode, document: Document | None = None) -> None:
        self.record: Final = record
        self._decode = decode
        self._document = document
        self._key_text: Any = _UNREAD
        self._value_text: Any = _UNREAD
        self._key: Any = _UNREAD
        self._value: Any = _UNREAD

    def key_text(self) -> Any:
        if self._key_text is _UNREAD:
            self._key_text = self._text("key", self.record.key)
        return self._key_text

    def value_text(self) -> Any:
        if self._value_text is _UNREAD:
            self._value_text = self._text("value", self.record.value)
        return self._value_text

    def key_document(self) -> Any:
        if self._key is _UNREAD:
            key = self.record.key
            make = self._document
            self._key = _document(self.key_text()) if make is None or key is None else make("key", key)
        return self._key

    def value_document(self) -> Any:
        if self._value is _UNREAD:
            value = self.record.value
            make = self._document
            self._value = (
                _document(self.value_text()) if make is None or value is None else make("value", value)
            )
        return self._value

    def _text(self, part: Literal["key", "value"], data: bytes | None) -> str | None:
        try:
            return None if data is None else self._decode(part, data)
        except FormatError:
            return None


Read: TypeAlias = Callable[[RecordValues], Any]


def reader(field: str, path: Path, parsed: bool) -> Read:
    """What reads a field that is no header. `parsed`: a whole key or value is read as JSON."""
    if field in ("key", "value"):
        document = RecordValues.key_document if field == "key" else RecordValues.value_document
        if path:
            return lambda values: _member(document(values), path)
        if parsed:
            return document
        return RecordValues.key_text if field == "key" else RecordValues.value_text
    if field == "timestamp":
        return lambda values: values.record.timestamp
    return lambda values: getattr(values.record, field, None)


def headers_reader(wanted: str) -> Callable[[RecordValues], list[str | None]]:
    """What reads the texts of all headers of a name; one null where there is none."""

    def read(values: RecordValues) -> list[str | None]:
        return [_header(value) for name, value in values.record.headers if name == wanted] or [None]

    return read


def equal(value: Any, literal: Any) -> bool:
    """Values of different types are not."""
    if literal is None:
        return value is None
    return alike(value, literal) and bool(value == literal)


def alike(value: Any, literal: Any) -> bool:
    """Whether they are of one type: both numbers, texts, or booleans."""
    if isinstance(value, bool) or isinstance(literal, bool):
        return isinstance(value, bool) and isinstance(literal, bool)
    if isinstance(literal, str):
        return isinstance(value, str)
    return isinstance(value, int | float)


def contains(value: Any, literal: Any) -> bool:
    """A text in a text, or a literal among the elements of a list."""
    if isinstance(value, str):
        return isinstance(literal, str) and literal in value
    if not isinstance(value, list):
        return False
    elements: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
    return any(equal(one, literal) for one in elements)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_decode_json: Final = json.JSONDecoder(parse_constant=_no_constant).decode
"""`json.loads` without NaN and Infinity, which it takes and JSON (RFC 8259, 6) has not."""


def _document(text: str | None) -> Any:
    try:
        return None if text is None else _decode_json(text)
    except (ValueError, RecursionError):
        return None


def _header(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="surrogateescape")


def _member(document: Any, path: Path) -> Any:
    for step in path:
        if not isinstance(document, dict if isinstance(step, str) else list):
            return None
        inside: Any = document  # pyright: ignore[reportUnknownVariableType]
        try:
            document = inside[step]
        except LookupError:
            return None
    return document
