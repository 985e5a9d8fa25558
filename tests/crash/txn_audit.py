"""From the log alone: which transactions there are, and whether that is what clients were told.

Partitions are read as files by kio (`foreign`): which transactions are committed follows from the control records, not
from any index.
A fault is an AssertionError that names the transaction, or the record by its partition and offset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crash.acknowledged import Due, Files
from crash.foreign import Record, offset_commit, transaction_state
from crash.txn_plan import (
    ABORTED,
    ASKED,
    BEGUN,
    COMMITTED,
    INPUT,
    PARTITIONS,
    Journal,
    copy_of,
    plan,
    value_of,
)

Read = tuple[int, bytes]
"""What a reader of a partition gets: offset and value."""


class Partition(NamedTuple):
    """The records of a partition in order, by how their transactions ended."""

    committed: list[Record]
    aborted: list[Record]

    @property
    def read_committed(self) -> list[Read]:
        return [(record.offset, record.value or b"") for record in self.committed]

    @property
    def raw(self) -> list[Read]:
        return sorted((each.offset, each.value or b"") for each in (*self.committed, *self.aborted))


def partition(files: Files, topic: str, number: int) -> Partition:
    """Raises AssertionError where a transaction is open, or an epoch goes back: a zombie has written."""
    where = f"{topic}-{number}"
    committed: list[Record] = []
    aborted: list[Record] = []
    pending: dict[int, list[Record]] = {}
    epochs: dict[int, int] = {}
    for record in files.partition(topic, number):
        producer, epoch = record.producer_id, record.producer_epoch
        if producer >= 0:
            known = epochs.get(producer, 0)
            assert epoch >= known, f"{where}: offset {record.offset} has epoch {epoch} after {known}"
            epochs[producer] = epoch
        if record.commits is not None:
            ended = committed if record.commits else aborted
            ended += pending.pop(producer, [])
        elif record.transactional:
            pending.setdefault(producer, []).append(record)
        else:
            committed.append(record)
    assert not pending, f"{where}: transactions of {sorted(pending)} are open"
    return Partition(sorted(committed, key=_offset), sorted(aborted, key=_offset))


def _offset(record: Record) -> int:
    return record.offset


def group_offsets(files: Files, partitions: int) -> dict[tuple[str, int], int]:
    """The committed offset of the input topic's partitions, by group and partition."""
    found: dict[tuple[str, int], int] = {}
    for number in range(partitions):
        for record in partition(files, "__consumer_offsets", number).committed:
            commit = offset_commit(record)
            if commit is not None and commit[1] == INPUT and commit[3] >= 0:
                found[commit[0], commit[2]] = commit[3]
    return found


def transaction_states(files: Files, partitions: int) -> dict[str, str]:
    """The state of each transactional id."""
    found = {}
    for number in range(partitions):
        for record in partition(files, "__transaction_state", number).committed:
            state = transaction_state(record)
            if state is not None:
                found[state[0]] = state[1]
    return found


def due_of_writer(journal: Journal, seed: int, writer: str) -> dict[int, list[Due]]:
    """The records of a writer whose transactions were acknowledged as committed, by partition."""
    words, due = journal.transactions(), _by_partition()
    for number, number_of_partition, index, offset in journal.places():
        if words.get(number) == COMMITTED:
            value = value_of(writer, number, index, plan(seed, writer, number).size)
            due[number_of_partition].append(Due(offset, None, value))
    return due


def due_of_copier(journal: Journal, source: Sequence[Sequence[Record]]) -> dict[int, list[Due]]:
    """The same of a copier; `source` are the records that it copies, by partition."""
    words, due = journal.transactions(), _by_partition()
    values = [{record.offset: record.value or b"" for record in records} for records in source]
    for number, partition, copied, offset in journal.places():
        if words.get(number) == COMMITTED:
            value = copy_of(partition, copied, values[partition].get(copied, b""))
            due[partition].append(Due(offset, None, value))
    return due


def _by_partition() -> dict[int, list[Due]]:
    return {number: [] for number in range(PARTITIONS)}


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
        due = [copy_of(number, offset, value) for offset, value in source[number] if offset < end]
        found = [value for _, value in copies[number]]
        if found != due:
            extra, missing = sorted(set(found) - set(due)), sorted(set(due) - set(found))
            raise AssertionError(
                f"{group}, partition {number} up to {end}: {len(found)} copies of {len(due)} records, "
                f"{len(found) - len(set(found))} twice, missing {missing[:3]}, too many {extra[:3]}"
            )
