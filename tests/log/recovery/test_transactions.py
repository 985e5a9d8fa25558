"""Transactions come back: after a kill at any moment, from the soft checkpoint, from the recovery point, from nothing;
and Kafka's own log gives the transaction index that Kafka wrote."""

import random
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import trio
import trio.testing

from leafcuttr.log.append.rules import Origin
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.layout.partition_state import STATE_FILE
from leafcuttr.log.log import Log
from leafcuttr.log.manager import LogManager
from leafcuttr.log.read.aborted import read_txn_index
from leafcuttr.log.segment.txn_index import AbortedTransaction
from leafcuttr.offline.repair import plan_repair
from leafcuttr.offline.repair_steps import rebuild_indexes
from leafcuttr.offline.verify import KnownTopic, verify_directory
from leafcuttr.runtime.writers import AT_ONCE
from leafcuttr_sdk import TopicPartition
from support.logs import NOW, append, append_marker, batch, write_by_worker
from support.managers import TOPIC_ID, abandon, opened, spec

TP = TopicPartition("t", 0)
SMALL = {"segment_bytes": 1500, "index_interval_bytes": 100}
KAFKA = Path(__file__).parents[1] / "fixtures" / "kafka-4.3.1"
KNOWN = {"t": KnownTopic(TOPIC_ID, 1, False)}


class Writer:
    """Producers 1 to 4 with transactions, 5 without, in no order that anybody could guess."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sequences: dict[int, int] = {}
        self.epochs: dict[int, int] = {}

    def step(self, log: Log) -> None:
        producer = self.random.randint(1, 5)
        open_ = log.ongoing(producer) >= 0
        epoch = self.epochs.get(producer, 0)
        if producer < 5 and (self.random.random() < 0.2 or (open_ and self.random.random() < 0.3)):
            if self.random.random() < 0.3:  # as transaction version 2 does it
                self.epochs[producer] = epoch = epoch + 1
                self.sequences[producer] = 0
            commit = self.random.random() < 0.4
            append_marker(log, producer, epoch, commit=commit, coordinator_epoch=1, now_ms=NOW)
            return
        count = self.random.randint(1, 3)
        sequence = self.sequences.get(producer, 0)
        fields = {"producer_id": producer, "producer_epoch": epoch, "base_sequence": sequence}
        append(log, batch(count, transactional=producer < 5, **fields), NOW)
        self.sequences[producer] = sequence + count


class Seen(NamedTuple):
    """What readers and producers can know of a log."""

    end: int
    stable: int
    aborted: list[AbortedTransaction]
    producers: list[tuple[int, int, int, int, int]]


def seen(log: Log) -> Seen:
    return Seen(
        log.log_end_offset,
        log.last_stable_offset,
        log.aborted_transactions(0, log.log_end_offset),
        sorted(
            (
                one.producer_id,
                one.epoch,
                one.last_sequence,
                one.coordinator_epoch,
                one.current_txn_first_offset,
            )
            for one in log.producers
        ),
    )


def again(directory: Path) -> LogManager:
    return opened(directory, spec(**SMALL))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kept", ["state", "recovery point", "nothing"])
@pytest.mark.parametrize("seed", range(6))
async def test_killed_at_any_moment(tmp_path: Path, seed: int, kept: str) -> None:
    writer = Writer(seed)
    manager = opened(tmp_path)
    log = manager.create(spec(**SMALL))
    for _ in range(4):
        for _ in range(writer.random.randint(0, 40)):
            writer.step(log)
        if kept != "nothing" and writer.random.random() < 0.7:
            await manager.soft_checkpoint()
        if kept == "recovery point" and writer.random.random() < 0.5:
            await manager.checkpoint()
        for _ in range(writer.random.randint(0, 25)):
            writer.step(log)
        before = seen(log)
        abandon(manager)
        if kept != "state":
            (tmp_path / STATE_FILE).unlink(missing_ok=True)
        manager = again(tmp_path)
        log = manager.logs[TP]
        assert log.offline is None
        assert seen(log) == before
    manager.close()
    checked = verify_directory(tmp_path, deep=True, topics=KNOWN)
    assert [str(finding) for finding in checked.findings] == []
    manager = again(tmp_path)
    assert seen(manager.logs[TP]) == before
    abandon(manager)


@asynccontextmanager
async def write_in_flight(log: Log, size: int) -> AsyncIterator[None]:
    """A batch is on its way to the log, and does not arrive before the end: every writer is taken."""
    writers = log.resources.writers
    writers.limit(0)
    async with trio.open_nursery() as nursery:
        data = batch(1, size=size)
        log.stage(memoryview(bytearray(data)), Origin.CLIENT, now_ms=NOW)
        nursery.start_soon(write_by_worker, log)
        await trio.testing.wait_all_tasks_blocked()
        assert log.writing is not None
        yield
        writers.limit(AT_ONCE)


@pytest.mark.parametrize("size", [10, 1350], ids=["in the segment", "which rolls"])
async def test_a_checkpoint_while_a_write_is_in_flight(tmp_path: Path, size: int) -> None:
    """An aborted transaction is never behind the line of its log and not in the index: nobody would look for it."""
    manager = opened(tmp_path)
    log = manager.create(spec(**SMALL))
    transaction = {"producer_id": 1, "producer_epoch": 0, "transactional": True}
    await manager.soft_checkpoint()
    for number in range(2):
        append(log, batch(1, base_sequence=number, **transaction), NOW)
        append_marker(log, 1, 0, commit=False, coordinator_epoch=0, now_ms=NOW)
    async with write_in_flight(log, size):
        await manager.soft_checkpoint()
        shutil.copytree(tmp_path, tmp_path / "killed")
    killed = again(tmp_path / "killed")
    assert killed.logs[TP].aborted_transactions(0, 4) == [
        AbortedTransaction(1, 0, 1, 2),
        AbortedTransaction(1, 2, 3, 4),
    ]
    abandon(killed)
    for _ in range(2):  # the first also syncs the segment that is done with, which is a change
        await manager.soft_checkpoint()
    assert not manager.directories[0]._record.changed(TP, log)
    manager.close()


def test_index_entries_behind_a_cut_go(tmp_path: Path) -> None:
    """What the loss of power takes from the log is also gone from the index."""
    manager = opened(tmp_path)
    log = manager.create(spec())
    for number in range(3):
        append(log, batch(1, producer_id=1, producer_epoch=0, base_sequence=number, transactional=True), NOW)
        append_marker(log, 1, 0, commit=False, coordinator_epoch=0, now_ms=NOW)
    log.flush_indexes()
    size = log.size
    abandon(manager)
    with (tmp_path / "t-0" / f"{0:020d}.log").open("rb+") as file:
        file.truncate(size - 10)
    (tmp_path / STATE_FILE).unlink(missing_ok=True)
    manager = again(tmp_path)
    log = manager.logs[TP]
    assert (log.log_end_offset, log.last_stable_offset) == (5, 4)
    assert log.aborted_transactions(0, 9) == [
        AbortedTransaction(1, 0, 1, 2),
        AbortedTransaction(1, 2, 3, 4),
    ]
    append_marker(log, 1, 0, commit=False, coordinator_epoch=0, now_ms=NOW)
    assert log.aborted_transactions(4, 9) == [AbortedTransaction(1, 4, 5, 6)]
    manager.close()


@pytest.mark.parametrize("folder", ["transactions-0", "transactions-1"])
def test_kafkas_log_gives_kafkas_index(tmp_path: Path, folder: str) -> None:
    copy = Path(shutil.copytree(KAFKA / folder, tmp_path / folder))
    index = copy / f"{0:020d}.txnindex"
    written = index.read_bytes()
    assert len(read_txn_index(str(index), FilePool())) == 2
    rebuild_indexes(copy, 0)
    assert index.read_bytes() == written


def wrote(directory: Path) -> Path:
    """A closed directory with aborted transactions in its first segment; the path of their index."""
    manager = opened(directory)
    log = manager.create(spec(**SMALL))
    writer = Writer(3)
    for _ in range(80):
        writer.step(log)
    manager.close()
    return min((directory / "t-0").glob("*.txnindex"))


@pytest.mark.parametrize("damage", ["cut", "first", "stable", "gone", "odd", "version", "more"])
def test_verify_finds_and_repair_mends_a_damaged_index(tmp_path: Path, damage: str) -> None:
    index = wrote(tmp_path)
    sound = index.read_bytes()
    changed = bytearray(sound)
    match damage:
        case "cut":
            del changed[-34:]
        case "first":
            changed[17] ^= 1
        case "stable":
            changed[33] ^= 1
        case "odd":
            changed += b"?"
        case "version":
            changed[1] = 1
        case "more":
            changed += changed[-34:-17] + bytes(7) + b"\xff" + bytes(9)
    index.write_bytes(changed)
    if damage == "gone":
        index.unlink()
    checked = verify_directory(tmp_path, topics=KNOWN)
    assert {finding.path for finding in checked.problems} == {index}
    for action in plan_repair(tmp_path, topics=KNOWN).actions:
        action.apply()
    assert index.read_bytes() == sound
    assert verify_directory(tmp_path, topics=KNOWN).problems == []
