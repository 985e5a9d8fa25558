"""`cleaner-offset-checkpoint`: for each log the offset up to which it has been compacted, in Kafka's format.

Written after a round, when its segments are in place. A crash before that makes the round be done again, which
changes nothing. A partition that is made must not find the offset of an earlier one of its name, in memory or on the
disk. Thread-safe; writing blocks.
"""

import logging
import threading
from pathlib import Path
from typing import Final

from leafcuttr.log.layout.checkpoints import DamagedCheckpointError, read_offsets, write_offsets
from leafcuttr_sdk import TopicPartition

CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
_log = logging.getLogger(__name__)


class CleanerCheckpoint:
    """The offsets of one data directory; read at the first use."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / CLEANER_OFFSETS
        self._lock = threading.Lock()
        self._offsets: dict[TopicPartition, int] | None = None

    def get(self, name: TopicPartition) -> int | None:
        """The first dirty offset of a log, None if nothing of it has been compacted. Raises OSError."""
        with self._lock:
            return self._known().get(name)

    def put(self, name: TopicPartition, offset: int) -> None:
        """Everything before `offset` is compacted. Raises OSError; then the file is unchanged."""
        with self._lock:
            self._write({**self._known(), name: offset})

    def forget(self, name: TopicPartition) -> None:
        """The partition is deleted, or a new one is made. Raises OSError."""
        with self._lock:
            known = self._known()
            if name in known:
                self._write({kept: offset for kept, offset in known.items() if kept != name})

    def _write(self, offsets: dict[TopicPartition, int]) -> None:
        write_offsets(self._path, offsets)
        self._offsets = offsets

    def _known(self) -> dict[TopicPartition, int]:
        if self._offsets is None:
            try:
                self._offsets = read_offsets(self._path)
            except DamagedCheckpointError as error:
                _log.warning("%s: logs are compacted from their beginning", error)
                self._offsets = {}
        return self._offsets
