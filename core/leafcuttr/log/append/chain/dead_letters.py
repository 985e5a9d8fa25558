"""Records that a filter takes out of a batch for a dead-letter topic: their form in that topic, and the callbacks for
when they are written.

They are posted once the batch that they were taken from is published, never before, and not at all if its write fails.
The answer to the batch waits until they are written, or cannot be. `state.dead_letter_writer` writes them.

What a dead letter carries beside its own headers (those of the same names that it had before give way):

    lc.dead.letter.reason       the reason that the filter gave
    lc.dead.letter.filter       the filter's name
    lc.dead.letter.topic        where the record was produced to
    lc.dead.letter.partition    in decimal digits, as the next two
    lc.dead.letter.offset       which the record would have had; the log has a gap at it
    lc.dead.letter.timestamp    its timestamp, ms since 1970; a dead letter's own is the time at which it became one
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from leafcuttr.wire.batch import NO_TIMESTAMP
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk.records import Record as Loose
from leafcuttr_sdk.types import TopicPartition

PREFIX: Final = "lc.dead.letter."
_LARGEST: Final = 512 * 1024  # of a batch of dead letters, unless a single one is larger
_HEADERS: Final = 200  # bytes that those above take, about


class Letter(NamedTuple):
    """One record that does not stay: as the filter got it or has changed it for this, and where it was in the batch,
    from 0 on."""

    at: int
    record: Loose
    topic: str
    reason: str
    filter: str


class Letters:
    """The dead letters of one batch, from its staging until they are written or lost."""

    __slots__ = ("_calls", "_post", "base_offset", "codec", "finished", "letters", "partition")

    def __init__(
        self,
        partition: TopicPartition,
        base_offset: int,
        letters: Sequence[Letter],
        codec: Codec,
        post: "Callable[[Letters], None]",
    ) -> None:
        self.partition = partition
        self.base_offset = base_offset
        self.letters = letters
        self.codec = codec
        self.finished = False
        self._post = post
        self._calls: list[Callable[[], None]] = []

    def post(self) -> None:
        """The batch is published. Does not block, and touches no log."""
        self._post(self)

    def when_finished(self, call: Callable[[], None]) -> None:
        """Have it called once they are written, or are lost; it may not touch a log. Not when that is so already."""
        self._calls.append(call)

    def finish(self) -> None:
        self.finished = True
        calls, self._calls = self._calls, []
        for call in calls:
            call()

    def batches(self, topic: str, now_ms: int) -> Iterator[tuple[bytearray, int]]:
        """Those for one topic as batches to be appended, each with how many there are in it."""
        records: list[Record] = []
        size = 0
        for letter in self.letters:
            if letter.topic != topic:
                continue
            record = self._addressed(letter, len(records), now_ms)
            extent = len(record.key or b"") + len(record.value or b"") + _HEADERS
            if records and size + extent > _LARGEST:
                yield encode_batch(records, codec=self.codec), len(records)
                records, size = [], 0
                record = record._replace(offset=0)
            records.append(record)
            size += extent
        if records:
            yield encode_batch(records, codec=self.codec), len(records)

    def _addressed(self, letter: Letter, offset: int, now_ms: int) -> Record:
        value, key, headers, timestamp = letter.record
        fields = {
            "reason": letter.reason,
            "filter": letter.filter,
            "topic": self.partition.topic,
            "partition": str(self.partition.partition),
            "offset": str(self.base_offset + letter.at),
            "timestamp": str(NO_TIMESTAMP if timestamp is None else timestamp),
        }
        own = tuple(header for header in headers if not header[0].startswith(PREFIX))
        added = tuple((PREFIX + name, text.encode("utf-8", "replace")) for name, text in fields.items())
        return Record(offset, now_ms, key, value, own + added)


def when_all_finished(all_letters: Sequence[Letters], call: Callable[[], None]) -> None:
    """Have it called once all of them are written or lost: at once if they are."""
    left = [letters for letters in all_letters if not letters.finished]
    waiting = len(left)
    if not waiting:
        call()
        return

    def finished() -> None:
        nonlocal waiting
        waiting -= 1
        if not waiting:
            call()

    for letters in left:
        letters.when_finished(finished)
