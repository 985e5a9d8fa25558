"""What is staged for a log: batches that have offsets and are not written yet, and what becomes of one of them."""

from typing import TYPE_CHECKING, NamedTuple

from leafcuttr.errors import StorageError
from leafcuttr.log.segment.segment import AppendedBatch, Segment

if TYPE_CHECKING:
    from leafcuttr.log.append.chain.dead_letters import Letters
    from leafcuttr.log.producers.state import ProducerEntry


class Staged(NamedTuple):
    """What a batch got. `log_append_time` is -1 where the timestamps are the producer's; a duplicate has the
    offsets of the batch it repeats (and, as in Kafka, that batch's largest timestamp)."""

    base_offset: int
    last_offset: int
    log_append_time: int = -1
    duplicate: bool = False


class Tail:
    """The segment that the next batch would go to, as it will be when all that is staged is written."""

    __slots__ = ("base_offset", "created_ms", "first_timestamp", "segment", "size")

    def __init__(self, segment: Segment, now_ms: int) -> None:
        if not segment.created_ms:
            segment.created_ms = now_ms  # known since the start of the process only, as in Kafka
        self.segment: Segment | None = segment
        self.base_offset = segment.base_offset
        self.size = segment.size
        self.created_ms = segment.created_ms
        self.first_timestamp = segment.first_timestamp()

    def begin(self, base_offset: int, now_ms: int) -> None:
        """A new segment will begin here."""
        self.segment = None
        self.base_offset = base_offset
        self.size = 0
        self.created_ms = now_ms
        self.first_timestamp = -1


class StagedGroup:
    """Staged batches that go to one segment in one write.

    `entries` are the states of their producers, in the order of the batches. `aborts` are those of them, by number,
    that a marker made which aborts, with its offset: None nearly always; so are `letters`, which filters have taken out
    of the batches.
    """

    __slots__ = ("aborts", "base_offset", "batches", "entries", "letters", "rolls", "size", "views")

    def __init__(self, base_offset: int, rolls: bool) -> None:
        self.base_offset = base_offset
        self.rolls = rolls  # a new segment begins with it
        self.views: list[memoryview | bytearray] = []
        self.batches: list[AppendedBatch] = []
        self.entries: list[ProducerEntry] = []
        self.aborts: dict[int, int] | None = None
        self.letters: list[Letters] | None = None
        self.size = 0


class WriteError(StorageError):
    """A commit has failed. What was staged below the offset `written_to` is published all the same; the rest is not
    there, and its offsets are free again."""

    def __init__(self, message: str, written_to: int, *, disk_full: bool = False) -> None:
        super().__init__(message, disk_full=disk_full)
        self.written_to = written_to

    def again(self) -> "WriteError":
        """The same, for one more batch that it has failed."""
        return WriteError(str(self), self.written_to, disk_full=self.disk_full)
