"""Whether a regular expression is found in a text, by an automaton: the time grows with the text's length only.

Theory of operation. The tree of `regular` becomes a nondeterministic automaton in Thompson's way. Each character or
class of the tree is a position. Between two characters of the text the automaton is in a set of positions, those that
may have matched the character before, which is an int with a bit for each. Bit 0 stands for the start, which is in
every set, because a match may begin anywhere.

A step takes the next character: from the set follow the positions that can come next, under the assertions that hold at
that place (`reach`); those of them that match the character are the new set. Sets become states of a deterministic
automaton, with their next states by character, when they are first met, as RE2 does it. States are forgotten when there
are too many of them; a step without them costs one look-up for each eight positions. So no text and no expression make
more than `MOST_PARTS` / 8 look-ups a character.

What holds at a place depends on the characters around it only: on the kind of the one before (`_START`...) and of the
one behind (`_END`...), which together are the context.
"""

import re
from typing import Final, NamedTuple

from leafcuttr_sdk.conditions.regular import At, Choice, One, Regular, Repetition, Sequence, Tree

_START, _NEWLINE, _WORD, _OTHER = range(4)
"""Kinds of what is before a place."""
_END, _LAST_NEWLINE, _NEXT_NEWLINE, _NEXT_WORD, _NEXT_OTHER = range(5)
"""Kinds of what is behind it. `$` holds before a newline that is the last character."""
_NEXT: Final = 5
_CONTEXTS: Final = 4 * _NEXT
_MOST_TRANSITIONS: Final = 20_000
_MOST_CHARACTERS: Final = 65_536


class _Node(NamedTuple):
    """Of the nondeterministic automaton: a position, an assertion, or neither; the nodes behind it are in `out`."""

    bit: int
    assertion: str
    out: list[int]


class _State:
    """A set of positions, and the kind of the character before it."""

    __slots__ = ("kind", "next", "positions")

    def __init__(self, positions: int, kind: int) -> None:
        self.positions = positions
        self.kind = kind
        self.next: dict[str, _State] = {}


_MATCHED: Final = _State(-1, _OTHER)
_DEAD: Final = _State(0, _OTHER)


class Automaton:
    """One regular expression. Threads may share it: at worst they make a state twice."""

    def __init__(self, regular: Regular) -> None:
        self._flags: Final = regular.compiled.flags & (re.ASCII | re.IGNORECASE | re.DOTALL)
        self._multiline: Final = bool(regular.compiled.flags & re.MULTILINE)
        self._anchored: Final = regular.at_beginning
        self._nodes: list[_Node] = [_Node(0, "", [])]  # the accepting one
        self._after: list[int] = [0]  # by position: the node behind it
        self._literals: dict[str, int] = {}
        self._classes: dict[str, int] = {}
        self._after[0] = self._build(regular.tree, 0)
        self._accept: Final = 1 << len(self._after)
        self._width: Final = len(self._after) // 8 + 1
        self._has_assertions: Final = any(node.assertion for node in self._nodes)
        self._reached: list[dict[int, int]] = [{} for _ in range(_CONTEXTS)]
        self._tests: Final = [
            (re.compile(source, self._flags).match, mask) for source, mask in self._classes.items()
        ]
        self._is_word: Final = re.compile(r"\w", self._flags).match
        self._masks: dict[str, tuple[int, int]] = {}
        self._states: dict[tuple[int, int], _State] = {}
        self._transitions = 0

    def is_in(self, text: str) -> bool:
        """Whether it is found anywhere in a text of at least one character."""
        state = self._state(1, _START)
        ends = text.endswith("\n")
        for char in text[:-1] if ends else text:
            following = state.next.get(char)
            if following is None:
                following = self._step(state, char)
            if following is _MATCHED or following is _DEAD:
                return following is _MATCHED
            state = following
        positions, kind = state.positions, state.kind
        if ends:
            reached = self._reach(positions, kind, _LAST_NEWLINE)
            if reached & self._accept:
                return True
            positions, kind = reached & self._mask("\n")[0] | (not self._anchored), _NEWLINE
        return bool(self._reach(positions, kind, _END) & self._accept)

    def _state(self, positions: int, kind: int) -> _State:
        found = self._states.get((positions, kind))
        if found is None:
            found = self._states[positions, kind] = _State(positions, kind)
        return found

    def _step(self, state: _State, char: str) -> _State:
        mask, behind = self._mask(char)
        reached = self._reach(state.positions, state.kind, behind)
        if reached & self._accept:
            following = _MATCHED
        else:
            positions = reached & mask | (not self._anchored)
            following = self._state(positions, behind - 1) if positions else _DEAD
        self._transitions += 1
        if self._transitions > _MOST_TRANSITIONS:
            self._transitions = 0
            self._states = {}
            state.next = {}
            following.next = {}
        state.next[char] = following
        return following

    def _mask(self, char: str) -> tuple[int, int]:
        """The positions that a character matches, and its kind as what is behind a place. The kinds before are one
        less: `_NEXT_WORD` - 1 is `_WORD`."""
        found = self._masks.get(char)
        if found is None:
            mask = self._literals.get(char, 0)
            for test, positions in self._tests:
                if test(char):
                    mask |= positions
            kind = _NEXT_NEWLINE if char == "\n" else _NEXT_WORD if self._is_word(char) else _NEXT_OTHER
            found = mask, kind
            if len(self._masks) < _MOST_CHARACTERS:
                self._masks[char] = found
        return found

    def _reach(self, positions: int, before: int, behind: int) -> int:
        """What can come next, `_accept` among it if the expression may end here."""
        context = before * _NEXT + behind if self._has_assertions else 0
        table = self._reached[context]
        reached = 0
        for index, byte in enumerate(positions.to_bytes(self._width, "little")):
            if byte:
                key = index << 8 | byte
                found = table.get(key)
                if found is None:
                    found = table[key] = self._follow(index, byte, context)
                reached |= found
        return reached

    def _follow(self, index: int, byte: int, context: int) -> int:
        waiting = [self._after[index * 8 + bit] for bit in range(8) if byte >> bit & 1]
        seen, reached = set(waiting), 0
        while waiting:
            number = waiting.pop()
            node = self._nodes[number]
            if not number:
                reached |= self._accept
            elif node.bit:
                reached |= 1 << node.bit
            elif not node.assertion or self._holds(node.assertion, *divmod(context, _NEXT)):
                new = [one for one in node.out if one not in seen]
                seen.update(new)
                waiting += new
        return reached

    def _holds(self, assertion: str, before: int, behind: int) -> bool:
        match assertion:
            case "^":
                return before == _START or (self._multiline and before == _NEWLINE)
            case "\\A":
                return before == _START
            case "$":
                return behind in (_END, _LAST_NEWLINE) or (self._multiline and behind == _NEXT_NEWLINE)
            case "\\Z":
                return behind == _END
            case _:
                return ((before == _WORD) != (behind == _NEXT_WORD)) == (assertion == "\\b")

    def _build(self, tree: Tree, out: int) -> int:
        """The node at which the tree begins, with `out` behind it."""
        match tree:
            case One(source):
                bit = len(self._after)
                self._after.append(out)
                literal = tree.is_literal and not self._flags & re.IGNORECASE
                by_source = self._literals if literal else self._classes
                by_source[source] = by_source.get(source, 0) | 1 << bit
                return self._node(bit, "", out)
            case At(kind):
                return self._node(0, kind, out)
            case Sequence(parts):
                for part in reversed(parts):
                    out = self._build(part, out)
                return out
            case Choice(parts):
                return self._node(0, "", *(self._build(part, out) for part in parts))
            case Repetition(body, low, high):
                first = out
                if high is None:
                    first = self._node(0, "", out)
                    self._nodes[first].out.append(self._build(body, first))
                for _ in range((high or 0) - low):
                    first = self._node(0, "", self._build(body, first), out)
                for _ in range(low):
                    first = self._build(body, first)
                return first

    def _node(self, bit: int, assertion: str, *out: int) -> int:
        self._nodes.append(_Node(bit, assertion, list(out)))
        return len(self._nodes) - 1
