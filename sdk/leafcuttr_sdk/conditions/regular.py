"""Regular expressions: Python's syntax but for what cannot be searched in a bounded time, as a tree of parts.

Python's own parser says first whether it is a regular expression at all. The tree says how many parts it has, and in
how many ways Python's engine may try to match it (`Ways`). Searching is not here: see `searching`.

Not taken are backreferences, lookahead and lookbehind, atomic groups, possessive repetitions and conditions, which no
automaton has, and flags but `a`, `i`, `m` and `s` at the beginning.
"""

import math
import re
import warnings
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, TypeAlias

MOST_CHARACTERS: Final = 1000
MOST_PARTS: Final = 250
"""A character or a class is one part; a repetition has the parts of its body as often as it may repeat them."""
_DEEPEST: Final = 50
_MANY: Final = 1e9
_MOST_REPEATED: Final = 20

_FLAGS: Final = re.compile(r"\(\?([aims]+)\)")
_GROUP: Final = re.compile(r"\((?:\?:|\?P<\w+>|(?!\?))")
_COUNT: Final = re.compile(r"\{(?!\})([0-9]*)(,?)([0-9]*)\}")
_ESCAPE: Final = re.compile(
    r"\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|N\{[^}]+\}|0[0-7]{0,2}|[1-3][0-7][0-7]|[^0-9])",
    re.DOTALL,
)
_SET: Final = re.compile(r"\[\^?\]?(?:[^\]\\]|\\.)*\]", re.DOTALL)

Assertion: TypeAlias = Literal["^", "$", "\\A", "\\Z", "\\b", "\\B"]
_ASSERTIONS: Final[dict[str, Assertion]] = {"\\A": "\\A", "\\Z": "\\Z", "\\b": "\\b", "\\B": "\\B"}


class Ways(NamedTuple):
    """What Python's engine may do for a part from one place of a text of n characters on, at most: try `steps`
    characters, in `number` ways, both times n to the power of `degree`. `math.inf` where a repetition without an end
    repeats what can be matched in several ways."""

    number: float
    steps: float
    degree: int


class One(NamedTuple):
    """One character: a literal one, or a class, as it is written."""

    source: str

    @property
    def is_literal(self) -> bool:
        """Whether it is the character itself."""
        return self.source[0] not in "\\[."


class At(NamedTuple):
    """A place between two characters."""

    kind: Assertion


class Sequence(NamedTuple):
    parts: "tuple[Tree, ...]"


class Choice(NamedTuple):
    parts: "tuple[Tree, ...]"


class Repetition(NamedTuple):
    """`high` is None where there is no end."""

    body: "Tree"
    low: int
    high: int | None


Tree: TypeAlias = "One | At | Sequence | Choice | Repetition"


class Regular(NamedTuple):
    """A regular expression that can be searched in a bounded time."""

    compiled: re.Pattern[str]
    tree: Tree

    @property
    def literal(self) -> str:
        """The longest text that must be in every text in which it is found; empty if none is known."""
        if self.compiled.flags & re.IGNORECASE or not isinstance(self.tree, Sequence):
            return ""
        found, run = "", ""
        for part in self.tree.parts:
            run = run + part.source if isinstance(part, One) and part.is_literal else ""
            found = max(found, run, key=len)
        return found

    @property
    def at_beginning(self) -> bool:
        """Whether it matches at the beginning of a text only."""
        first = self.tree.parts[0] if isinstance(self.tree, Sequence) and self.tree.parts else self.tree
        return isinstance(first, At) and (
            first.kind == "\\A" or (first.kind == "^" and not self.compiled.flags & re.MULTILINE)
        )


def parse_regular(source: str) -> Regular:
    """Raises ValueError, one line, for what is no regular expression, and for one that is not taken."""
    if len(source) > MOST_CHARACTERS:
        raise ValueError(
            f"a regular expression of {len(source)} characters, and it may have {MOST_CHARACTERS}"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what a later version of Python may read otherwise
            compiled = re.compile(source)
    except (re.error, OverflowError) as error:
        raise ValueError(f"no regular expression: {error}") from None
    except RecursionError:
        raise ValueError("a regular expression that is nested too deeply") from None
    tree = _Parser(source).parse()
    parts = parts_of(tree)
    if parts > MOST_PARTS:
        raise ValueError(
            f"a regular expression of more than {MOST_PARTS} parts: a character or a class is one, and a repetition "
            "has those of its body as often as it may repeat them"
        )
    return Regular(compiled, tree)


def parts_of(tree: Tree) -> int:
    match tree:
        case Sequence(parts) | Choice(parts):
            return 1 + sum(map(parts_of, parts))
        case Repetition(body, low, high):
            return 1 + parts_of(body) * (low + 1 if high is None else max(high, 1))
        case _:
            return 1


def ways_of(tree: Tree) -> Ways:
    match tree:
        case Sequence(parts):
            return _one_after_another(map(ways_of, parts))
        case Choice(parts):
            found = [ways_of(part) for part in parts]
            count, steps = sum(one.number for one in found), 1 + sum(one.steps for one in found)
            return _ways(count, steps, max(one.degree for one in found))
        case Repetition(body, low, high):
            inner = ways_of(body)
            if high is None:
                plain = inner.number == 1 and not inner.degree and not _may_be_empty(body)
                return Ways(1, inner.steps * (low + 1), 1) if plain else Ways(math.inf, math.inf, 1)
            if inner.number > 1 and high > _MOST_REPEATED:
                return Ways(math.inf, math.inf, 1)
            count, steps, degree = _one_after_another([inner] * high)
            return _ways(count * (high - low + 1), steps, degree)
        case _:
            return Ways(1, 1, 0)


def _one_after_another(parts: Iterable[Ways]) -> Ways:
    found = Ways(1, 0, 0)
    for part in parts:
        steps = found.steps + found.number * part.steps
        found = _ways(found.number * part.number, steps, found.degree + part.degree)
    return found


def _ways(count: float, steps: float, degree: int) -> Ways:
    return Ways(math.inf, math.inf, degree) if max(count, steps) > _MANY else Ways(count, steps, degree)


def _may_be_empty(tree: Tree) -> bool:
    match tree:
        case Sequence(parts):
            return all(map(_may_be_empty, parts))
        case Choice(parts):
            return any(map(_may_be_empty, parts))
        case Repetition(body, low, _):
            return low == 0 or _may_be_empty(body)
        case _:
            return isinstance(tree, At)


class _Parser:
    """Of what Python has taken already, so that anything else here is a construct that is not taken."""

    def __init__(self, source: str) -> None:
        self._source = source
        flags = _FLAGS.match(source)
        self._at = flags.end() if flags else 0
        self._depth = 0

    def parse(self) -> Tree:
        found = self._choice()
        if self._at < len(self._source):
            raise self._not_taken()
        return found

    def _not_taken(self) -> ValueError:
        shown = self._source[self._at : self._at + 3]
        return ValueError(
            f"a regular expression with {shown!r} at position {self._at}: neither backreferences, lookahead, "
            "lookbehind, atomic groups, possessive repetitions nor such flags are taken, for their time has no bound"
        )

    def _choice(self) -> Tree:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ValueError(f"a regular expression with more than {_DEEPEST} groups within one another")
        parts = [self._sequence()]
        while self._source.startswith("|", self._at):
            self._at += 1
            parts.append(self._sequence())
        self._depth -= 1
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def _sequence(self) -> Tree:
        parts: list[Tree] = []
        while self._at < len(self._source) and self._source[self._at] not in "|)":
            parts.append(self._repeated(self._one()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeated(self, body: Tree) -> Tree:
        source = self._source
        char = source[self._at : self._at + 1]
        count = _COUNT.match(source, self._at) if char == "{" else None
        if count is not None:
            low = int(count[1] or 0)
            high = int(count[3] or -1) if count[2] else low
            found = Repetition(body, low, None if high < 0 else high)
            self._at = count.end()
        elif char and char in "*+?":
            found = Repetition(body, char == "+", 1 if char == "?" else None)
            self._at += 1
        else:
            return body
        if source.startswith("+", self._at):
            raise self._not_taken()
        self._at += source.startswith("?", self._at)  # as few as possible: what is found is the same
        return found

    def _one(self) -> Tree:
        source, at = self._source, self._at
        char = source[at]
        if char == "(":
            group = _GROUP.match(source, at)
            if group is None:
                raise self._not_taken()
            self._at = group.end()
            inner = self._choice()
            self._at += 1
            return inner
        if char in "^$":
            self._at += 1
            return At("^" if char == "^" else "$")
        assertion = _ASSERTIONS.get(source[at : at + 2])
        if assertion is not None:
            self._at += 2
            return At(assertion)
        whole = _SET.match(source, at) if char == "[" else _ESCAPE.match(source, at) if char == "\\" else None
        if whole is None and char in "[\\":
            raise self._not_taken()
        self._at = at + 1 if whole is None else whole.end()
        return One(source[at : self._at])
