"""A recording of what a broker did to its files, between the marks of a test that says what it was told when.

The recorder is a library for LD_PRELOAD in C (`recorder.c`); its entries and the marks share one file, and so one
order. What a cut of the power would leave of them is for `disk`.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import struct
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

_HEAD: Final = struct.Struct("<BqqqII")
_MARK: Final = "K"
SOURCE: Final = Path(__file__).with_name("recorder.c")


class Entry(NamedTuple):
    """One call, or a mark: see `recorder.c` for the kinds and what their numbers are."""

    kind: str
    a: int
    b: int
    c: int
    one: str
    two: bytes

    @property
    def mark(self) -> dict[str, Any]:
        """What the test has noted; only of a mark."""
        noted: dict[str, Any] = json.loads(self.two)
        return noted


def build_recorder(folder: Path) -> Path | str:
    """The compiled library, or the reason why there is none."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return "there is no C compiler here to build the recorder with"
    library = folder / "recorder.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-pthread", "-o", str(library), str(SOURCE), "-ldl"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        return f"the C compiler here does not build the recorder: {built.stderr[-500:]}"
    return library


class Recorder:
    """Records what processes started with `environ` do to the files below `root`. Marks may come from any thread."""

    def __init__(self, library: Path, folder: Path, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        self.root = root.resolve()
        self.log = folder / "recording"
        boot = folder / "boot_id"
        # Not that of this machine: for whoever reads the files later, the machine has been restarted.
        boot.write_text(f"{uuid.uuid4()}\n")
        self.environ = {
            "LD_PRELOAD": str(library),
            "POWERLOSS_ROOT": str(self.root),
            "POWERLOSS_LOG": str(self.log),
            "POWERLOSS_BOOT_ID": str(boot),
        }
        self._file = self.log.open("ab", buffering=0)

    def mark(self, what: str, **fields: Any) -> None:
        """Note something: what a client has sent, or what it has been told."""
        data = json.dumps({"mark": what, **fields}).encode()
        self._file.write(_HEAD.pack(ord(_MARK), 0, 0, 0, 0, len(data)) + data)

    @contextmanager
    def between_entries(self) -> Iterator[None]:
        """While nothing is half done: a process that is killed in here has entered all that it has changed."""
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        self._file.close()

    def entries(self) -> list[Entry]:
        """All that has been recorded."""
        return list(read_entries(self.log))


def read_entries(path: Path) -> Iterator[Entry]:
    """The entries of a recording. Raises ValueError for one that nobody can replay."""
    data = path.read_bytes()
    at = 0
    while at + _HEAD.size <= len(data):
        kind, a, b, c, one_size, two_size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        one = data[at : at + one_size].decode()
        at += one_size
        two = data[at : at + two_size]
        at += two_size
        if kind == ord("X"):
            raise ValueError(f"the recorder does not know how to replay {one} {two.decode()}")
        if kind == ord("P"):
            # The index of SQLite's write-ahead log says nothing after the loss of power: it is made anew.
            if not one.endswith("-shm"):
                raise ValueError(f"{one} is written through memory, which the recorder does not see")
            continue
        yield Entry(chr(kind), a, b, c, one, two)
    if at != len(data):
        raise ValueError(f"{path} ends within an entry")


def tree(root: Path) -> dict[str, bytes | None]:
    """What is below a folder: the content of each file, None for a folder."""
    found: dict[str, bytes | None] = {}
    for folder, folders, files in os.walk(root):
        at = Path(folder)
        for name in folders:
            found[str((at / name).relative_to(root))] = None
        for name in files:
            found[str((at / name).relative_to(root))] = (at / name).read_bytes()
    return found
