"""Logs that compaction has something to do with, and what has to be left of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from leafcuttr.log.cleaner.compaction.compact import Compaction
from leafcuttr.log.cleaner.compaction.pages import Throttle
from leafcuttr.log.cleaner.job import Cleaned, Done, KnownProducer, Round, SourceSegment
from leafcuttr.log.segment.txn_index import AbortedTransaction
from leafcuttr.wire.batch import BatchHeader, parse
from leafcuttr.wire.records import Record, decode_records
from support.logs import NOW

DAY_MS = 86_400_000


def write_segments(
    folder: Path, batches: Sequence[bytes | bytearray], starts: Iterable[int] = (0,)
) -> list[SourceSegment]:
    """Segment files of whole batches; a new one begins at each number of a batch in `starts`."""
    folder.mkdir(parents=True, exist_ok=True)
    edges = [*sorted(starts), len(batches)]
    sources = []
    for first, end in pairwise(edges):
        base, last = parse(batches[first]).base_offset, parse(batches[end - 1]).next_offset
        data = b"".join(bytes(batch) for batch in batches[first:end])
        (folder / f"{base:020d}.log").write_bytes(data)
        sources.append(SourceSegment(base, len(data), last))
    return sources


def compact(
    folder: Path,
    groups: Sequence[Sequence[SourceSegment]],
    *,
    first_dirty: int = 0,
    now_ms: int = NOW,
    table_bytes: int = 1 << 24,
    producers: dict[int, KnownProducer] | None = None,
    aborted: Sequence[AbortedTransaction] = (),
    chunk: int = 1 << 16,
) -> tuple[Done, list[Cleaned]]:
    """One round, in this process. The files stay beside the log, as `.cleaned`."""
    cleaned: list[Cleaned] = []
    round_ = Round(
        str(folder), [list(group) for group in groups], first_dirty, now_ms, DAY_MS, 4096, chunk, table_bytes, 0,
        producers or {}, list(aborted),
    )  # fmt: skip
    return Compaction(round_, Throttle(0), cleaned.append).run(), cleaned


def split(data: bytes) -> list[bytes]:
    """The batches in a file."""
    found, at = [], 0
    while at < len(data):
        size = parse(data, at).size
        found.append(data[at : at + size])
        at += size
    return found


def result(folder: Path, group: Sequence[SourceSegment]) -> list[bytes]:
    """The batches of what a group has become."""
    path = folder / f"{group[0].base:020d}.log"
    cleaned = path.with_name(path.name + ".cleaned")
    return split((cleaned if cleaned.exists() else path).read_bytes())


def records_of(batches: Iterable[bytes]) -> list[Record]:
    return [record for batch in batches if not parse(batch).is_control for record in decode_records(batch)]


def headers_of(batches: Iterable[bytes]) -> list[BatchHeader]:
    return [parse(batch) for batch in batches]


def put_in_place(folder: Path, group: Sequence[SourceSegment]) -> SourceSegment:
    """What the broker does with a cleaned group, without its care; returns the new segment."""
    base = group[0].base
    if not (folder / f"{base:020d}.log.cleaned").exists():
        return group[0]
    for source in group:
        for path in folder.glob(f"{source.base:020d}.*"):
            if path.suffix != ".cleaned":
                path.unlink()
    for path in folder.glob(f"{base:020d}.*.cleaned"):
        path.rename(path.with_suffix(""))
    return SourceSegment(base, (folder / f"{base:020d}.log").stat().st_size, group[-1].end)
