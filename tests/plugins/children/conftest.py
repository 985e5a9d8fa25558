"""Programs for children, and what is left of them."""

from __future__ import annotations

import sys
from pathlib import Path


def is_gone(pid: int) -> bool:
    """The process has ended; whether it has been waited for is its parent's business."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def python(program: str, *arguments: object) -> list[str]:
    """The command of a small program."""
    return [sys.executable, "-I", "-S", "-u", "-c", program, *map(str, arguments)]


FAMILY = """
import os, sys, time
folder = sys.argv[1]
def note(name):
    with open(f"{folder}/{name}.new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(f"{folder}/{name}.new", f"{folder}/{name}")
if os.fork() == 0:
    note("child")
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            note("daemon")
            time.sleep(600)
        os._exit(0)
    time.sleep(600)
note("program")
time.sleep(600)
"""
"""A program, a child of it, and a daemon: of another session and group, and with no parent. Each leaves its id in a
file of the folder."""
NAMES = ("program", "child", "daemon")


def pids_in(folder: Path) -> list[int] | None:
    """Those of `FAMILY`; None until all are there."""
    files = [folder / name for name in NAMES]
    return [int(file.read_text()) for file in files] if all(file.exists() for file in files) else None
