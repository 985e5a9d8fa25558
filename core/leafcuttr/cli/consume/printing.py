"""Messages as bytes for standard output, for `consume`: fields of a line, or JSON."""

import os
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from leafcuttr.cli.common.options.moments import show_moment
from leafcuttr.cli.common.records.json_lines import Codecs, write_line
from leafcuttr_sdk.formats import FormatError

FIELDS: Final = ("topic", "partition", "offset", "timestamp", "key", "headers", "value")
Printer = Callable[[Any], bytes]


def json_printer(codecs: Codecs) -> Printer:
    """One JSON object a line; raises FormatError with the part for bytes of another format."""

    def line(message: Any) -> bytes:
        return write_line(message, codecs).encode("utf-8", "surrogateescape") + b"\n"

    return line


def line_printer(
    codecs: Codecs, fields: Sequence[str], separator: bytes, delimiter: bytes, null: bytes
) -> Printer:
    """The named fields with a separator between them, then a delimiter; `null` is printed for no key or value."""
    makers = [_maker(field, codecs, null) for field in fields]
    if len(makers) == 1:
        only = makers[0]
        return lambda message: only(message) + delimiter
    return lambda message: separator.join([make(message) for make in makers]) + delimiter


def _maker(field: str, codecs: Codecs, null: bytes) -> Printer:
    if field in ("key", "value"):
        name: Literal["key", "value"] = "key" if field == "key" else "value"
        codec, usual = codecs.of(name)
        with_headers = codecs.need_headers

        def part(message: Any) -> bytes:
            data = getattr(message, field)()
            if data is None:
                return null
            place = codecs.of_record(name, message.headers)[1] if with_headers else usual
            try:
                return codec.decode(data, place).encode("utf-8", "surrogateescape")
            except FormatError as error:
                raise FormatError(f"{field}: {error}") from None

        return part
    return {"timestamp": _timestamp, "headers": _headers}.get(field) or (
        lambda message: str(getattr(message, field)()).encode()
    )


def _timestamp(message: Any) -> bytes:
    kind, timestamp = message.timestamp()
    return ((show_moment(timestamp) if kind else None) or "-").encode()


def _headers(message: Any) -> bytes:
    return b",".join(os.fsencode(name) + b"=" + (value or b"") for name, value in message.headers() or ())
