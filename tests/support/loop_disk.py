"""A real ext4 of some megabytes in a file, for tests of what a failing disk does. It takes root and loop devices.

`read_only` is what the kernel itself does to a file system on which it has found an error (`errors=remount-ro`): a
plain remount is refused while anybody writes there. `pull_out` is the death of the disk: every access says EIO.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_SHUT_DOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN, _IOR('X', 125, __u32)
_LOSE_THE_JOURNAL = 2  # EXT4_GOING_FLAGS_NOLOGFLUSH


def _run(*words: str | Path) -> str:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{words[0]}: {done.stderr.strip() or done.returncode}")
    return done.stdout.strip()


class LoopDisk:
    """The file system; `folder` is where it is mounted."""

    def __init__(self, image: Path, folder: Path) -> None:
        self.folder = folder
        self._image = image
        self._device = ""

    def mount(self) -> None:
        """On a device of its own each time: a namespace that another test has made meanwhile may keep the mount before,
        with the state that the kernel has it in."""
        self._device = _run("losetup", "--find", "--show", self._image)
        _run("mount", "-o", "errors=remount-ro", self._device, self.folder)

    def unmount(self) -> None:
        _run("umount", self.folder)
        self._detach()

    def read_only(self) -> None:
        """What was written before is on the disk; from here on it takes nothing."""
        os.sync()
        name = Path(self._device).name
        Path(f"/sys/fs/ext4/{name}/trigger_fs_error").write_text("a test wants it")

    def pull_out(self) -> None:
        """What has not been synced is lost."""
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SHUT_DOWN, struct.pack("I", _LOSE_THE_JOURNAL))
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Whatever state it is in."""
        subprocess.run(["umount", "--lazy", self.folder], capture_output=True)
        if self._device:
            self._detach()

    def _detach(self) -> None:
        """At once, or as soon as no namespace has it mounted any more."""
        _run("losetup", "--detach", self._device)
        self._device = ""


@contextmanager
def loop_disk(home: Path, *, megabytes: int = 64) -> Iterator[LoopDisk]:
    """A mounted one, gone afterwards. Skips the test where it cannot be had."""
    for tool in ("losetup", "mkfs.ext4", "mount"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not here")
    if os.geteuid():
        pytest.skip("loop devices are for root")
    image, folder = home / "disk.img", home / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    try:
        _run("mkfs.ext4", "-q", "-F", image)
        disk = LoopDisk(image, folder)
    except OSError as error:
        pytest.skip(f"no ext4 on a loop device here: {error}")
    try:
        try:
            disk.mount()
        except OSError as error:
            pytest.skip(f"no mounts here: {error}")
        yield disk
    finally:
        disk.remove()
        image.unlink()
