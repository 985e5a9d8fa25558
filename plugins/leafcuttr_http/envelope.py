"""The body of a produce request, from text to its raw records: `{"records": [...]}`.

A small body is parsed at once. A large one is parsed record by record, so that the caller can pause between two: the
parser of the standard library holds the interpreter for as long as one call takes, on whatever thread. It never sees
more than one record's limit at a time. Both ways give the same; a test compares them.

What the standard leaves open: of two members with the same name the last one counts, but for `records`; numbers with a
fraction or an exponent are doubles, others are exact; NaN and Infinity are not JSON.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NoReturn

from leafcuttr_http.errors import ApiError

AT_ONCE: Final = 64 * 1024
"""Characters that are parsed in one go: less than a millisecond."""

_SLACK: Final = 256 * 1024
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_WHOLE: Final = re.compile(r"-?[0-9]+")
_LONGEST_NUMBER: Final = 20
_EXACT: Final = 2.0**53
"""Up to here a double is the number that was written."""
_SCHEMA_MEMBERS: Final = frozenset({"key_schema", "key_schema_id", "value_schema", "value_schema_id"})


def _refuse(constant: str) -> NoReturn:
    raise ApiError(400, f"{constant} is not JSON.")


_DECODER: Final = json.JSONDecoder(parse_constant=_refuse)


def decode(body: bytes) -> str:
    """Raises ApiError for what is not UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise ApiError(400, f"The body is not UTF-8: byte {error.start}.") from None


def parse(text: str, where: str = "The body") -> Any:
    """One JSON document, at once. Raises ApiError."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise _no_json(error.msg, text, error.pos, where) from None
    except RecursionError:
        raise ApiError(400, f"{where} is nested too deeply.") from None
    except ValueError:
        # The one other that int() raises: see sys.set_int_max_str_digits.
        raise ApiError(400, f"{where} has a number with too many digits.") from None


def whole(value: object) -> int | None:
    """The whole number that a value is: as a number, with .0 behind it too, or as a text. None if it is none."""
    if type(value) is int:
        return value
    if type(value) is str and len(value) <= _LONGEST_NUMBER and _WHOLE.fullmatch(value):
        return int(value)
    if type(value) is float and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    return None


def at_once(text: str, schemas: dict[str, object] | None = None) -> list[object]:
    """The raw records of a small body. `schemas` gets the members that say of which schemas they are; None is a format
    without any. Raises ApiError."""
    if text.count('"records"') > 1:
        # Perhaps two members of that name, which the parser would not tell.
        return list(in_steps(text, len(text), schemas))
    document = parse(text)
    if type(document) is not dict:
        raise ApiError(422, 'The body has to be an object: {"records": [...]}.')
    for name, value in document.items():
        _check_member(name, value, schemas)
    records = document.get("records")
    if not records:
        raise _no_records()
    return records  # type: ignore[no-any-return]


def in_steps(text: str, limit: int, schemas: dict[str, object] | None = None) -> Iterator[object]:
    """The raw records of a large body, one by one. `limit` is the longest text of one, in characters; `schemas` is as
    for `at_once`. Raises ApiError, wherever it gets to what is wrong; only the end says that all of it was right."""
    reader = _Reader(text, limit)
    at = reader.skip(0)
    if text[at : at + 1] != "{":
        reader.value(at, "The body")
        raise ApiError(422, 'The body has to be an object: {"records": [...]}.')
    found = False
    at = reader.skip(at + 1)
    while text[at : at + 1] != "}":
        if text[at : at + 1] != '"':
            raise _no_json("Expecting property name enclosed in double quotes", text, at, "The body")
        name, at = reader.value(at, "The body")
        at = reader.expect(reader.skip(at), ":")
        if name == "records" and text[at : at + 1] == "[":
            if found:
                raise ApiError(422, "The body has two members 'records'.")
            at = reader.skip(at + 1)
            while text[at : at + 1] != "]":
                record, at = reader.value(at, "A record")
                found = True
                yield record
                at = reader.more(reader.skip(at), "]")
            at += 1
        else:
            value, at = reader.value(at, f"Member {name!r}")
            _check_member(name, value, schemas)
        at = reader.more(reader.skip(at), "}")
    at = reader.skip(at + 1)
    if at != len(text):
        raise _no_json("Extra data", text, at, "The body")
    if not found:
        raise _no_records()


class _Reader:
    """Reads values out of a long text, a window of it at a time."""

    def __init__(self, text: str, limit: int) -> None:
        self._text = text
        self._limit = limit
        self._window = text[: limit + _SLACK]
        self._base = 0

    def value(self, at: int, what: str) -> tuple[Any, int]:
        """The value that begins at `at`, and where it ends."""
        if at >= len(self._text):
            raise _no_json("Expecting value", self._text, at, "The body")
        end_of_window = self._base + len(self._window)
        if at < self._base or (end_of_window < len(self._text) and at > end_of_window - self._limit):
            self._base, self._window = at, self._text[at : at + self._limit + _SLACK]
        window = self._window
        cut = self._base + len(window) < len(self._text)
        try:
            value, end = _DECODER.raw_decode(window, at - self._base)
        except json.JSONDecodeError as error:
            if cut and (error.pos > len(window) - 16 or error.msg.startswith("Unterminated")):
                raise self._too_long(what) from None
            raise _no_json(error.msg, self._text, self._base + error.pos, "The body") from None
        except RecursionError:
            raise ApiError(400, f"{what} is nested too deeply.") from None
        except ValueError:
            raise ApiError(400, f"{what} has a number with too many digits.") from None
        if self._base + end - at > self._limit:
            raise self._too_long(what)
        return value, self._base + end

    def skip(self, at: int) -> int:
        """Behind white space."""
        match = _SPACE.match(self._text, at)
        return match.end() if match else at

    def expect(self, at: int, mark: str) -> int:
        if self._text[at : at + 1] != mark:
            raise _no_json(f"Expecting {mark!r} delimiter", self._text, at, "The body")
        return self.skip(at + 1)

    def more(self, at: int, end: str) -> int:
        """Behind the comma, or at the end."""
        if self._text[at : at + 1] == end:
            return at
        at = self.expect(at, ",")
        if self._text[at : at + 1] == end:
            raise _no_json("Expecting value", self._text, at, "The body")
        return at

    def _too_long(self, what: str) -> ApiError:
        return ApiError(
            413, f"{what} has more than {self._limit} characters (lc.http.proxy.max.record.bytes)."
        )


def _check_member(name: str, value: object, schemas: dict[str, object] | None) -> None:
    if name == "records":
        if type(value) is not list:
            raise ApiError(422, "'records' has to be a list.")
    elif name not in _SCHEMA_MEMBERS:
        others = "" if schemas is None else "".join(f", {each!r}" for each in sorted(_SCHEMA_MEMBERS))
        raise ApiError(422, f"The body has no member {name!r}, but 'records'{others}.")
    elif schemas is not None:
        schemas[name] = value
    elif value is not None:
        raise ApiError(422, f"{name!r} belongs to formats with a schema, which this one is not.")


def _no_records() -> ApiError:
    return ApiError(422, "The body has to have a member 'records', a list with at least one record.")


def _no_json(message: str, text: str, at: int, where: str) -> ApiError:
    line = text.count("\n", 0, at) + 1
    column = at - text.rfind("\n", 0, at)
    return ApiError(400, f"{where} is not JSON: {message} at line {line} column {column}.")
