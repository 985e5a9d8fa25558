"""From the log alone: which transactions there are, and whether that is what clients were told.

Partitions are read as files, with nothing of the broker but the format of batches: who is committed follows from the
control records, not from any index. A fault is an AssertionError that names the transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from crash.txn_plan import ABORTED, ASKED, BEGUN, COMMITTED, INPUT, PARTITIONS, plan, value_of
from leafcuttr.state.groups.records import OffsetKey, parse_key, parse_offset
from leafcuttr.state.transactions import records as transaction_records
from leafcuttr.wire.batch import HEADER_SIZE, BatchHeader, parse
from leafcuttr.wire.markers import COMMIT
from leafcuttr.wire.records import Record, control_record, decode_records

Read = tuple[int, bytes]
"""What a reader of a partition gets: offset and value."""


class Partition(NamedTuple):
    """The records of a partition in order, by how their transactions ended."""

    committed: list[Record]
    aborted: list[Record]
    markers: int

    @property
    def read_committed(self) -> list[Read]:
        return [(record.offset, record.value or b"") for record in self.committed]

    @property
    def raw(self) -> list[Read]:
        return sorted((each.offset, each.value or b"") for each in (*self.committed, *self.aborted))


def batches(folder: Path) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Every batch in a partition's folder, in order."""
    for path in sorted(folder.glob("*.log")):
        data, at = memoryview(path.read_bytes()), 0
        while at + HEADER_SIZE <= len(data):
            header = parse(data, at)
            assert header.size <= len(data) - at, f"{path} ends within a batch"
            yield header, data[at : at + header.size]
            at += header.size


def partition(data: Path, topic: str, number: int) -> Partition:
    """Raises AssertionError where a transaction is open, or an epoch goes back: a zombie has written."""
    where = f"{topic}-{number}"
    committed: list[Record] = []
    aborted: list[Record] = []
    pending: dict[int, list[Record]] = {}
    epochs: dict[int, int] = {}
    markers = 0
    for header, batch in batches(data / where):
        producer, epoch = header.producer_id, header.producer_epoch
        if producer >= 0:
            known = epochs.get(producer, 0)
            assert epoch >= known, f"{where}: offset {header.base_offset} has epoch {epoch} after {known}"
            epochs[producer] = epoch
        if header.is_control:
            markers += 1
            (record,) = decode_records(batch)
            ended = committed if control_record(record).type == COMMIT else aborted
            ended += pending.pop(producer, [])
        elif header.is_transactional:
            pending.setdefault(producer, []).extend(decode_records(batch))
        else:
            committed += decode_records(batch)
    assert not pending, f"{where}: transactions of {sorted(pending)} are open"
    return Partition(sorted(committed, key=_offset), sorted(aborted, key=_offset), markers)


def _offset(record: Record) -> int:
    return record.offset


def group_offsets(data: Path, partitions: int) -> dict[tuple[str, int], int]:
    """The committed offset of the input topic's partitions, by group and partition."""
    found: dict[tuple[str, int], int] = {}
    for number in range(partitions):
        for record in partition(data, "__consumer_offsets", number).committed:
            key = parse_key(record.key or b"")
            if isinstance(key, OffsetKey) and key.topic == INPUT and record.value is not None:
                found[key.group, key.partition] = parse_offset(record.value).offset
    return found


def transaction_states(data: Path, partitions: int) -> dict[str, str]:
    """The state of each transactional id."""
    found = {}
    for number in range(partitions):
        for record in partition(data, "__transaction_state", number).committed:
            name = transaction_records.parse_key(record.key or b"")
            if name is not None and record.value is not None:
                found[name] = transaction_records.parse_value(record.value).state.title
    return found


class Tally(NamedTuple):
    """How many of a writer's transactions were seen, and how many of those whose end was never heard were."""

    committed: int
    unheard: int
    unheard_committed: int


def check_writer(
    found: Sequence[Sequence[Read]], seed: int, writer: str, journal: Mapping[int, str]
) -> tuple[Tally, int]:
    """A writer's transactions are there whole, in order and once, or not at all, as it was told; of those whose end it
    was not told either. Returns that, and the last one that is there (-1: none)."""
    there: dict[int, dict[int, list[bytes]]] = {}
    for number, records in enumerate(found):
        last = -1
        for offset, value in records:
            name, transaction = value.split(b":", 2)[:2]
            if name.decode() == writer:
                assert int(transaction) >= last, (
                    f"{INPUT}-{number}: offset {offset} is out of order: {value!r}"
                )
                last = int(transaction)
                there.setdefault(last, {}).setdefault(number, []).append(value)
    unheard = unheard_committed = 0
    for transaction, word in journal.items():
        what = f"transaction {transaction} of {writer} ({word})"
        due = plan(seed, writer, transaction)
        if transaction in there:
            assert word in (ASKED, COMMITTED), f"{what} is visible"
            whole = {
                number: [value_of(writer, transaction, index, due.size) for index in range(count)]
                for number, count in due.counts.items()
            }
            assert there[transaction] == whole, f"{what}: {there[transaction]} is there of {whole}"
        else:
            assert word in (ASKED, BEGUN, ABORTED), f"{what} is lost"
        if word == ASKED:
            unheard += 1
            unheard_committed += transaction in there
    assert there.keys() <= journal.keys(), f"{writer} knows nothing of {there.keys() - journal.keys()}"
    return Tally(len(there), unheard, unheard_committed), max(there, default=-1)


def check_copies(
    group: str, source: Sequence[Sequence[Read]], copies: Sequence[Sequence[Read]], offsets: Mapping[int, int]
) -> None:
    """The output has each committed input record before the group's offset once, in order, and no other."""
    for number in range(PARTITIONS):
        end = offsets.get(number, 0)
        due = [f"{number}:{offset}:".encode() + value for offset, value in source[number] if offset < end]
        found = [value for _, value in copies[number]]
        if found != due:
            extra, missing = sorted(set(found) - set(due)), sorted(set(due) - set(found))
            raise AssertionError(
                f"{group}, partition {number} up to {end}: {len(found)} copies of {len(due)} records, "
                f"{len(found) - len(set(found))} twice, missing {missing[:3]}, too many {extra[:3]}"
            )
