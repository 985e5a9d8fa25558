"""Ending a run from outside: the process that has the lock of a checkpoint gets SIGTERM, and is waited for."""

import fcntl
import os
import signal
import time
from pathlib import Path
from typing import Final

from leafcuttr_sdk.errors import PluginError
from leafcuttr_spark.operating.starting import LOCK

_LOOK_S: Final = 0.1


class NotRunningError(PluginError):
    """No run has the checkpoint."""


def holder(own: Path) -> int | None:
    """The process that has the lock; None where none has it."""
    try:
        with (own / LOCK).open("r") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                text = file.read(20).strip()
                return int(text) if text.isdecimal() else None
    except OSError:
        return None
    return None


def stop_run(own: Path, wait_s: float) -> int:
    """Its process, which has ended. Raises NotRunningError; TimeoutError once it was waited for so long."""
    pid = holder(own)
    if pid is None:
        raise NotRunningError("no run of the pipeline has its checkpoint on this machine")
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return pid
    except PermissionError:
        raise PluginError(f"process {pid} is another user's") from None
    deadline = time.monotonic() + wait_s
    while holder(own) == pid:
        if time.monotonic() > deadline:
            raise TimeoutError(f"process {pid} has not ended within {wait_s:g} s: its batch goes on")
        time.sleep(_LOOK_S)
    return pid
