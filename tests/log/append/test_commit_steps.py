"""A commit step by step: writes that take a part only, what is synced before the answer, errors of every kind."""

import errno
import logging
import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from leafcuttr.errors import StorageError
from leafcuttr.log.append import commit
from leafcuttr.log.append.commit import IOV_MAX, write_all
from leafcuttr.log.append.pending_write import DONE
from leafcuttr.log.append.rules import Origin
from leafcuttr.log.append.staged import WriteError
from leafcuttr.log.files.failed_sync import MARK
from leafcuttr.log.log import Log
from leafcuttr.log.segment.segment import Segment
from leafcuttr.log.segment.sync import sync_records
from support.logs import NOW, CalmDisk, append, batch, make_log, read_all, write_now

Views = list["memoryview | bytearray"]


def stage(log: Log, data: bytearray) -> int:
    return log.stage(memoryview(data), Origin.CLIENT, now_ms=NOW).base_offset


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


# Writing


def short_writes(monkeypatch: pytest.MonkeyPatch, at_most: int) -> list[int]:
    """The kernel takes so many bytes of a call at most; how many it took of each."""
    taken: list[int] = []

    def pwritev(fd: int, views: Views, position: int) -> int:
        assert len(views) <= IOV_MAX
        taken.append(os.pwrite(fd, b"".join(views)[:at_most], position))
        return taken[-1]

    monkeypatch.setattr(os, "pwritev", pwritev)
    return taken


@pytest.mark.parametrize("at_most", [1, 2, 3, 4, 5, 7, 9, 10, 11, 14, 15, 100])
@pytest.mark.parametrize("sizes", [(5, 3, 7), (1, 1, 13), (15,), (10, 0, 5)])
def test_what_the_kernel_did_not_take_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], at_most: int
) -> None:
    views: Views = [bytearray(os.urandom(size)) for size in sizes]
    whole = b"".join(views)
    taken = short_writes(monkeypatch, at_most)
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    try:
        write_all(fd, views, 4, len(whole))
    finally:
        os.close(fd)
    assert (tmp_path / "f").read_bytes() == bytes(4) + whole
    assert sum(taken) == len(whole)


@pytest.mark.parametrize("count", [IOV_MAX - 1, IOV_MAX, IOV_MAX + 1, 3 * IOV_MAX])
@pytest.mark.parametrize("at_most", [500, 100_000])
def test_as_many_pieces_as_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, at_most: int
) -> None:
    views: Views = [bytearray([number % 251]) for number in range(count)]
    short_writes(monkeypatch, at_most)
    fd = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    try:
        write_all(fd, views, 0, count)
    finally:
        os.close(fd)
    assert (tmp_path / "f").read_bytes() == b"".join(views)


@pytest.mark.timeout(20)
def test_a_file_that_takes_nothing_more_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_log(tmp_path)
    stage(log, batch())
    short_writes(monkeypatch, 0)
    with pytest.raises(WriteError, match="the file takes no more bytes"):
        write_now(log)
    assert log.offline is None


def test_the_write_pressure_is_told_what_a_write_took(
    tmp_path: Path,
) -> None:
    told: list[float] = []

    class Disk(CalmDisk):
        def wrote(self, seconds: float) -> None:
            told.append(seconds)

    began = monotonic()
    append(make_log(tmp_path, pressure=Disk()), batch(), NOW)
    assert len(told) == 1
    assert 0 <= told[0] <= monotonic() - began


# Before the answer


def synced_by(log: Log, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the segments that the commit of what is staged forces to disk."""
    names: list[str] = []
    real = os.fdatasync

    def fdatasync(fd: int) -> None:
        names.append(Path(f"/proc/self/fd/{fd}").readlink().name)
        real(fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fdatasync)
        write_now(log)
    return [name.removesuffix(".log").lstrip("0") or "0" for name in names if name.endswith(".log")]


def test_every_so_many_messages_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_log(tmp_path, flush_messages=3)
    seen = []
    for count in (1, 1, 1, 2, 1, 2, 4, 1):
        stage(log, batch(count))
        seen.append((bool(synced_by(log, monkeypatch)), log.unflushed))
    assert seen == [
        (False, 1), (False, 2), (True, 0), (False, 2), (True, 0), (False, 2), (True, 0), (False, 1),
    ]  # fmt: skip


def test_all_segments_since_the_last_sync_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_log(tmp_path, flush_messages=4, segment_bytes=2 * len(batch(size=400)))
    for _ in range(4):
        append(log, batch(size=400), NOW)
    assert (log.unflushed, [segment.base_offset for segment in log.segments]) == (0, [0, 2])
    for _ in range(3):
        append(log, batch(size=400), NOW)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4, 6]
    stage(log, batch(size=400))
    assert synced_by(log, monkeypatch) == ["4", "6"]
    assert log.unflushed == 0


def test_the_first_batch_of_a_segment_syncs_the_one_before_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(tmp_path, flush_messages=2, segment_bytes=len(batch(size=400)))
    append(log, batch(size=400), NOW)
    stage(log, batch(size=400))
    assert synced_by(log, monkeypatch) == ["0", "1"]
    stage(log, batch(2, size=100))
    assert synced_by(log, monkeypatch) == ["2"]


@pytest.mark.parametrize("last", [True, False])
def test_a_segment_that_retention_has_taken_meanwhile_needs_no_sync(tmp_path: Path, last: bool) -> None:
    log = make_log(tmp_path, flush_messages=3, segment_bytes=len(batch(size=400)))
    for _ in range(2):
        append(log, batch(size=400), NOW)
    gone = log.segments[-1 if last else 0]

    def sync_unless_gone(segment: Segment) -> None:
        if segment.base_offset == (2 if last else gone.base_offset):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), segment.path(".log"))
        sync_records(segment)

    stage(log, batch(size=400))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("leafcuttr.log.append.commit.sync_records", sync_unless_gone)
        if last:
            with pytest.raises(WriteError, match="No such file"):
                write_now(log)
        else:
            write_now(log)
    assert log.log_end_offset == (2 if last else 3)


# What fails


def test_nothing_staged_is_nothing_to_write(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    log.sync_failed = True
    write_now(log)
    assert commit.commit(log) is DONE
    assert log.offline is None


def test_what_was_staged_before_a_sync_failed_is_refused(tmp_path: Path) -> None:
    log = make_log(tmp_path)
    append(log, batch(), NOW)
    stage(log, batch())
    log.sync_failed, log.offline = True, "its disk is failing"
    with pytest.raises(WriteError, match="its disk is failing") as failed:
        write_now(log)
    assert failed.value.written_to == log.log_end_offset == log.next_offset == 1


def test_a_mistake_of_ours_is_answered_as_a_failed_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = make_log(tmp_path)
    append(log, batch(2), NOW)
    content = read_all(log)
    stage(log, batch(size=300))
    with monkeypatch.context() as patch:
        patch.setattr(commit, "publish", failing(KeyError("a mistake")))
        failure = commit.commit(log).failure
    assert isinstance(failure, WriteError)
    assert (str(failure), failure.written_to) == (f"Writing to t-0 in {tmp_path} failed: 'a mistake'", 2)
    assert [(record.levelno, bool(record.exc_info)) for record in caplog.records][-1] == (logging.ERROR, True)
    assert (log.log_end_offset, log.next_offset, log.groups, read_all(log)) == (2, 2, [], content)
    assert os.path.getsize(log.segments[0].path(".log")) == len(content)  # noqa: PTH202
    assert append(log, batch(), NOW) == 2


def test_an_interrupt_is_passed_on_and_leaves_nothing_staged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(tmp_path)
    stage(log, batch())
    with monkeypatch.context() as patch:
        patch.setattr(commit, "publish", failing(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            commit.commit(log)
    assert (log.log_end_offset, log.next_offset, log.groups) == (0, 0, [])
    assert append(log, batch(), NOW) == 0


@pytest.mark.parametrize(
    ("error", "disk_full"), [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EIO, False)]
)
def test_a_failed_write_says_which_log_and_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, disk_full: bool
) -> None:
    log = make_log(tmp_path)
    append(log, batch(3), NOW)
    stage(log, batch())
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", failing(OSError(error, os.strerror(error))))
        failure = commit.commit(log).failure
    assert failure is not None
    assert str(failure) == f"Writing to t-0 in {tmp_path} failed: {os.strerror(error)}"
    assert failure.written_to == 3
    assert failure.disk_full is failure.again().disk_full is disk_full


@pytest.mark.parametrize("open_file", [True, False])
@pytest.mark.parametrize("taken", [0, 8, 16])
@pytest.mark.parametrize("error", [errno.EROFS, errno.EIO])
def test_a_file_that_cannot_be_cut_back_is_in_doubt_unless_it_took_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_file: bool, taken: int, error: int
) -> None:
    """A file system that has become read-only takes no cut either; but there is nothing to cut if no byte came in."""
    log = make_log(tmp_path)
    append(log, batch(), NOW)
    segment, raised = log.segments[0], OSError(error, os.strerror(error))
    position = segment.size
    stage(log, batch())

    def pwritev(fd: int, views: Views, position: int) -> int:
        if taken:
            os.pwrite(fd, bytes(taken - 1) + b"x", position)
        if not open_file:
            log.pool.close(segment)
        raise raised

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", pwritev)
        patch.setattr(os, "ftruncate", failing(raised))
        patch.setattr(os, "truncate", failing(raised))
        with pytest.raises(StorageError, match=os.strerror(error)):
            write_now(log)
    harmless = error == errno.EROFS and not taken
    assert (log.offline is None) is harmless
    if harmless:
        assert segment.size == position
        assert append(log, batch(), NOW) == 1


@pytest.mark.parametrize(
    ("error", "taken", "in_doubt"),
    [
        (errno.EIO, 0, True),
        (errno.EIO, 16, True),
        (errno.ENOSPC, 0, False),
        (errno.EDQUOT, 0, False),
        (errno.EFBIG, 0, False),
        (errno.EROFS, 0, False),
        (errno.EROFS, 16, True),
    ],
)
def test_a_write_that_syncs_and_fails_leaves_the_file_in_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int, taken: int, in_doubt: bool
) -> None:
    """Unless the error says that nothing was taken: any other may be that of its sync."""
    log = make_log(tmp_path, lc_log_sync_always=True)
    append(log, batch(), NOW)
    stage(log, batch())

    def pwritev(fd: int, views: Views, position: int) -> int:
        if taken:
            os.pwrite(fd, b"x" * taken, position)
        raise OSError(error, os.strerror(error))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", pwritev)
        with pytest.raises(StorageError, match=os.strerror(error)):
            write_now(log)
    assert (log.sync_failed, (tmp_path / MARK).exists()) == (in_doubt, in_doubt)
    assert (log.offline is not None) is in_doubt
    if not in_doubt:
        assert append(log, batch(), NOW) == 1


def test_a_write_that_does_not_sync_and_fails_leaves_no_doubt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(tmp_path)
    stage(log, batch())
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", failing(OSError(errno.EIO, os.strerror(errno.EIO))))
        with pytest.raises(StorageError):
            write_now(log)
    assert (log.sync_failed, log.offline, (tmp_path / MARK).exists()) == (False, None, False)
