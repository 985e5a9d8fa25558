"""The words and signs of a condition."""

import re
from typing import Final, NamedTuple

from leafcuttr_sdk.conditions.errors import ConditionError

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.]))
      | (?P<word>[A-Za-z_][\w-]*)
      | (?P<sign>==|!=|<=|>=|!~|[<>~().\[\]])
      | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """`kind` is `text`, `number`, `word`, `sign` or `end`."""

    kind: str
    text: str
    at: int


def tokens_of(source: str) -> list[Token]:
    """All of them, `end` last. Raises ConditionError."""
    tokens: list[Token] = []
    at = 0
    while True:
        found = _TOKEN.match(source, at)
        if found is None:
            at = len(source) - len(source[at:].lstrip())
            raise ConditionError(f"{source[at]!r} has no meaning here", at + 1, source)
        kind = str(found.lastgroup)
        tokens.append(Token(kind, found[kind], found.start(kind)))
        if kind == "end":
            return tokens
        at = found.end()


def unquoted(text: str) -> str:
    """A text without its quotes. A backslash before anything but the quote or a backslash stays: regular expressions
    need theirs once only."""
    quote = text[0]
    return re.sub(rf"\\([\\{quote}])", r"\1", text[1:-1])
