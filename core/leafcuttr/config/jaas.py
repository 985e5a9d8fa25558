"""JAAS entries as Kafka's settings and files have them, as far as they say something here: the module and its options.

An entry is `Module flag option=value option="value";`, a file has sections `Name { entry ... };`. Comments are those of
Java.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"""(?P<space>(?:\s+|//[^\n]*|\#[^\n]*|/\*.*?\*/)+)
    |"(?P<quoted>(?:[^"\\]|\\.)*)"
    |(?P<sign>[{};=])
    |(?P<word>[^\s{};="]+)""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


class JaasError(ValueError):
    """The text is no JAAS; one line that says what was expected. No value of the text is in it: it may be secret."""


@dataclass(frozen=True)
class JaasEntry:
    module: str
    options: Mapping[str, str]

    def is_of(self, module: str) -> bool:
        """Whether its module has this name, in whichever package."""
        return self.module.rpartition(".")[2] == module

    @cached_property  # of each connection, when users change
    def users(self) -> dict[str, str]:
        """The `user_<name>="password"` of Kafka's PlainLoginModule."""
        return {
            name.removeprefix("user_"): value
            for name, value in self.options.items()
            if name.startswith("user_")
        }


class _Token(NamedTuple):
    text: str
    is_sign: bool
    is_quoted: bool = False

    @property
    def shown(self) -> str:
        """For messages: what is in quotation marks may be a secret."""
        return "in quotation marks" if self.is_quoted else self.text[:60]


def parse_entry(text: str) -> JaasEntry:
    """The one entry of a setting `sasl.jaas.config`. Raises JaasError."""
    tokens = list(_tokens(text))
    entry, at = _entry(tokens, 0)
    if at != len(tokens):
        raise JaasError("one entry is expected, and more follows behind its ;")
    return entry


def parse_file(text: str) -> dict[str, list[JaasEntry]]:
    """The entries of a file, by section. Raises JaasError."""
    tokens, at = list(_tokens(text)), 0
    found: dict[str, list[JaasEntry]] = {}
    while at < len(tokens):
        name, shown = tokens[at].text, f"the section {tokens[at].shown}"
        at = _sign(tokens, at + 1, "{", shown)
        entries: list[JaasEntry] = []
        while at < len(tokens) and tokens[at] != _Token("}", True):
            entry, at = _entry(tokens, at)
            entries.append(entry)
        at = _sign(tokens, at, "}", shown)
        at = _sign(tokens, at, ";", shown)
        found[name] = entries
    return found


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise JaasError("a quotation mark has no other")
        at = found.end()
        if found["quoted"] is not None:
            yield _Token(_ESCAPED.sub(r"\1", found["quoted"]), False, True)
        elif found["sign"]:
            yield _Token(found["sign"], True)
        elif found["word"]:
            yield _Token(found["word"], False)


def _entry(tokens: list[_Token], at: int) -> tuple[JaasEntry, int]:
    words = [token for token in tokens[at : at + 2] if not token.is_sign]
    if len(words) < 2 or words[1].text.lower() not in ("required", "requisite", "sufficient", "optional"):
        raise JaasError("an entry begins with a module and a word such as required")
    at += 2
    options: dict[str, str] = {}
    while at < len(tokens) and not tokens[at].is_sign:
        name, shown = tokens[at].text, f"the option {tokens[at].shown}"
        at = _sign(tokens, at + 1, "=", shown)
        if at >= len(tokens) or tokens[at].is_sign:
            raise JaasError(f"{shown} has no value")
        options[name] = tokens[at].text
        at += 1
    return JaasEntry(words[0].text, options), _sign(tokens, at, ";", f"the entry of {words[0].shown}")


def _sign(tokens: list[_Token], at: int, sign: str, what: str) -> int:
    if at >= len(tokens) or tokens[at] != _Token(sign, True):
        raise JaasError(f"{what} lacks {sign}")
    return at + 1
