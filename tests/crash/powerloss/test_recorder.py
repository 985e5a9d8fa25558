"""The recorder sees every call that changes a file: what it has written down makes the same files again. And the model
of the disk keeps of it what was synced."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from crash.powerloss.disk import Disk, Fate, Outcome
from crash.powerloss.recording import Recorder, tree

# All ways in which CPython and SQLite change files; the last line of each folder says what is synced of it.
PROGRAM = """
import os, shutil, sqlite3, subprocess, sys
from pathlib import Path
root = Path(sys.argv[1])

def sync(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)

(root / "a").mkdir()
with (root / "a/buffered").open("wb", buffering=16) as file:
    for number in range(100):
        file.write(b"%d," % number)
with (root / "a/text").open("a") as file:
    file.write("one")
with (root / "a/text").open("a") as file:
    file.write("two")
fd = os.open(root / "a/positions", os.O_RDWR | os.O_CREAT)
os.pwrite(fd, b"x" * 10_000, 0)
os.pwritev(fd, [b"yy", b"zz"], 5000)
os.writev(fd, [b"at", b"the", b"beginning"])
os.ftruncate(fd, 9_000)
os.posix_fallocate(fd, 0, 12_000)
os.fdatasync(fd)
os.pwrite(fd, b"not synced", 0)
other = os.open(root / "a/copy", os.O_RDWR | os.O_CREAT)
os.copy_file_range(fd, other, 3_000, 100, 50)
os.close(other)
os.close(fd)
through = os.open(root / "a/through", os.O_RDWR | os.O_CREAT | os.O_DSYNC)
os.write(through, b"on the disk")
os.pwritev(through, [b"e"] * 1024, 3)
os.close(through)
os.truncate(root / "a/text", 4)
(root / "a/text").rename(root / "a/renamed")
os.open(root / "a/renamed", os.O_RDWR | os.O_TRUNC)
sync(root)
sync(root / "a")
(root / "a/gone").write_bytes(b"soon")
(root / "a/gone").unlink()
(root / "b/c").mkdir(parents=True)
(root / "b/c/file").write_bytes(b"0")
shutil.rmtree(root / "b")
connection = sqlite3.connect(root / "a/db", isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("PRAGMA synchronous = FULL")
connection.execute("CREATE TABLE t (x)")
connection.execute("INSERT INTO t VALUES ('kept')")
sync(root / "a")
child = "import sys; open(sys.argv[1], 'w').write('of a child')"
subprocess.run([sys.executable, "-c", child, str(root / "a/child")], check=True)
os._exit(0)
"""


def recorded(library: Path, tmp_path: Path, program: str) -> Recorder:
    recorder = Recorder(library, tmp_path / "recorder", tmp_path / "root")
    command = [sys.executable, "-c", program, str(recorder.root)]
    subprocess.run(command, check=True, env={"PATH": "/usr/bin:/bin", **recorder.environ})
    recorder.close()
    return recorder


def replayed(recorder: Recorder) -> Disk:
    disk = Disk(recorder.root.stat().st_ino)
    disk.take(recorder.entries())
    return disk


def test_what_was_recorded_makes_the_same_files_again(recorder_library: Path, tmp_path: Path) -> None:
    recorder = recorded(recorder_library, tmp_path, PROGRAM)
    left = replayed(recorder).left(Outcome("everything", Fate.THERE, True))
    there = tree(recorder.root)
    assert left.keys() == there.keys()
    assert {name for name in left if left[name] != there[name]} <= {"a/db-shm"}


def test_what_was_synced_is_there_and_nothing_else(recorder_library: Path, tmp_path: Path) -> None:
    recorder = recorded(recorder_library, tmp_path, PROGRAM)
    left = replayed(recorder).left(Outcome("nothing", Fate.LOST, False))
    files = ("buffered", "copy", "db", "db-wal", "db-shm", "positions", "renamed", "through")
    assert left.keys() == {"a", *(f"a/{name}" for name in files)}
    assert left["a/buffered"] == left["a/copy"] == left["a/renamed"] == b""
    positions = left["a/positions"]
    assert positions is not None
    assert positions[:14] == b"atthebeginning"
    assert positions[4998:5006] == b"xxyyzzxx"
    assert positions[8_999:] == b"x" + bytes(3_000)
    assert left["a/through"] == b"on " + b"e" * 1024
    folder = tmp_path / "again"
    folder.mkdir()
    for name in ("db", "db-wal"):
        (folder / name).write_bytes(left[f"a/{name}"] or b"")
    import sqlite3

    with sqlite3.connect(folder / "db") as connection:
        assert connection.execute("SELECT x FROM t").fetchall() == [("kept",)]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("os.link(root + '/x', root + '/y')", "link"),
        ("os.symlink(root + '/x', root + '/y')", "symlink"),
        ("import mmap; mmap.mmap(fd, 10)", "through memory"),
        ("os.rename(root + '/x', '/tmp/' + os.path.basename(root) + str(os.getpid()))", "how to replay"),
    ],
)  # fmt: skip
def test_what_cannot_be_replayed_is_refused(
    recorder_library: Path, tmp_path: Path, call: str, reason: str
) -> None:
    call = call.replace("'/tmp/'", f"{str(tmp_path)!r} + '/'")
    program = (
        "import os, sys; root = sys.argv[1]\n"
        "fd = os.open(root + '/x', os.O_RDWR | os.O_CREAT); os.write(fd, b'0123456789')\n"
        f"{call}\n"
    )
    recorder = recorded(recorder_library, tmp_path, program)
    with pytest.raises(ValueError, match=reason):
        recorder.entries()
