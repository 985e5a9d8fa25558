"""A file system of a few megabytes that a test fills up: a tmpfs in a mount namespace of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.broker_process import BrokerProcess, start_broker

MIB = 1 << 20
# A start after a crash needs some kilobytes for an index, and what is left depends on the size of the metadata.
SIZE = 24 * MIB + 16 * 1024


@dataclass
class SmallDisk:
    """A mounted tmpfs. `inside` begins a command that sees it; `seen` is its folder as this process sees it."""

    inside: tuple[str, ...]
    folder: Path
    seen: Path

    def broker(self, home: Path, **settings: str) -> BrokerProcess:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        return start_broker(
            home, {"log.dirs": str(self.folder / "data"), **given}, before=(*self.inside, "--")
        )

    def fill(self) -> None:
        """Leave no byte free."""
        with pytest.raises(OSError, match="No space"), (self.seen / "filler").open("ab", buffering=0) as file:
            while True:
                file.write(bytes(4096))

    def verify(self) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.inside, "--", sys.executable, "-m", "leafcuttr", "verify", str(self.folder / "data")],
            capture_output=True,
            text=True,
            check=False,
        )


@contextmanager
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """One of SIZE bytes. Skips the test where there can be none."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        pytest.skip("unshare and nsenter (util-linux) are not here")
    mount = f"mount -t tmpfs -o size={SIZE} none '{folder}' && echo mounted && exec cat"
    holder = subprocess.Popen(
        ["unshare", "-Urm", "sh", "-c", mount],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None and holder.stderr is not None
        if holder.stdout.readline() != b"mounted\n":
            pytest.skip(f"no mounts in a user namespace here: {holder.stderr.read().decode().strip()}")
        inside = ("nsenter", "-t", str(holder.pid), "-U", "-m", "--preserve-credentials")
        yield SmallDisk(inside, folder, Path(f"/proc/{holder.pid}/root{folder}"))
        assert holder.stdin is not None
        holder.stdin.close()


@contextmanager
def ended(broker: BrokerProcess) -> Iterator[BrokerProcess]:
    try:
        yield broker
    finally:
        if broker.alive():
            broker.process.kill()
        broker.process.wait()
