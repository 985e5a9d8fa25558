"""After a cut and what came after it: the files of the broker, which is at rest again, read by kio, and compared with
what its clients were told before the cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from crash import acknowledged
from crash.acknowledged import ALL, NONE, Due, Fault, Files
from crash.foreign import Record
from crash.powerloss.promises import Witness
from crash.powerloss.told import Partition, Topic


def check_files(witness: Witness, data: Path, *, kafka_reads_too: bool = False) -> int:
    """Raises AssertionError with partition and offset of what is missing; returns how many records were compared.
    `kafka_reads_too`: DumpLogSegments reads all partitions as kio does."""
    topics = [name for name, topic in witness.told.topics.items() if topic.there]
    files = Files(data, topics, 0, kafka_reads=ALL if kafka_reads_too else NONE)
    acknowledged.check(_faults(witness, files, topics))
    return files.compared


def _faults(witness: Witness, files: Files, topics: list[str]) -> Iterator[Fault]:
    for name in topics:
        topic = witness.told.topics[name]
        for number, told in enumerate(topic.partitions):
            stored = [_named(record) for record in files.partition(name, number)]
            due = files.counted(_due(topic, told, witness.end_of(name, number)))
            if topic.config.get("cleanup.policy") == "compact":
                yield from _latest(name, number, due, stored)
            else:
                yield from acknowledged.every(name, number, due, stored)


def _named(record: Record) -> Record:
    """With the value that marks name: senders have filled it up."""
    return record if record.value is None else record._replace(value=record.value.rstrip(b"."))


def _due(topic: Topic, told: Partition, end: int) -> Iterator[Due]:
    """What was acknowledged and has to be there: in topic sync mode all of it, else what the broker has had since the
    start after the cut, which ended at `end`, but for what was asked to be deleted."""
    end = told.end if topic.sync else end
    for offset, value in sorted(told.acked.items()):
        if max(told.lowest, told.low) <= offset < end:
            key = told.sent[value]
            yield Due(offset, None if key is None else key.encode(), value.encode())


def _latest(name: str, number: int, due: list[Due], stored: list[Record]) -> Iterator[Fault]:
    """Numbers of batches rise, so that what is newer is known by its offset alone."""
    last = {one.key: one for one in due if one.key is not None}
    yield from acknowledged.latest(
        name, number, last, stored,
        is_newer=lambda key, record: record.offset > last[key].offset,
        may_be_gone=lambda key: False,
    )  # fmt: skip
