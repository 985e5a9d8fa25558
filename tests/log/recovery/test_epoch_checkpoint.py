"""A damaged or implausible `leader-epoch-checkpoint` costs no partition: the start puts it right, with one line."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from leafcuttr.log.layout.checkpoints import LEADER_EPOCHS, DamagedCheckpointError, read_leader_epochs
from leafcuttr.log.layout.partition_state import STATE_FILE
from leafcuttr.log.log import Log
from leafcuttr.offline.verify import verify_directory
from support.logs import NOW, append, batch
from support.managers import abandon, opened, spec

# Each as it may come from a disk: what the file holds, and a log of nine offsets with epochs 2, 4 and 7.
DAMAGE = {
    "gone": None,
    "empty": b"",
    "zeros": bytes(40),
    "not text": b"\xff\xfe\x00",
    "another version": b"1\n1\n0 0\n",
    "a count of digits": b"0\n" + b"9" * 5000 + b"\n",
    "fewer lines than promised": b"0\n3\n2 0\n4 3\n",
    "words": b"0\n1\nseven six\n",
    "numbers without end": b"0\n1\n7 " + b"6" * 5000 + b"\n",
    "epochs that go back": b"0\n3\n2 0\n7 3\n4 6\n",
    "offsets that go back": b"0\n3\n2 0\n4 6\n7 3\n",
    "an epoch that no batch can carry": b"0\n1\n99999999999 0\n",
    "lines behind the log end": b"0\n5\n2 0\n4 3\n7 6\n8 1000\n9 2000\n",
    "an epoch that no batch has": b"0\n1\n5 0\n",
    "less than the batches say": b"0\n1\n2 0\n",
}
EPOCHS = [(2, 0), (4, 3), (7, 6)]


def with_epochs(directory: Path, *, clean: bool, segment_bytes: int = 1 << 20) -> Path:
    """A log as Kafka leaves it after two elections; what its broker knew of it is gone unless it stopped cleanly."""
    manager = opened(directory)
    log = manager.create(spec(segment_bytes=segment_bytes))
    for epoch, start in EPOCHS:
        log.leader_epoch = epoch
        for _ in range(3):
            append(log, batch(size=200), NOW)
        assert log.log_end_offset == start + 3
    (log.directory / LEADER_EPOCHS).write_text("0\n3\n2 0\n4 3\n7 6\n")
    if clean:
        manager.close()
    else:
        abandon(manager)
        (directory / STATE_FILE).unlink(missing_ok=True)
    return log.directory / LEADER_EPOCHS


def put(path: Path, content: bytes | None) -> None:
    path.unlink() if content is None else path.write_bytes(content)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if LEADER_EPOCHS in record.message]


def assert_whole(log: Log) -> None:
    assert (log.offline, log.leader_epoch, log.log_end_offset) == (None, 7, 9)
    found = read_leader_epochs(log.directory / LEADER_EPOCHS)
    assert found[-1][0] == 7
    assert log.offset_for_leader_epoch(7) == (7, 9)
    assert append(log, batch(), NOW) == 9


@pytest.mark.one_in(2)
@pytest.mark.parametrize("segment_bytes", [1 << 20, 400], ids=["one segment", "many segments"])
@pytest.mark.parametrize("name", DAMAGE)
def test_after_a_kill_it_is_put_right_from_the_batches(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, segment_bytes: int
) -> None:
    path = with_epochs(tmp_path, clean=False, segment_bytes=segment_bytes)
    put(path, DAMAGE[name])
    with caplog.at_level(logging.WARNING):
        manager = opened(tmp_path, spec(segment_bytes=segment_bytes))
    log = next(iter(manager.logs.values()))
    assert read_leader_epochs(path) == EPOCHS
    assert len(lines(caplog)) == 1
    assert_whole(log)
    manager.close()
    assert not verify_directory(tmp_path).problems


@pytest.mark.parametrize("name", DAMAGE)
async def test_after_a_clean_stop_it_is_put_right_in_the_background(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    path = with_epochs(tmp_path, clean=True)
    put(path, DAMAGE[name])
    with caplog.at_level(logging.WARNING):
        manager = opened(tmp_path, spec())
        await manager.inspect()
    log = next(iter(manager.logs.values()))
    assert read_leader_epochs(path) == EPOCHS
    assert len(lines(caplog)) == 1
    assert_whole(log)
    manager.close()


@pytest.mark.parametrize("clean", [True, False])
async def test_a_sound_one_is_left_as_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, clean: bool
) -> None:
    path = with_epochs(tmp_path, clean=clean)
    before = path.stat()
    with caplog.at_level(logging.WARNING):
        manager = opened(tmp_path, spec())
        await manager.inspect()
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert not lines(caplog)
    assert_whole(next(iter(manager.logs.values())))
    manager.close()


@pytest.mark.parametrize("name", [name for name, content in DAMAGE.items() if content])
def test_whatever_is_in_it_reads_or_is_damaged(tmp_path: Path, name: str) -> None:
    path = tmp_path / LEADER_EPOCHS
    path.write_bytes(DAMAGE[name] or b"")
    try:
        found = read_leader_epochs(path)
    except DamagedCheckpointError as error:
        assert len(str(error)) < 300 + len(str(path))
    else:
        assert found == sorted(found)


def test_a_new_topic_with_no_records_and_a_damaged_one_begins_at_epoch_0(tmp_path: Path) -> None:
    manager = opened(tmp_path)
    log = manager.create(spec())
    abandon(manager)
    put(log.directory / LEADER_EPOCHS, bytes(8))
    manager = opened(tmp_path, spec())
    log = next(iter(manager.logs.values()))
    assert (log.offline, log.leader_epoch, append(log, batch(), NOW)) == (None, 0, 0)
    manager.close()
    assert read_leader_epochs(log.directory / LEADER_EPOCHS) == [(0, 0)]
