"""Folders of deleted partitions: renamed already, removed when their delay is over.

Removal runs in worker threads, a few files at a time, because the file system may take long over a large one.
What a crash leaves is found by its name at the next start, and removed then.
"""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import trio

from leafcuttr import crashpoints
from leafcuttr.log.layout.folders import remove_in_steps

_log = logging.getLogger(__name__)

_FILES_A_STEP: Final = 16


class _Deleted(NamedTuple):
    folder: Path
    at_ms: int


class Deletion:
    """The queue of folders to remove."""

    def __init__(self) -> None:
        self._deleted: list[_Deleted] = []

    def __len__(self) -> int:
        return len(self._deleted)

    def add(self, folder: Path, at_ms: int) -> None:
        """Remove `folder`, of which no file is opened any more, from `at_ms` of the monotonic clock on."""
        self._deleted.append(_Deleted(folder, at_ms))

    async def remove_due(self, elapsed_ms: int) -> int:
        """Remove the folders that are due; returns how many. One that cannot be removed is named and tried
        again."""
        removed = 0
        due = [deleted for deleted in self._deleted if deleted.at_ms <= elapsed_ms]
        for deleted in due:
            try:
                steps = remove_in_steps(deleted.folder)
                while await trio.to_thread.run_sync(_some, steps):
                    pass
            except OSError as error:
                _log.warning(
                    "removing %s failed, it is tried again: %s", deleted.folder, error.strerror or error
                )
                continue
            self._deleted.remove(deleted)
            removed += 1
            crashpoints.reach("topic-delete.removed")
        return removed


def _some(steps: Iterator[None]) -> bool:
    """Go a few steps; whether there are more."""
    done = object()
    return all(next(steps, done) is not done for _ in range(_FILES_A_STEP))
