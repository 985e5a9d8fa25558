"""What the load of `test_crash.py` was told, compared with the files of the broker when it is at rest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from crash import acknowledged, java_clients, keyed
from crash.acknowledged import Fault, Files
from crash.foreign import offset_commit
from crash.load import INTERNAL, SYNCED, Load
from crash.raw_workers import Topics, Trimmer
from crash.workload import DATA, GROUP, PARTITIONS, TRANSACTIONAL_GROUP, TRANSACTIONS, Transactor

_OFFSETS: Final = "__consumer_offsets"


def check_files(data: Path, load: Load, seed: int, *, kafka_reads: int) -> Files:
    """Read the files of the broker, which does not run, and compare; `kafka_reads` as in `Files`. Raises
    AssertionError."""
    topics = [DATA, SYNCED, TRANSACTIONS, java_clients.TOPIC, keyed.TOPIC, Trimmer.TOPIC]
    files = Files(data, [*topics, *Topics.NAMES, _OFFSETS], seed, kafka_reads=kafka_reads)
    acknowledged.check(faults(load, files))
    return files


def check_complete(files: Files, load: Load) -> None:
    """After a run that has come to its end: all that was acknowledged has been compared, nearly all at its offset."""
    assert files.compared >= sum(sender.acknowledged for sender in load.numbered), "not all was compared"
    untold = f"{files.untold} of {files.compared} records were acknowledged without an offset"
    assert files.untold * 10 <= files.compared, untold


def faults(load: Load, files: Files) -> Iterator[Fault]:
    """All that was acknowledged and is not in the files, and what is there that nobody has sent."""
    for sender in load.numbered:
        stored = files.partition(sender.topic, sender.partition)
        yield from acknowledged.every(sender.topic, sender.partition, files.counted(sender.due()), stored)
    places = {(sender.topic, sender.partition) for sender in load.numbered}
    for topic, partition in sorted(places):
        yield from acknowledged.nothing_else(
            topic, partition, files.partition(topic, partition), load.has_sent
        )
    for name, due in load.topics.due().items():
        yield from acknowledged.every(
            name, Topics.PARTITION, files.counted(due), files.partition(name, Topics.PARTITION)
        )
    trimmed = files.partition(Trimmer.TOPIC, 0)
    yield from acknowledged.every(Trimmer.TOPIC, 0, files.counted(load.trimmer.due()), trimmed)
    yield from keyed.faults(files, load.keyed)
    yield from _transactional_faults(load.transactor, files)
    yield from _group_faults(load, files)


def _transactional_faults(transactor: Transactor, files: Files) -> Iterator[Fault]:
    aborted = {str(number).encode() for number in transactor.aborted}
    for partition in range(PARTITIONS):
        stored = acknowledged.committed(files.partition(TRANSACTIONS, partition))
        yield from acknowledged.every(
            TRANSACTIONS, partition, files.counted(transactor.due(partition)), stored
        )
        yield from acknowledged.nothing_else(
            TRANSACTIONS, partition, stored, lambda record: record.value not in aborted
        )


def _group_faults(load: Load, files: Files) -> Iterator[Fault]:
    """The offsets of groups, by the last record of each that is in the log."""
    found: dict[str, int] = {}
    for number in range(INTERNAL):
        for record in acknowledged.committed(files.partition(_OFFSETS, number)):
            commit = offset_commit(record)
            if commit is not None and commit[1:3] == (DATA, 0):
                found[commit[0]] = commit[3]
    due = {
        GROUP: (load.committer.acknowledged, load.committer.tried),
        TRANSACTIONAL_GROUP: (max(load.transactor.committed, default=-1), load.transactor.tried),
    }
    for group, (least, most) in due.items():
        offset = found.get(group, -1)
        if least > 0 and not least <= offset <= most:
            what = f"acknowledged as committed by group {group}; committed is {offset}"
            yield Fault(DATA, 0, least, what)
