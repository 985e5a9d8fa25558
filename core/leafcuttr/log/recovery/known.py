"""What a start knows of a partition before it reads anything, and how it says that this is not what it finds."""

from typing import Final, NamedTuple

from leafcuttr.log.layout.partition_state import PartitionState

MAX_OFFSET: Final = (1 << 63) - 1


class DamagedLogError(Exception):
    """The partition has to stay offline. The message is the one line that says why."""


class Reread:
    """What a start has read again, over all partitions: how many of them, and how many bytes that were."""

    __slots__ = ("bytes", "partitions")

    def __init__(self) -> None:
        self.partitions = self.bytes = 0


class Known(NamedTuple):
    """What a start knows of a partition before it reads its folder.

    `state` is None unless it can be relied on and is of this very topic; with `clean` nothing was written after it.
    """

    state: PartitionState | None
    clean: bool
    recovery_point: int
    log_start_offset: int
    # The machine has not lost its power since: what was written is in the files.
    same_boot: bool = False
    # The synced recovery point, if it is known: nothing behind it has ever been compacted.
    compacted_at_most: int = MAX_OFFSET
    reread: Reread | None = None  # counts what is read again
