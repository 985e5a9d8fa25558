"""What was acknowledged, record by record, compared with what the files hold by the word of a reader that is not ours
(`foreign`).

Clients say what they were told as `Due` records of one partition; the comparison names topic, partition and offset of
each record that is missing or another, what was acknowledged and what is there.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

from crash import foreign
from crash.foreign import Record
from support import jars

NOT_TOLD: Final = -1
"""The offset of a record that was acknowledged without one: librdkafka has none for what it has sent twice and the
broker has taken once."""
_LINES: Final = 20
_SHOWN: Final = 40  # bytes of a key or a value
NONE, SOME, ALL = 0, 2, sys.maxsize
"""How many partitions Kafka's tool reads. It takes what a killed broker leaves at the end of a log for corrupt."""

Content = tuple[bytes | None, bytes | None]


class Due(NamedTuple):
    """A record that was acknowledged."""

    offset: int
    key: bytes | None
    value: bytes | None


class Fault(NamedTuple):
    """What is wrong at one offset; as text, one line. Where the client was not told the offset, `near` says between
    which two it was."""

    topic: str
    partition: int
    offset: int
    what: str
    near: str = ""

    def __str__(self) -> str:
        offset = str(self.offset) if self.offset >= 0 else f"not told ({self.near})"
        return f"topic {self.topic}, partition {self.partition}, offset {offset}: {self.what}"


def _lost(topic: str, partition: int, due: Due, found: str, near: str = "") -> Fault:
    what = f"acknowledged was {_shown(due.key, due.value)}; {found}"
    return Fault(topic, partition, due.offset, what, near)


def _shown(key: bytes | None, value: bytes | None) -> str:
    return f"key {_short(key)}, value {_short(value)}"


def _short(content: bytes | None) -> str:
    if content is None or len(content) <= _SHOWN:
        return repr(content)
    return f"{content[:_SHOWN]!r}... ({len(content)} bytes)"


def _there(record: Record | None) -> str:
    if record is None:
        return "nothing is there"
    if record.commits is not None:
        return "a control record is there"
    return f"there is {_shown(record.key, record.value)}"


def every(topic: str, partition: int, due: Iterable[Due], stored: Sequence[Record]) -> Iterator[Fault]:
    """Each record that was acknowledged is there, at its offset, with its key and its value. `due` is in the order in
    which it was sent."""
    at = {record.offset: record for record in stored}
    contents: dict[Content, int] | None = None
    before = -1
    untold: list[Due] = []
    for one in due:
        if one.offset < 0:
            if contents is None:
                contents = {(record.key, record.value): record.offset for record in stored}
            if (one.key, one.value) not in contents:
                untold.append(one)
            continue
        for each in untold:
            near = f"between {before} and {one.offset}"
            yield _lost(topic, partition, each, "it is nowhere in the partition", near)
        untold.clear()
        before = max(before, one.offset)
        found = at.get(one.offset)
        if found is None or found.commits is not None or (found.key, found.value) != (one.key, one.value):
            yield _lost(topic, partition, one, _there(found))
    for each in untold:
        yield _lost(topic, partition, each, "it is nowhere in the partition", f"behind {before}")


def latest(
    topic: str,
    partition: int,
    due: Mapping[bytes, Due],
    stored: Sequence[Record],
    *,
    is_newer: Callable[[bytes, Record], bool],
    may_be_gone: Callable[[bytes], bool],
) -> Iterator[Fault]:
    """Of each key the record that was acknowledged last is there, or one that was sent after it (`is_newer`); or none,
    where a tombstone has come (`may_be_gone`)."""
    last = {record.key: record for record in stored}
    for key, one in due.items():
        found = last.get(key)
        if found is None:
            if not may_be_gone(key):
                yield _lost(topic, partition, one, "the key is nowhere in the partition")
        elif found.value == one.value and one.offset in (found.offset, NOT_TOLD):
            continue
        elif found.offset <= one.offset or not is_newer(key, found):
            behind = f"the last of the key is at offset {found.offset}: {_there(found)}"
            yield _lost(topic, partition, one, behind)


def nothing_else(
    topic: str, partition: int, stored: Iterable[Record], was_sent: Callable[[Record], bool]
) -> Iterator[Fault]:
    """Each data record that is there was sent by somebody, key and value."""
    for record in stored:
        if record.commits is None and not was_sent(record):
            yield Fault(topic, partition, record.offset, f"{_there(record)}, which nobody has sent")


def check(faults: Iterable[Fault]) -> None:
    """Raises AssertionError with a line for each fault, up to a bound, and their number."""
    found = list(faults)
    if not found:
        return
    places = sorted({f"{fault.topic}-{fault.partition}" for fault in found})
    head = f"{len(found)} records are not in the files as they were acknowledged, in {', '.join(places)}:"
    more = [f"... and {len(found) - _LINES} more"] if len(found) > _LINES else []
    raise AssertionError("\n".join([head, *map(str, found[:_LINES]), *more]))


class Files:
    """The partitions of a broker that does not run: all by kio, so many by Kafka's tool as well, chosen by the seed.

    Raises AssertionError where the two do not read the same. `notes` say which reader has read what. The
    caller counts with `counted`: `compared` is how many acknowledged records were looked up, of which `untold` without
    an offset.
    """

    def __init__(self, data: Path, topics: Iterable[str], seed: int, *, kafka_reads: int) -> None:
        self.notes: list[str] = []
        self.compared = self.untold = 0
        wanted = set(topics)
        folders = [path for path in sorted(data.iterdir()) if path.name.rpartition("-")[0] in wanted]
        self._found = {folder.name: foreign.by_kio(folder) for folder in folders}
        self.records = sum(map(len, self._found.values()))
        self.notes.append(
            f"{self.records} records of {len(folders)} partitions read back by kio from the files"
        )
        if kafka_reads:
            # What coordinators keep is no text.
            self._compare_with_kafka([f for f in folders if not f.name.startswith("__")], seed, kafka_reads)

    def counted(self, due: Iterable[Due]) -> list[Due]:
        """The same, counted as compared."""
        found = list(due)
        self.compared += len(found)
        self.untold += sum(one.offset < 0 for one in found)
        return found

    def said(self) -> list[str]:
        """The notes, and what was compared."""
        compared = f"{self.compared} acknowledged records compared with them, keys and values"
        return [*self.notes, f"{compared}; of {self.untold} no offset was told"]

    def partition(self, topic: str, number: int) -> list[Record]:
        """In the order of the log. Nothing, where there is no such partition."""
        return self._found.get(f"{topic}-{number}", [])

    def _compare_with_kafka(self, folders: list[Path], seed: int, count: int) -> None:
        if jars.missing() is not None:
            self.notes.append(f"kio alone has read them: {jars.missing()}")
            return
        which = "all of them"
        if count < len(folders):
            # Of the larger half: some hold next to nothing.
            folders.sort(key=lambda folder: -len(self._found[folder.name]))
            folders = random.Random(seed).sample(folders[: max(count, len(folders) // 2)], count)
            which = f"{', '.join(sorted(folder.name for folder in folders))} (chosen by seed {seed})"
        dumped = foreign.by_kafka(folders)
        for name, records in dumped.items():
            self._compare(name, records)
        self.notes.append(f"{sum(map(len, dumped.values()))} records read back by DumpLogSegments: {which}")

    def _compare(self, name: str, theirs: list[Record]) -> None:
        ours = [
            each if each.commits is None else each._replace(key=None, value=None)
            for each in self._found[name]
        ]
        if theirs != ours:
            pairs = zip(ours, theirs, strict=False)
            differ = next((pair for pair in pairs if pair[0] != pair[1]), (len(ours), len(theirs)))
            raise AssertionError(f"{name}: kio and DumpLogSegments do not read the same: {differ}")


def committed(stored: Sequence[Record]) -> list[Record]:
    """What a reader of committed records gets, by the control records alone, in order of offsets. What is undecided at
    the end is not in it."""
    found: list[Record] = []
    pending: dict[int, list[Record]] = {}
    for record in stored:
        if record.commits is not None:
            ended = pending.pop(record.producer_id, [])
            found += ended if record.commits else []
        elif record.transactional:
            pending.setdefault(record.producer_id, []).append(record)
        else:
            found.append(record)
    return sorted(found, key=attrgetter("offset"))
