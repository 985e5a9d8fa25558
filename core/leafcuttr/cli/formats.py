"""The record formats that `--format` can name: the ones that are always there, and a registry for more.

The contract is `leafcuttr_sdk.formats`. `known_formats` is where formats of plugins are to be added; a command opens
what it needs with `opened`. Nothing here knows of files or brokers.
"""

import base64
import binascii
import contextlib
import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn, TypeVar

import click

from leafcuttr_sdk.formats import FormatCodec, FormatError, Place, RecordFormat

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*\Z")
F = TypeVar("F", bound=Callable[..., Any])


class Formats:
    """Record formats by name, in the order in which they were added."""

    def __init__(self, formats: Sequence[RecordFormat] = ()) -> None:
        self._by_name: dict[str, RecordFormat] = {}
        for one in formats:
            self.add(one)

    def add(self, added: RecordFormat) -> None:
        """Raises ValueError for a name that is taken or that cannot be typed after `--format`."""
        if not _NAME.match(added.name):
            raise ValueError(f"{added.name!r} cannot name a format: lower case letters, digits, - and _")
        if added.name in self._by_name:
            raise ValueError(f"there is a format {added.name} already")
        self._by_name[added.name] = added

    def get(self, name: str) -> RecordFormat:
        """Raises FormatError, which names the nearest, for a name that is not known."""
        found = self._by_name.get(name)
        if found is None:
            near = difflib.get_close_matches(name, self._by_name, 1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(self._by_name)}"
            raise FormatError(f"no format {name!r}: {hint}")
        return found

    def __iter__(self) -> Iterator[RecordFormat]:
        return iter(self._by_name.values())


class TextFormat:
    """Bytes as text, exactly: in UTF-8 what is not text survives both ways."""

    name = "text"
    summary = "the text itself; bytes that are none pass as they are"
    options: Mapping[str, str] = {"encoding": "any that Python knows [default: utf-8]"}
    json_text = False

    def __init__(self) -> None:
        self._encoding = "utf-8"

    def open(self, options: Mapping[str, str]) -> FormatCodec:
        opened = TextFormat()
        opened._encoding = options.get("encoding", opened._encoding)
        try:
            "".encode(opened._encoding, "surrogateescape")
        except (LookupError, ValueError):
            raise FormatError(f"encoding={opened._encoding}: Python knows no such text encoding") from None
        return opened

    def encode(self, text: str, place: Place) -> bytes:
        try:
            return text.encode(self._encoding, "surrogateescape")
        except UnicodeError as error:
            raise FormatError(str(error)) from None

    def decode(self, data: bytes, place: Place) -> str:
        try:
            return data.decode(self._encoding, "surrogateescape")
        except UnicodeError as error:
            raise FormatError(str(error)) from None

    def close(self) -> None:
        """Holds nothing."""


class JsonFormat:
    """A JSON document, stored as it was written: a number keeps its digits, an object the order of its members."""

    name = "json"
    summary = "one JSON document, checked on its way in and out"
    options: Mapping[str, str] = {}
    json_text = True

    def open(self, options: Mapping[str, str]) -> FormatCodec:
        return self

    def encode(self, text: str, place: Place) -> bytes:
        _check_json(text)
        try:
            return text.strip().encode()
        except UnicodeEncodeError:
            raise FormatError("the text is not UTF-8") from None

    def decode(self, data: bytes, place: Place) -> str:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise FormatError(f"no JSON: byte {error.start} is not UTF-8") from None
        _check_json(text)
        # A line end in a document stands between two tokens, never within one.
        return re.sub(r"[\r\n]+[ \t]*", "", text.strip())

    def close(self) -> None:
        """Holds nothing."""


class _BytesFormat:
    """What `hex` and `base64` share: any bytes, written in a few letters."""

    options: Mapping[str, str] = {}
    json_text = False

    def open(self, options: Mapping[str, str]) -> FormatCodec:
        return self

    def close(self) -> None:
        """Holds nothing."""

    def encode(self, text: str, place: Place) -> bytes:
        raise NotImplementedError

    def decode(self, data: bytes, place: Place) -> str:
        raise NotImplementedError


class HexFormat(_BytesFormat):
    """Two digits a byte; space between bytes and a `0x` before them are taken too."""

    name = "hex"
    summary = "two hexadecimal digits a byte"

    def encode(self, text: str, place: Place) -> bytes:
        digits = text.strip().removeprefix("0x").removeprefix("0X")
        try:
            return bytes.fromhex(digits)
        except ValueError:
            raise FormatError(f"{_cut(digits)} is not pairs of hexadecimal digits") from None

    def decode(self, data: bytes, place: Place) -> str:
        return data.hex()


class Base64Format(_BytesFormat):
    """RFC 4648 with padding; its URL-safe letters are taken too."""

    name = "base64"
    summary = "base64 (RFC 4648) with padding"

    def encode(self, text: str, place: Place) -> bytes:
        try:
            return base64.b64decode(text.strip().translate(_STANDARD_LETTERS), validate=True)
        except (binascii.Error, ValueError):
            raise FormatError(f"{_cut(text)} is not base64") from None

    def decode(self, data: bytes, place: Place) -> str:
        return base64.b64encode(data).decode("ascii")


_STANDARD_LETTERS: Final = str.maketrans("-_", "+/")


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


_JSON: Final = json.JSONDecoder(parse_constant=_refuse)


def _check_json(text: str) -> None:
    """Raises FormatError, with the column, for text that is not one JSON document."""
    try:
        _JSON.decode(text)
    except json.JSONDecodeError as error:
        where = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno} column {error.colno}"
        raise FormatError(f"no JSON: {error.msg} at {where}") from None
    except RecursionError:
        raise FormatError("no JSON that can be read here: it is nested too deeply") from None
    except ValueError as error:
        raise FormatError(f"no JSON: {error}") from None


def _cut(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


def known_formats() -> Formats:
    """The formats of this installation."""
    return Formats([TextFormat(), JsonFormat(), HexFormat(), Base64Format()])


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [one.name for one in known_formats() if one.name.startswith(incomplete)]


def format_options(function: F) -> F:
    """`--format`, `--key-format` and `--format-option`."""
    options = [
        click.option(
            "--format",
            "value_format",
            default="text",
            show_default=True,
            metavar="NAME",
            shell_complete=_complete,
            help="How the bytes of values are written as text: "
            + "; ".join(f"{one.name}: {one.summary}" for one in known_formats())
            + ".",
        ),
        click.option(
            "--key-format",
            metavar="NAME",
            shell_complete=_complete,
            help="The same for keys.  [default: text]",
        ),
        click.option(
            "--format-option",
            "format_settings",
            multiple=True,
            metavar="NAME=VALUE",
            help="An option of the formats, as encoding=latin-1 for text; may be repeated.",
        ),
    ]
    for option in reversed(options):
        function = option(function)
    return function


@contextlib.contextmanager
def opened(
    value_format: str, key_format: str | None, settings: Sequence[str]
) -> Iterator[tuple[FormatCodec, FormatCodec]]:
    """The codecs for keys and for values. Raises click.UsageError for what the user named wrongly."""
    given: dict[str, str] = {}
    for item in settings:
        name, equals, value = item.partition("=")
        if not equals:
            raise click.UsageError(f"--format-option {item}: expected NAME=VALUE")
        given[name] = value
    known = known_formats()
    with contextlib.ExitStack() as stack:
        try:
            formats = [known.get(key_format or "text"), known.get(value_format)]
            for name in given:
                if not any(name in one.options for one in formats):
                    names = sorted({option for one in formats for option in one.options})
                    raise FormatError(f"no option {name!r} here: there are {', '.join(names) or 'none'}")
            codecs = []
            for one in formats:
                codec = one.open({name: value for name, value in given.items() if name in one.options})
                stack.callback(codec.close)
                codecs.append(codec)
        except FormatError as error:
            raise click.UsageError(f"--format: {error}") from None
        yield codecs[0], codecs[1]
