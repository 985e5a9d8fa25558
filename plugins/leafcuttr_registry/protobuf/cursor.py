"""A place in the tokens of a schema, and what parsers take from it."""

from typing import Final

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.protobuf.lexer import (
    FLOAT,
    IDENTIFIER,
    INTEGER,
    STRING,
    failure,
    tokens_of,
    unquoted,
)
from leafcuttr_registry.protobuf.tree import MAX_INT32
from leafcuttr_sdk.schemas import SchemaError

MAX_DEPTH: Final = 100
"""Of values in options. Messages have protoc's limit: `messages.py`."""


class Cursor:
    """Reads tokens one by one. Its methods raise SchemaError with the line of what they did not expect."""

    __slots__ = ("_kinds", "_places", "_texts", "index", "text", "token")

    def __init__(self, text: str, budget: Budget) -> None:
        tokens = tokens_of(text, budget)
        self._kinds, self._texts, self._places = tokens.kinds, tokens.texts, tokens.places
        self.index = 0
        self.token = self._texts[0]
        """The text of the next token; empty at the end."""
        self.text = text

    @property
    def at(self) -> int:
        return self._places[self.index]

    @property
    def kind(self) -> str:
        return self._kinds[self.index]

    @property
    def after(self) -> str:
        """The token after the next one."""
        return self._texts[self.index + 1] if self.token else ""

    def fail(self, reason: str, at: int | None = None) -> SchemaError:
        return failure(self.text, self.at if at is None else at, reason)

    def expected(self, what: str) -> SchemaError:
        token = self.token
        if not token:
            return self.fail(f"the text ends where {what} is expected")
        return self.fail(f"{token[:40]} where {what} is expected")

    def take(self) -> str:
        """The next token, whatever it is."""
        token = self.token
        if token:
            self.index += 1
            self.token = self._texts[self.index]
        return token

    def accept(self, token: str) -> bool:
        """Take the token if it is the next one."""
        if self.token != token:
            return False
        self.index += 1
        self.token = self._texts[self.index]
        return True

    def expect(self, token: str) -> None:
        if self.token != token:
            raise self.expected(token)
        self.index += 1
        self.token = self._texts[self.index]

    def identifier(self, what: str) -> str:
        index = self.index
        if self._kinds[index] != IDENTIFIER:
            raise self.expected(what)
        token = self.token
        self.index = index = index + 1
        self.token = self._texts[index]
        return token

    def full_name(self, what: str) -> str:
        """Identifiers with dots between them."""
        name = self.identifier(what)
        if self.token != ".":
            return name
        parts = [name]
        while self.accept("."):
            parts.append(self.identifier(what))
        return ".".join(parts)

    def type_name(self, what: str) -> str:
        """The same, perhaps after a dot."""
        if self.accept("."):
            return "." + self.full_name(what)
        return self.full_name(what)

    def integer(self, what: str, most: int = MAX_INT32) -> int:
        """One without a sign."""
        if self._kinds[self.index] != INTEGER:
            raise self.expected(what)
        value = integer_of(self.token)
        if value > most:
            raise self.fail(f"{self.token[:40]} is too large: {what} is at most {most}")
        self.take()
        return value

    def signed(self, what: str) -> int:
        """An int32."""
        if self.accept("-"):
            return -self.integer(what, MAX_INT32 + 1)
        return self.integer(what)

    def string(self, what: str) -> bytes:
        """Strings that follow each other are one."""
        if self._kinds[self.index] != STRING:
            raise self.expected(what)
        data = unquoted(self.text, self.at, self.take())
        if self._kinds[self.index] != STRING:
            return data
        pieces = [data]
        while self._kinds[self.index] == STRING:
            pieces.append(unquoted(self.text, self.at, self.take()))
        return b"".join(pieces)

    def utf8(self, what: str) -> str:
        at = self.at
        data = self.string(what)
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise self.fail(f"{what} is not valid UTF-8", at) from None

    def number(self, what: str) -> int | float:
        """An integer or a float, without a sign."""
        if self._kinds[self.index] == FLOAT:
            return float_of(self.take())
        if self._kinds[self.index] == INTEGER:
            return integer_of(self.take())
        raise self.expected(what)


def integer_of(token: str) -> int:
    if token[0] == "0" and len(token) > 1:
        return int(token, 16) if token[1] in "xX" else int(token, 8)
    # Python refuses decimal texts of more digits than 4,300.
    return int(token) if len(token) < 400 else 1 << 1200


def float_of(token: str) -> float:
    return float(token)
