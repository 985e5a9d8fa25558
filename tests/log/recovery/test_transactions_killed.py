"""A process that writes transactions is killed at each point of an append, a roll and a checkpoint: what the next start
makes of it is what the log alone says."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from leafcuttr.log.layout.partition_state import STATE_FILE
from leafcuttr.log.log import Log
from leafcuttr.log.segment.txn_index import AbortedTransaction
from leafcuttr.offline.verify import KnownTopic, verify_directory
from leafcuttr_sdk import TopicPartition
from support.logs import NOW, append, append_marker, batch
from support.managers import TOPIC_ID, abandon, opened, spec

SMALL = {"segment_bytes": 1500, "index_interval_bytes": 100}
TOLD = "told"

CHILD = """
import sys, trio
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_transactions_killed import write
trio.run(write, Path(sys.argv[1]))
"""


async def write(directory: Path) -> None:
    """Transactions without end, with a checkpoint now and then; what is acknowledged is noted in a file."""
    manager = opened(directory)
    log = manager.create(spec(**SMALL))
    with (directory / TOLD).open("wb", buffering=0) as told:
        for number in range(10_000):
            producer = number % 3
            fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": number // 3}
            append(log, batch(1, transactional=True, **fields), NOW)
            if number % 4 == 0:
                append_marker(log, producer, 0, commit=number % 8 == 0, coordinator_epoch=0, now_ms=NOW)
            told.write(log.log_end_offset.to_bytes(8, "big"))
            if number % 17 == 16:
                await manager.soft_checkpoint()
            if number % 60 == 59:
                await manager.checkpoint()


def aborted_and_open(directory: Path) -> tuple[int, int, list[AbortedTransaction], list[tuple[int, int]]]:
    manager = opened(directory, spec(**SMALL))
    log: Log = manager.logs[TopicPartition("t", 0)]
    assert log.offline is None
    found = (
        log.log_end_offset,
        log.last_stable_offset,
        log.aborted_transactions(0, log.log_end_offset),
        sorted((one.producer_id, one.current_txn_first_offset) for one in log.producers),
    )
    log.flush_indexes()
    abandon(manager)
    return found


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "point",
    [
        "append.written:50",
        "append.published:51",
        "roll.before:4",
        "roll.snapshot-written:5",
        "roll.file-created:5",
        "roll.done:6",
        "soft-checkpoint.written:3",
        "soft-checkpoint.renamed:4",
        "checkpoint.synced:2",
        "checkpoint.renamed:3",
    ],
)
def test_killed(tmp_path: Path, point: str) -> None:
    directory = tmp_path / "data"
    directory.mkdir()
    environment = {**os.environ, "LEAFCUTTR_CRASH_POINT": point}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    arguments = [sys.executable, "-c", CHILD, str(directory), str(Path(__file__).parent)]
    done = subprocess.run(
        arguments, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    told = (directory / TOLD).read_bytes()
    (directory / TOLD).unlink()
    from_nothing = tmp_path / "nothing"
    shutil.copytree(directory, from_nothing)
    for path in (
        *from_nothing.glob("*checkpoint"),
        *from_nothing.glob("t-0/*.*index"),
        *from_nothing.glob("t-0/*.snapshot"),
    ):
        path.unlink()
    (from_nothing / STATE_FILE).unlink(missing_ok=True)
    found = aborted_and_open(directory)
    assert found == aborted_and_open(from_nothing)
    assert found[0] >= int.from_bytes(told[-8:], "big")
    assert found[2]
    for each in (directory, from_nothing):
        assert verify_directory(each, topics={"t": KnownTopic(TOPIC_ID, 1, False)}).findings == []
