"""Questions and their answers: is every value of a conjunction a value of a node, and if not, why not.

Answers are generators that ask further questions, run by one loop: the depth of schemas is no depth of Python's stack.
A question that comes up again while it is being answered is about a smaller part of the value, because no schema
applies to a value only after itself (`graph.check`): it may be taken as answered with yes. What was answered on the
strength of that is certain when the question itself turns out that way.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from leafcuttr_registry.budget import Budget
from leafcuttr_registry.json_schema import text
from leafcuttr_registry.json_schema.compare import model
from leafcuttr_registry.json_schema.compare.model import Nodes
from leafcuttr_registry.json_schema.graph import Graph, Node

STEPS: Final = 2_000_000
WHOLE: Final = "whole"
MAX_REASONS: Final = 100
"""Reasons of one answer: there may be as many as there are paths in a schema, which are very many."""


class Reason(NamedTuple):
    """A reason, its path counted from the question's schema."""

    type: str
    path: tuple[str, ...]
    old: Any
    new: Any
    detail: str = ""
    """What the sentence of the rule ends with."""


Reasons: TypeAlias = tuple[Reason, ...]


class Question(NamedTuple):
    """Is every value of all of `old` one of `new`?"""

    old: Nodes
    new: Node
    part: str = WHOLE
    """Which keywords of `new`: all, its `own`, or one union."""
    fills: bool = False
    """Whether the reader fills defaults in where members are missing."""
    split: frozenset[tuple[int, str]] = frozenset()
    """The unions of the old side of which one alternative was chosen, and is in `old`."""
    deeper: bool = False
    """Whether it is about a part of the value of the question that asks it."""

    @property
    def key(self) -> Any:
        return frozenset(map(id, self.old)), id(self.new), self.part, self.fills, self.split


Asking: TypeAlias = Generator[Question, Reasons, Reasons]
NOTHING: Final[Reasons] = ()
ABSENT: Final = object()
"""Stands for what a schema has not, beside null, which it may have."""


@dataclass(slots=True)
class _Frame:
    key: Any
    answer: Asking
    depth: int
    """How often the way here went to a part of the value."""
    lowest: int
    """The outermost frame whose answer was assumed."""
    provisional: int
    """How many provisional answers there were when it began."""


@dataclass
class Comparison:
    """One run."""

    lenient: frozenset[str]
    """Types of differences that are let pass: Confluent's `compatibilityPolicy` LENIENT."""
    graph: Graph
    """For nodes that are made."""
    answer: Callable[[Comparison, Question], Asking]
    """What answers a question: `own.answer`."""
    budget: Budget = field(default_factory=lambda: Budget(STEPS))
    _certain: dict[Any, Reasons] = field(default_factory=dict)
    _provisional: dict[Any, int] = field(default_factory=dict)
    same: dict[tuple[int, int], bool] = field(default_factory=dict)
    """Of pairs of nodes, whether they say the same: `same`."""
    twins: dict[Any, list[tuple[str, ...]]] = field(default_factory=dict)
    empty: dict[frozenset[int], bool] = field(default_factory=dict)
    """Of conjunctions, whether they have no value: `disjoint`."""
    views: dict[tuple[str, int], Any] = field(default_factory=dict)
    """What nodes say of members and of items: `views`."""
    _made: dict[str, Node] = field(default_factory=dict)
    _alive: list[Any] = field(default_factory=list)

    def question(
        self, old: Iterable[Node], new: Node, *, fills: bool = False, deeper: bool = True
    ) -> Question:
        return Question(model.nodes_of(old, self.budget), new, fills=fills, deeper=deeper)

    def typed(self, name: str) -> Node:
        """The schema of one type."""
        return self.schema(f"type {name}", {"type": name})

    def requiring(self, name: str) -> Node:
        """The schema of objects that have a member."""
        return self.schema(f"required {name}", {"type": "object", "required": [name]})

    def schema(self, key: str, value: dict[str, Any]) -> Node:
        if key not in self._made:
            self._made[key] = self.graph.made(value)
        return self._made[key]

    def found(self, kind: str, path: Iterable[str], old: Any, new: Any, detail: str = "") -> Reasons:
        """One reason, unless such reasons are let pass."""
        return NOTHING if kind in self.lenient else (Reason(kind, tuple(path), old, new, detail),)

    def run(self, first: Question) -> Reasons:
        """The answer. Raises SchemaError where it takes too many steps."""
        frames: list[_Frame] = []
        open_: dict[Any, int] = {}
        recorded: list[Any] = []
        answer: Reasons | None = None
        asked: Question | None = first
        while True:
            if asked is not None:
                answer = self._remembered(asked, frames, open_)
                if answer is None:
                    self._push(asked, frames, open_, recorded)
                asked = None
            frame = frames[-1] if frames else None
            if frame is None:
                assert answer is not None
                return answer
            try:
                # A generator that was just made takes None.
                asked = frame.answer.send(answer)  # type: ignore[arg-type]
                answer = None
            except StopIteration as stop:
                answer = stop.value
                assert answer is not None
                self._pop(frames, open_, recorded, answer)
                if not frames:
                    return answer

    def _remembered(self, asked: Question, frames: list[_Frame], open_: dict[Any, int]) -> Reasons | None:
        self.budget.spend(30 + 8 * len(asked.old))
        if asked.new.value is True or any(node.value is False for node in asked.old):
            return NOTHING
        key = asked.key
        certain = self._certain.get(key)
        if certain is not None:
            return certain
        outermost = self._provisional.get(key)
        if outermost is None:
            outermost = open_.get(key)
            if outermost is not None and not self._depth(asked, frames) > frames[outermost].depth:
                return self.found("COMBINED_TYPE_SUBSCHEMAS_CHANGED", (), ABSENT, ABSENT) or NOTHING
        if outermost is None:
            return None
        frames[-1].lowest = min(frames[-1].lowest, outermost)
        return NOTHING

    @staticmethod
    def _depth(asked: Question, frames: list[_Frame]) -> int:
        return (frames[-1].depth if frames else 0) + asked.deeper

    def _push(
        self, asked: Question, frames: list[_Frame], open_: dict[Any, int], recorded: list[Any]
    ) -> None:
        key, place = asked.key, len(frames)
        self._alive.append(asked)  # Keys are identities of nodes.
        open_[key] = place
        frames.append(_Frame(key, self.answer(self, asked), self._depth(asked, frames), place, len(recorded)))

    def _pop(self, frames: list[_Frame], open_: dict[Any, int], recorded: list[Any], answer: Reasons) -> None:
        frame = frames.pop()
        place = len(frames)
        del open_[frame.key]
        since = recorded[frame.provisional :]
        if answer:
            # A no is certain: more could not be proved with yes assumed. What relied on it is not.
            del recorded[frame.provisional :]
            for key in since:
                self._provisional.pop(key, None)
            self._certain[frame.key] = answer
        elif frame.lowest >= place:
            del recorded[frame.provisional :]
            for key in since:
                if self._provisional.pop(key, None) is not None:
                    self._certain[key] = NOTHING
            self._certain[frame.key] = NOTHING
        else:
            self._provisional[frame.key] = frame.lowest
            recorded.append(frame.key)
            frames[-1].lowest = min(frames[-1].lowest, frame.lowest)


def below(findings: Reasons, *path: str) -> Reasons:
    """Reasons of a part, as reasons of the whole."""
    return tuple(one._replace(path=(*path, *one.path)) for one in findings)


def described(nodes: Nodes) -> Any:
    """What a person is shown of a conjunction: its types, or the first part of it."""
    named = [node.get("type") for node in nodes if node.get("type") is not None]
    if named:
        return named[0]
    return nodes[0].value if nodes else ABSENT


def shown(value: Any, limit: int = 200) -> str | None:
    """A part of a schema for people: JSON, shortened; None for what is not there."""
    if value is ABSENT:
        return None
    if isinstance(value, Node):
        value = value.value
    if isinstance(value, dict | list) and len(value) > 50:
        return "{…}" if isinstance(value, dict) else "[…]"
    written = text.write(value)
    return written if len(written) <= limit else written[: limit - 1] + "…"
