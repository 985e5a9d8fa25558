"""Regular expressions that come from clients, matched in time linear in the text, and letting others run meanwhile.

Kafka matches such patterns with RE2, which never backtracks; Python's `re` can be made to take forever, and would take
the loop with it. So this is the part of RE2's syntax that names are matched with: characters, `.`, classes (`[a-z]`,
`[^x]`, `\\d \\w \\s` and their opposites), groups (`(...)`, `(?:...)`), `|`, `* + ?` and `{n,m}`, lazy or not, `^` and
`$`. The rest of RE2 (named classes, flags, word boundaries) is refused as invalid. The whole text has to match.

A pattern becomes a nondeterministic automaton (Thompson's construction); all its states are walked at once.
"""

from collections.abc import Callable
from typing import Final

import trio

MOST_REPEATS: Final = 1000  # RE2's limit for {n,m}
MOST_STATES: Final = 1000
MOST_NESTED: Final = 100
_STEP: Final = 32
"""Characters that are read between two checkpoints of the loop."""

_Test = Callable[[str], bool]
_SPLIT: Final = 0  # goes on at both of two places
_CHAR: Final = 1
_START: Final = 2
_END: Final = 3


class InvalidPattern(ValueError):
    """The pattern is no regular expression of the syntax above, or too large."""


class Pattern:
    """A compiled pattern. Raises InvalidPattern."""

    def __init__(self, pattern: str) -> None:
        parser = _Parser(pattern)
        tree = parser.alternatives()
        if parser.at < len(pattern):
            raise InvalidPattern(f"{pattern[parser.at]!r} at {parser.at} has no partner")
        self._program = _Program()
        self._first = self._program.build(tree, _Program.MATCH)

    async def matches(self, text: str) -> bool:
        """Whether the whole text matches."""
        program = self._program
        current = program.closure([self._first], 0, len(text))
        for at, sign in enumerate(text):
            if not current:
                return False
            if at % _STEP == _STEP - 1:
                await trio.lowlevel.checkpoint()
            current = program.closure(program.after(current, sign), at + 1, len(text))
        return _Program.MATCH in current


# What the parser makes: ("char", test) | ("start",) | ("end",) | ("seq", [...]) | ("alt", [...]) | ("repeat", x, n, m)
_Node = tuple[object, ...]

_DIGITS: Final[_Test] = lambda c: "0" <= c <= "9"  # noqa: E731
_WORD: Final[_Test] = lambda c: c == "_" or (c.isascii() and c.isalnum())  # noqa: E731
_SPACE: Final[_Test] = lambda c: c in "\t\n\f\r "  # noqa: E731
_CLASSES: Final[dict[str, _Test]] = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}


class _Parser:
    """By recursive descent."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.depth = 0

    def alternatives(self) -> _Node:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise InvalidPattern("groups are nested too deeply")
        found = [self._sequence()]
        while self._take("|"):
            found.append(self._sequence())
        self.depth -= 1
        return found[0] if len(found) == 1 else ("alt", found)

    def _sequence(self) -> _Node:
        parts: list[_Node] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            parts.append(self._repeated(self._atom()))
        return ("seq", parts)

    def _repeated(self, atom: _Node) -> _Node:
        times = 0
        while (found := self._repeat()) is not None:
            times += 1
            if times > 1:
                raise InvalidPattern("a repetition cannot be repeated")
            self._take("?")  # a lazy one matches the same whole texts
            atom = ("repeat", atom, *found)
        return atom

    def _repeat(self) -> tuple[int, int] | None:
        for sign, least, most in (("*", 0, -1), ("+", 1, -1), ("?", 0, 1)):
            if self._take(sign):
                return least, most
        end = self.pattern.find("}", self.at)
        if self.at >= len(self.pattern) or self.pattern[self.at] != "{" or end < 0:
            return None
        low, comma, high = self.pattern[self.at + 1 : end].partition(",")
        if not (low.isascii() and low.isdigit()) or (high and not (high.isascii() and high.isdigit())):
            return None  # no counts: the brace stands for itself
        if len(low) > 4 or len(high) > 4 or int(low) > MOST_REPEATS or (high and int(high) > MOST_REPEATS):
            raise InvalidPattern(f"more than {MOST_REPEATS} repetitions")
        least, most = int(low), int(high) if high else (-1 if comma else int(low))
        if 0 <= most < least:
            raise InvalidPattern("a repetition has its limits the wrong way round")
        self.at = end + 1
        return least, most

    def _atom(self) -> _Node:
        sign = self._next()
        if sign == "(":
            if self._take("?") and not self._take(":"):
                raise InvalidPattern("only groups of the form (?:...) may begin with a question mark")
            inside = self.alternatives()
            if not self._take(")"):
                raise InvalidPattern("a parenthesis is not closed")
            return inside
        if sign == "[":
            return ("char", self._set())
        if sign == ".":
            return ("char", lambda c: c != "\n")
        if sign == "^":
            return ("start",)
        if sign == "$":
            return ("end",)
        if sign in "*+?":
            raise InvalidPattern(f"there is nothing for {sign!r} to repeat")
        return ("char", self._escape() if sign == "\\" else _is(sign))

    def _set(self) -> _Test:
        negated = self._take("^")
        tests: list[_Test] = []
        first = True  # a bracket that comes first stands for itself
        while first or not self._take("]"):
            if self.pattern.startswith("[:", self.at):
                raise InvalidPattern("named classes are not supported")
            low, test = self._member()
            ranges = (
                self.pattern[self.at : self.at + 1] == "-" and self.pattern[self.at + 1 : self.at + 2] != "]"
            )
            if ranges and low:
                self.at += 1
                high, _ = self._member()
                if high < low:
                    raise InvalidPattern(f"the range {low}-{high} has its limits the wrong way round")
                test = _between(low, high)
            tests.append(test)
            first = False
        return (lambda c: not any(t(c) for t in tests)) if negated else (lambda c: any(t(c) for t in tests))

    def _member(self) -> tuple[str, _Test]:
        """One character of a set, "" if it is a class; and its test."""
        sign = self._next()
        if sign != "\\":
            return sign, _is(sign)
        test = self._escape()
        escaped = self.pattern[self.at - 1]
        return "" if escaped.lower() in _CLASSES else _CONTROLS.get(escaped, escaped), test

    def _escape(self) -> _Test:
        sign = self._next()
        if sign.lower() in _CLASSES:
            test = _CLASSES[sign.lower()]
            return test if sign.islower() else lambda c: not test(c)
        if sign in _CONTROLS:
            return _is(_CONTROLS[sign])
        if sign.isascii() and sign.isalnum():
            raise InvalidPattern(f"\\{sign} is not supported")
        return _is(sign)

    def _next(self) -> str:
        if self.at >= len(self.pattern):
            raise InvalidPattern("the pattern ends too early")
        self.at += 1
        return self.pattern[self.at - 1]

    def _take(self, sign: str) -> bool:
        if self.pattern.startswith(sign, self.at):
            self.at += 1
            return True
        return False


def _is(sign: str) -> _Test:
    return lambda c: c == sign


def _between(low: str, high: str) -> _Test:
    return lambda c: low <= c <= high


class _Program:
    """The automaton: each state is (kind, test, next, other next)."""

    MATCH: Final = 0

    def __init__(self) -> None:
        self._states: list[tuple[int, _Test | None, int, int]] = [(_SPLIT, None, -1, -1)]
        self._steps = 0

    def build(self, node: _Node, then: int) -> int:
        """The state at which `node` begins, if what follows it begins at `then`."""
        kind = node[0]
        self._steps += 1
        if self._steps > 10 * MOST_STATES:
            raise InvalidPattern("the pattern is too large")
        if kind == "char":
            return self._add(_CHAR, node[1], then)  # type: ignore[arg-type]
        if kind in ("start", "end"):
            return self._add(_START if kind == "start" else _END, None, then)
        if kind == "seq":
            for part in reversed(node[1]):  # type: ignore[call-overload]
                then = self.build(part, then)
            return then
        if kind == "alt":
            first, *rest = [self.build(part, then) for part in node[1]]  # type: ignore[attr-defined]
            for each in rest:
                first = self._add(_SPLIT, None, first, each)
            return first
        _, inside, least, most = node
        assert isinstance(inside, tuple) and isinstance(least, int) and isinstance(most, int)
        if most < 0:
            again = self._add(_SPLIT, None, then)
            start = self.build(inside, again)
            self._states[again] = (_SPLIT, None, start, then)
            then = again
        for _ in range(max(most - least, 0)):
            then = self._add(_SPLIT, None, self.build(inside, then), then)
        for _ in range(least):
            then = self.build(inside, then)
        return then

    def after(self, current: set[int], sign: str) -> list[int]:
        """The states behind one more character."""
        return [
            following
            for kind, test, following, _ in map(self._states.__getitem__, current)
            if kind == _CHAR and test is not None and test(sign)
        ]

    def closure(self, states: list[int], at: int, end: int) -> set[int]:
        """All states that can be reached from these without a character."""
        seen: set[int] = set()
        while states:
            state = states.pop()
            if state < 0 or state in seen:
                continue
            seen.add(state)
            kind, _, following, other = self._states[state]
            if kind == _SPLIT:
                states += [following, other]
            elif (kind == _START and at == 0) or (kind == _END and at == end):
                states.append(following)
        return seen

    def _add(self, kind: int, test: _Test | None, following: int, other: int = -1) -> int:
        if len(self._states) >= MOST_STATES:
            raise InvalidPattern("the pattern is too large")
        self._states.append((kind, test, following, other))
        return len(self._states) - 1
