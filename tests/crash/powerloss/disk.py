"""What a cut of the power may leave of recorded calls: the model of a disk with a volatile cache.

A file is its writes, a folder its changes of names, each on the disk or not yet:

- fsync or fdatasync of a file: what was written to it before the call began is on the disk once it has returned, and
  its size; not its name. fsync of a folder: the changes of names before it. A write to a file opened with O_DSYNC is on
  the disk once it has returned, and with it the size of the file, but nothing that was written without before.
- Everything else may be there or not, each for itself: a write whole, in part (whole sectors of 512 B or pages of
  4 KiB), or as nothing but the file's new size, which reads as zeros; a file whose name was lost is not there, nor is
  what is in a folder whose name was lost.

The changes of one folder reach the disk in their order, as a journal keeps them; between folders, and between names and
data, there is none. That is more than ext4 or XFS do to anybody, but within what they promise. An `Outcome` says which
of the possible outcomes a replay takes. Renames from one folder to another, links and writing through memory are not
modelled: `recording` refuses them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from crash.powerloss.recording import Entry

SECTOR: Final = 512
PAGE: Final = 4096
_NO_DICE: Final = random.Random(0)  # where nothing is torn


class Fate(Enum):
    """What becomes of a call that is not on the disk yet."""

    LOST = 0
    THERE = 1
    SIZE = 2  # only the size of the file
    TORN = 3  # some of its sectors, and the size


@dataclass(slots=True)
class Change:
    """One call on a file or a folder. `data` None: the file is cut to, or grows to, `at`."""

    at: int = 0
    data: bytes | None = None
    grows: bool = False  # without `data`: an allocation, which never makes a file shorter
    name: str = ""  # in a folder: who is `node` after it, or (None) is not there
    node: Node | None = None
    gone: str = ""  # in a folder: the name that a rename took away
    number: int = 0  # among all changes of names
    durable: bool = False


@dataclass(slots=True, eq=False)
class Node:
    """A file or a folder. What is on the disk for good, without a gap, is in `content` or `names`."""

    is_folder: bool
    path: str  # the last it had, while its folder was there
    content: bytearray = field(default_factory=bytearray)
    names: dict[str, Node] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    folded: int = 0  # how many changes have gone into `content` or `names`

    @property
    def count(self) -> int:
        return self.folded + len(self.changes)

    def make_durable(self, below: int) -> None:
        """All changes before that number are on the disk."""
        for change in self.changes[: max(below - self.folded, 0)]:
            change.durable = True
        self._fold()

    def written_through(self, change: Change) -> None:
        """A write has returned that waited for the disk: it is there, and the size of the file."""
        for before in self.changes:
            if before is change:
                break
            if before.data is None:
                before.durable = True
        change.durable = True
        self._fold()

    def _fold(self) -> None:
        done = 0
        for change in self.changes:
            if not change.durable:
                break
            if self.is_folder:
                rename(self.names, change)
            else:
                write(self.content, change, Fate.THERE, _NO_DICE)
            done += 1
        if done:
            del self.changes[:done]
            self.folded += done


def rename(names: dict[str, Node], change: Change) -> None:
    """Take up a change of names."""
    if change.gone:
        names.pop(change.gone, None)
    if change.node is None:
        names.pop(change.name, None)
    else:
        names[change.name] = change.node


def write(content: bytearray, change: Change, fate: Fate, dice: random.Random) -> None:
    """Take up a change of a file as far as `fate` says."""
    if fate is Fate.LOST:
        return
    if change.data is None:
        if len(content) < change.at:
            content.extend(bytes(change.at - len(content)))
        elif not change.grows:
            del content[change.at :]
        return
    end = change.at + len(change.data)
    if len(content) < end:
        content.extend(bytes(end - len(content)))
    if fate is Fate.THERE:
        content[change.at : end] = change.data
    elif fate is Fate.TORN:
        unit = dice.choice((SECTOR, PAGE))
        at = change.at
        while at < end:
            after = min((at // unit + 1) * unit, end)
            if dice.random() < 0.5:
                content[at:after] = change.data[at - change.at : after - change.at]
            at = after


class Outcome:
    """One of the states that a cut may leave. This one: of what is not on the disk yet, all of one kind has the same
    fate."""

    def __init__(self, name: str, writes: Fate, names: bool) -> None:
        self.name = name
        self.dice = random.Random(0)
        self._writes = writes
        self._names = names

    def begin(self, numbers: list[int]) -> None:
        """Before anything else: the numbers of all changes of names that are not on the disk, in order."""

    def fate(self, node: Node, number: int) -> Fate:
        """Of one of the changes of a file."""
        return self._writes

    def keeps(self, folder: Node, change: Change) -> bool:
        """Whether a change of names is there."""
        return self._names


class Chance(Outcome):
    """For each file one of several ways to lose; of the names all changes up to a moment, as a journal has them, or in
    each folder up to a moment of its own."""

    _WAYS = ("lost", "there", "first", "torn", "zeros", "any")

    def __init__(self, seed: int) -> None:
        super().__init__(f"by chance, seed {seed}", Fate.LOST, False)
        self.dice = random.Random(seed)
        self._ways: dict[Node, tuple[str, int]] = {}
        self._last: int | None = None
        self._last_in: dict[Node, int] = {}

    def begin(self, numbers: list[int]) -> None:
        if self.dice.random() < 0.5:
            self._last = self.dice.choice([0, *numbers])

    def fate(self, node: Node, number: int) -> Fate:
        if node not in self._ways:
            self._ways[node] = self.dice.choice(self._WAYS), self.dice.randrange(len(node.changes) + 1)
        way, limit = self._ways[node]
        if way == "any":
            return self.dice.choice(list(Fate))
        if way == "there" or (way != "lost" and number < limit):
            return Fate.THERE
        if way == "zeros":
            return Fate.SIZE
        return Fate.TORN if way == "torn" and number == limit else Fate.LOST

    def keeps(self, folder: Node, change: Change) -> bool:
        if self._last is not None:
            return change.number <= self._last
        if folder not in self._last_in:
            self._last_in[folder] = self.dice.choice([0, *(each.number for each in folder.changes)])
        return change.number <= self._last_in[folder]


def plain_outcomes() -> list[Outcome]:
    """Those that are always worth a look."""
    return [
        Outcome("nothing that was not synced", Fate.LOST, False),
        Outcome("everything", Fate.THERE, True),
        Outcome("names and sizes without data", Fate.SIZE, True),
        Outcome("names without data", Fate.LOST, True),
        Outcome("data without names", Fate.THERE, False),
    ]


class Disk:
    """The files below one folder, as recorded so far."""

    def __init__(self, root_inode: int, *, breaks: str = "(?!)") -> None:
        """`root_inode` is that of the folder that was recorded. `breaks`: syncs of files and folders whose path is like
        this, and writes to them with O_DSYNC, do nothing, as on a disk or in a broker that is broken."""
        self.root = Node(True, "")
        self._nodes = {root_inode: self.root}
        self._syncs: dict[int, tuple[Node, int]] = {}
        self._writes: dict[int, tuple[Node, Change]] = {}
        self._breaks = re.compile(breaks)
        self._renames = 0

    @classmethod
    def of(cls, root: Path) -> Disk:
        """A disk that has what is below a folder now, all of it for good."""
        disk = cls(root.stat().st_ino)
        disk._add(root, disk.root)
        return disk

    def _add(self, folder: Path, node: Node) -> None:
        for path in folder.iterdir():
            child = Node(path.is_dir(), f"{node.path}/{path.name}")
            node.names[path.name] = self._nodes[path.stat().st_ino] = child
            if child.is_folder:
                self._add(path, child)
            else:
                child.content += path.read_bytes()

    def take(self, entries: Iterable[Entry]) -> None:
        """Go on by recorded calls; marks are passed over. Raises KeyError for a file that nobody has made."""
        for entry in entries:
            self._take(entry)

    def _take(self, entry: Entry) -> None:
        kind, a, b, c, one, two = entry
        if kind == "W":
            self._nodes[a].changes.append(Change(b, two))
        elif kind == "w":
            change = Change(b, two)
            self._nodes[a].changes.append(change)
            self._writes[c] = self._nodes[a], change
        elif kind == "e":
            node, change = self._writes.pop(c)
            assert change.data is not None
            if b < len(change.data):
                change.data = change.data[: max(b, 0)]
            if not self._breaks.search(node.path):
                node.written_through(change)
        elif kind == "S":
            self._syncs[c] = self._nodes[a], self._nodes[a].count
        elif kind == "s":
            node, count = self._syncs.pop(c)
            if b == 0 and not self._breaks.search(node.path):
                node.make_durable(count)
        elif kind == "T":
            self._nodes[a].changes.append(Change(b))
        elif kind == "A":
            self._nodes[a].changes.append(Change(b, grows=True))
        elif kind == "O":
            self._opened(a, create=bool(b), cut=bool(c), path=one)
        elif kind == "M":
            node = self._nodes[a] = Node(True, one)
            self._name(one, node)
        elif kind == "R":
            self._rename(one, two.decode())
        elif kind == "U":
            self._name(one, None)

    def _opened(self, inode: int, *, create: bool, cut: bool, path: str) -> None:
        folder, name = self._parent(path)
        node = self._now(folder).get(name)
        if node is None:
            if not create:
                raise KeyError(path)
            # The number of a file that is gone may be given to another.
            node = self._nodes[inode] = Node(False, path)
            self._name(path, node)
        elif cut:
            node.changes.append(Change(0))

    def _rename(self, old: str, new: str) -> None:
        folder, name = self._parent(new)
        source, gone = self._parent(old)
        if source is not folder:
            raise ValueError(f"{old} is renamed to {new}, in another folder: that is not modelled")
        self._renames += 1
        node = self._now(folder)[gone]
        node.path = new
        folder.changes.append(Change(name=name, node=node, gone=gone, number=self._renames))

    def _name(self, path: str, node: Node | None) -> None:
        folder, name = self._parent(path)
        self._renames += 1
        folder.changes.append(Change(name=name, node=node, number=self._renames))

    def _now(self, folder: Node) -> dict[str, Node]:
        """The names as a running process sees them."""
        names = dict(folder.names)
        for change in folder.changes:
            rename(names, change)
        return names

    def _parent(self, path: str) -> tuple[Node, str]:
        *folders, name = path.strip("/").split("/")
        node = self.root
        for part in folders:
            node = self._now(node)[part]
        return node, name

    # What is left

    def left(self, outcome: Outcome) -> dict[str, bytes | None]:
        """Every file and folder (None) after a cut now, by its path."""
        outcome.begin(sorted(self._open(self.root)))
        found: dict[str, bytes | None] = {}
        self._collect(self.root, "", outcome, found)
        return found

    def _open(self, folder: Node) -> Iterator[int]:
        yield from (change.number for change in folder.changes if not change.durable)
        for node in self._now(folder).values():
            if node.is_folder:
                yield from self._open(node)

    def _collect(self, folder: Node, path: str, outcome: Outcome, found: dict[str, bytes | None]) -> None:
        names = dict(folder.names)
        for change in folder.changes:
            if change.durable or outcome.keeps(folder, change):
                rename(names, change)
        for name, node in names.items():
            if node.is_folder:
                found[path + name] = None
                self._collect(node, f"{path}{name}/", outcome, found)
            else:
                found[path + name] = _content(node, outcome)


def _content(node: Node, outcome: Outcome) -> bytes:
    content = bytearray(node.content)
    for number, change in enumerate(node.changes):
        fate = Fate.THERE if change.durable else outcome.fate(node, number)
        write(content, change, fate, outcome.dice)
    return bytes(content)


def put(files: dict[str, bytes | None], root: Path) -> None:
    """Make the files and folders below `root`, which has to be empty."""
    root.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        if content is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(content)
