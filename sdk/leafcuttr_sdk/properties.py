"""The syntax of a Java properties file, in which Kafka has its settings. It knows no setting.

Source: the description of `java.util.Properties.load`. A key ends at the first `=`, `:` or white space that
is not escaped; a line that ends in an odd number of backslashes goes on in the next one; `#` and `!` begin a
comment line.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from leafcuttr_sdk._described import described

_BLANKS: Final = " \t\f"
_KEY: Final = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_LETTERS: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


@described
class Property(NamedTuple):
    """One key and value, and the number of the line (from 1) that it begins on."""

    key: str
    value: str
    line: int


def parse_properties(text: str) -> list[Property]:
    """Every property of the text in order; a key may come twice."""
    return [_split(line, number) for line, number in _logical_lines(text)]


def _logical_lines(text: str) -> Iterator[tuple[str, int]]:
    pending, began = "", 0
    for number, raw in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        line = raw.lstrip(_BLANKS)
        if not pending:
            if not line or line[0] in "#!":
                continue
            began = number
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        yield pending + line, began
        pending = ""
    if pending:
        yield pending, began


def _split(line: str, number: int) -> Property:
    match = _KEY.match(line)
    assert match is not None  # every part of the pattern may be empty
    return Property(_unescape(match[1]), _unescape(line[match.end() :]), number)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(lambda m: chr(int(m[1][1:], 16)) if len(m[1]) == 5 else _LETTERS.get(m[1], m[1]), text)
