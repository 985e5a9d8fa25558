"""How much free space the disk has, and that clients are refused before there is none.

A full disk harms more than appends: checkpoints, offsets and the metadata cannot be written then. So
`lc.log.min.free.bytes` are kept for the broker itself: below it what clients produce is refused with
KAFKA_STORAGE_ERROR, while reads, commits, retention and deletion go on. A worker calls statvfs about once a
second; an append only reads `LogResources.refusal`.
"""

import logging
import os
from pathlib import Path
from typing import Protocol

import trio

from leafcuttr.config.settings import Settings

_log = logging.getLogger(__name__)


class RefusesClients(Protocol):
    """`LogResources`, of which no more is needed."""

    refusal: str | None


class FreeSpace:
    """The free space in the file system of one data directory."""

    def __init__(self, directory: Path, settings: Settings, resources: RefusesClients) -> None:
        self._directory = directory
        self._settings = settings
        self._resources = resources

    def check(self) -> None:
        """Check once. Raises OSError. On the loop only at the start."""
        self._judge(self._free())

    async def watch(self) -> None:
        """Check once, by a worker. Raises OSError."""
        if self._settings.int("lc.log.min.free.bytes"):
            self._judge(await trio.to_thread.run_sync(self._free))
        else:
            self._judge(0)

    def _free(self) -> int:
        found = os.statvfs(self._directory)
        return found.f_bavail * found.f_frsize

    def _judge(self, free: int) -> None:
        least = self._settings.int("lc.log.min.free.bytes")
        before = self._resources.refusal
        if free >= least:
            self._resources.refusal = None
            if before is not None:
                _log.warning("%s has %d bytes free again: clients may produce", self._directory, free)
            return
        self._resources.refusal = (
            f"{self._directory} has {free} bytes free, "
            f"lc.log.min.free.bytes={least} are kept for the broker itself"
        )
        if before is None:
            _log.error("nothing more is taken from producers: %s", self._resources.refusal)
