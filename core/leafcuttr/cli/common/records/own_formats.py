"""Our own record formats, those that are always there: `text`, `json`, `hex`, `base64`. No registry, no plugin, no
command line.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Final, NoReturn

from leafcuttr_sdk.formats import FormatCodec, FormatError, Place

NAME: Final = re.compile(r"[a-z][a-z0-9_-]*\Z")
"""What can be typed after `--format`."""


class TextFormat:
    """Bytes as text, exactly: in UTF-8 what is not text survives both ways."""

    name = "text"
    summary = "the text itself; other bytes stay as they are"
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
        # A line end in a document is between two tokens, never within one.
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
        raise FormatError("JSON that cannot be read: it is nested too deeply") from None
    except ValueError as error:
        raise FormatError(f"no JSON: {error}") from None


def _cut(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


OWN_FORMATS: Final = (TextFormat, JsonFormat, HexFormat, Base64Format)
OWN_NAMES: Final = frozenset(one.name for one in OWN_FORMATS)
"""The names that no plugin's format can have."""
