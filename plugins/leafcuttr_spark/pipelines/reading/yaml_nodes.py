"""YAML as nodes with lines, within bounds: a file of bounded size, depth and number of nodes, aliases counted in full.

Scalars stay texts; `kinds` says what they are read as. So `1.10` is a version where a text is allowed, and `on` a key.
A plain scalar that is empty, `null` or `~` is null; true and false are as in YAML 1.2."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import yaml
from yaml import events

MOST_BYTES: Final = 256 * 1024
MOST_NODES: Final = 20_000
DEEPEST: Final = 40

_TEXT_TAGS: Final = (None, "!", "tag:yaml.org,2002:str")
_MERGE: Final = "<<"


class YamlError(ValueError):
    """A text that cannot be read, with the line."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line
        self.what = what


@dataclass(slots=True)
class Scalar:
    """A text as it is written, without quotes."""

    text: str
    plain: bool
    """Whether it had no quotes, and so can be something else than a text."""
    line: int
    size: int = 1
    depth: int = 1

    @property
    def is_null(self) -> bool:
        return self.plain and self.text in ("", "null", "Null", "NULL", "~")


@dataclass(slots=True)
class Items:
    """A sequence."""

    items: "list[Node]"
    line: int
    size: int = 1
    depth: int = 1


@dataclass(slots=True)
class Entries:
    """A mapping, in its order; a key comes once."""

    entries: "list[tuple[Scalar, Node]]"
    line: int
    size: int = 1
    depth: int = 1

    def get(self, name: str) -> "Node | None":
        return next((value for key, value in self.entries if key.text == name), None)


Node: TypeAlias = Scalar | Items | Entries
"""An alias is the node that it names, once more: nothing is copied. `size` and `depth` count as if it were."""


def read_yaml(source: bytes) -> Node:
    """The one document of the text. Raises YamlError."""
    if len(source) > MOST_BYTES:
        raise YamlError(0, f"the file has {len(source)} bytes; at most {MOST_BYTES} are read")
    try:
        text = source.decode("utf-8")
    except UnicodeDecodeError as error:
        raise YamlError(source.count(b"\n", 0, error.start) + 1, "this is not UTF-8") from None
    try:
        return _Composer().compose(yaml.parse(text, Loader=yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(mark.line + 1 if mark else 0, f"this is not YAML: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlError(line, f"YAML has no character #x{error.character:04x}") from None


@dataclass(slots=True)
class _Open:
    """A collection that is not complete."""

    node: Items | Entries
    anchor: str | None
    key: Scalar | None = None
    """Of a mapping: the key whose value comes next."""
    known: set[str] = field(default_factory=set)
    merged: list[tuple[Scalar, Node]] = field(default_factory=list)


class _Composer:
    """Makes nodes of events, without recursion. An anchor is known once its node is complete, so there are no
    circles."""

    def __init__(self) -> None:
        self._open: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._root: Node | None = None

    def compose(self, stream: Iterator[Any]) -> Node:
        for event in stream:
            line = event.start_mark.line + 1
            match event:
                case events.DocumentStartEvent() if self._root is not None:
                    raise YamlError(line, "there is a second document; a file has one pipeline")
                case events.ScalarEvent():
                    _refuse_tag(event.tag, line)
                    plain = event.style is None and event.tag is None
                    self._complete(Scalar(event.value, plain, line), event.anchor, line)
                case events.AliasEvent():
                    self._complete(self._named(event.anchor, line), None, line)
                case events.SequenceStartEvent():
                    self._begin(Items([], line), event)
                case events.MappingStartEvent():
                    self._begin(Entries([], line), event)
                case events.CollectionEndEvent():
                    done = self._open.pop()
                    if isinstance(done.node, Entries):
                        _add_merged(done.node, done)
                    self._complete(done.node, done.anchor, done.node.line)
        if self._root is None:
            raise YamlError(0, "the file is empty; `leafcuttr spark init` writes one to begin with")
        return self._root

    def _begin(self, node: Items | Entries, event: Any) -> None:
        _refuse_tag(event.tag, node.line)
        if len(self._open) >= DEEPEST:
            raise YamlError(node.line, f"this is nested more than {DEEPEST} deep")
        self._open.append(_Open(node, event.anchor))

    def _complete(self, node: Node, anchor: str | None, line: int) -> None:
        if anchor:
            self._anchors[anchor] = node
        if not self._open:
            self._root = node
            return
        top = self._open[-1]
        parent = top.node
        if isinstance(parent, Items):
            parent.items.append(node)
        elif top.key is None:
            top.key = _key(node, line, top.known)
            return
        else:
            _put(parent, top, node)
        parent.size += node.size
        parent.depth = max(parent.depth, node.depth + 1)
        if parent.size > MOST_NODES:
            raise YamlError(
                line, f"these are more than {MOST_NODES} values, those of aliases counted each time"
            )
        if parent.depth + len(self._open) > DEEPEST:
            raise YamlError(line, f"this is nested more than {DEEPEST} deep")

    def _named(self, anchor: str, line: int) -> Node:
        if any(one.anchor == anchor for one in self._open):
            raise YamlError(line, f"the alias *{anchor} is within what it names: a circle")
        if anchor not in self._anchors:
            raise YamlError(line, f"there is no anchor &{anchor} before this alias")
        return self._anchors[anchor]


def _key(node: Node, line: int, known: set[str]) -> Scalar:
    if not isinstance(node, Scalar):
        raise YamlError(line, "a key has to be a text")
    if not _is_merge(node):
        if node.text in known:
            raise YamlError(line, f"the key {node.text} comes twice")
        known.add(node.text)
    return Scalar(node.text, node.plain, line)


def _is_merge(key: Scalar) -> bool:
    return key.plain and key.text == _MERGE


def _put(parent: Entries, top: _Open, node: Node) -> None:
    key, top.key = top.key, None
    assert key is not None
    if not _is_merge(key):
        parent.entries.append((key, node))
        return
    for one in node.items if isinstance(node, Items) else [node]:
        if not isinstance(one, Entries):
            raise YamlError(key.line, "<< takes a mapping, or a list of them")
        top.merged.extend(one.entries)


def _add_merged(node: Entries, top: _Open) -> None:
    """What is written in the mapping itself counts, then what was merged first."""
    for key, value in top.merged:
        if key.text not in top.known:
            top.known.add(key.text)
            node.entries.append((key, value))


def _refuse_tag(tag: str | None, line: int) -> None:
    if tag not in _TEXT_TAGS:
        raise YamlError(line, f"the tag {tag} is not allowed; of all tags only !!str is")
