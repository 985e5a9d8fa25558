"""Whether a file system can do what the broker needs. Each ability is tried in a folder that is removed again."""

import errno
import fcntl
import os
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from leafcuttr.cli.doctor.findings import DoctorFinding, fine, problem, warning
from leafcuttr.cli.doctor.local.directory import IN_MEMORY, mount_of
from leafcuttr.cli.doctor.local.site import Site

_LONGEST_NAME: Final = 255


class LacksError(Exception):
    """The ability is not there, without an error of the system that would say so."""


def can_do_what_is_needed(site: Site) -> Iterator[DoctorFinding]:
    """Locks, writes that wait for the disk, syncs, renames, sendfile, SQLite and long names work."""
    standing = site.standing
    try:
        folder = Path(tempfile.mkdtemp(prefix=".leafcuttr-doctor-", dir=standing))
    except OSError as error:
        yield problem(
            f"no folder can be made in {standing}: {error.strerror}",
            "The broker makes one for each partition.",
            "free some space, or use another directory: " + site.directory_line("/var/lib/leafcuttr"),
        )
        return
    lacking = []
    try:
        for ability, (tried, why, stops) in _ABILITIES.items():
            try:
                tried(folder)
            except (OSError, LacksError, sqlite3.Error) as error:
                lacking.append(ability)
                words = getattr(error, "strerror", None) or str(error)
                yield (problem if stops else warning)(
                    f"{mount_of(standing).kind} at {mount_of(standing).point} has no {ability}: {words}",
                    why,
                    "a local disk with ext4, xfs or btrfs: " + site.directory_line("/var/lib/leafcuttr"),
                )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not lacking:
        yield fine(f"{mount_of(standing).kind} has all that is needed: {', '.join(_ABILITIES)}")


def _lock(folder: Path) -> None:
    with (folder / "lock").open("w") as file:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _write_through(folder: Path) -> None:
    fd = os.open(folder / "through", os.O_RDWR | os.O_CREAT | os.O_DSYNC)
    try:
        os.pwritev(fd, [b"leaf", b"cuttr"], 0)
        os.fdatasync(fd)
    finally:
        os.close(fd)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _rename_over(folder: Path) -> None:
    (folder / "old").write_bytes(b"old")
    (folder / "new").write_bytes(b"new")
    (folder / "new").replace(folder / "old")
    if (folder / "old").read_bytes() != b"new":
        raise LacksError("the old bytes are still there")


def _sendfile(folder: Path) -> None:
    (folder / "sent").write_bytes(b"leafcuttr")
    ours, theirs = socket.socketpair()
    with ours, theirs, (folder / "sent").open("rb") as file:
        os.sendfile(ours.fileno(), file.fileno(), 0, 9)


def _database(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "probe.sqlite", timeout=0, isolation_level=None)) as database:
        if database.execute("PRAGMA journal_mode=WAL").fetchone() != ("wal",):
            raise LacksError("no shared memory between processes, so no write-ahead log")
        database.execute("CREATE TABLE probe (one)")


def _long_names(folder: Path) -> None:
    (folder / ("n" * _LONGEST_NAME)).mkdir()


def _upper_and_lower_case(folder: Path) -> None:
    (folder / "case").mkdir()
    if (folder / "CASE").exists():
        raise LacksError("case and CASE are the same file")


def _read_from_memory_only(folder: Path) -> None:
    if mount_of(folder).kind in IN_MEMORY:
        return  # nothing to wait for
    (folder / "cached").write_bytes(b"leafcuttr")
    with (folder / "cached").open("rb") as file:
        try:
            os.preadv(file.fileno(), [bytearray(9)], 0, os.RWF_NOWAIT)
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                raise LacksError("preadv2 with RWF_NOWAIT is not supported") from None
            raise


_ABILITIES: Final[dict[str, tuple[Callable[[Path], None], str, bool]]] = {
    "locks": (_lock, "Two brokers could use one directory and destroy it; the broker does not start.", True),
    "writes that wait for the disk (O_DSYNC)": (
        _write_through,
        "Topic sync mode acknowledges only what is on the disk.",
        True,
    ),
    "syncing of folders": (_sync_folder, "A new segment could be lost after a power loss.", True),
    "renaming over a file": (_rename_over, "Checkpoints are replaced whole, never in part.", True),
    "sendfile": (_sendfile, "Consumers are sent records from the page cache by it.", True),
    "SQLite's write-ahead log": (_database, "The broker keeps topics and settings in SQLite.", True),
    "names of 255 bytes": (_long_names, "A topic's name may have 249; its folder adds the partition.", False),
    "upper and lower case": (
        _upper_and_lower_case,
        "The topics Orders and orders would share a folder.",
        False,
    ),
    "reading from memory only": (
        _read_from_memory_only,
        "A consumer of old records may make all others wait for the disk.",
        False,
    ),
}
"""By name: how it is tried, why it matters, and whether the broker cannot do without."""
