"""The dead letters of a pipeline: read from their topic, and sent back as the records that they were.

A dead letter is the record as it came, with its key, value and headers, and beside these

    lc.dead.letter.reason, .topic, .partition, .offset, .timestamp    as the broker's own dead letters have them
    lc.dead.letter.step                                               the step of the pipeline, or its source

Which ones were sent back is kept as the offsets of a group, which are committed in one transaction with the records: so
each is sent back once, whatever happens.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from leafcuttr_sdk.broker import EARLIEST, LATEST
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.records import Headers, NewBatch
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.batches import BatchRecord
    from leafcuttr_sdk.blocking_peers import BlockingPeer, BlockingReader

PREFIX: Final = "lc.dead.letter."
_WAIT_S: Final = 10.0
_BATCH: Final = 500
"""Records of a transaction."""
_LARGEST: Final = 512 << 10


class Letter(NamedTuple):
    """One dead letter. `origin` is where the record was read, None for what has no headers that say so."""

    partition: TopicPartition
    offset: int
    at_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    """Those of the record, without the letter's."""
    about: Mapping[str, str]
    """The letter's, without their prefix."""

    @property
    def reason(self) -> str:
        return self.about.get("reason", "")

    @property
    def step(self) -> str:
        return self.about.get("step", "")

    @property
    def topic(self) -> str | None:
        """Where the record came from."""
        return self.about.get("topic")


def read_letters(peer: "BlockingPeer", topic: str, group: str | None = None) -> Iterator[Letter]:
    """All of them up to where the topic ends now, partition after partition; with a group those behind its offsets.
    Raises BrokerError, PluginError where the topic does not exist, or does not answer in time."""

    found = peer.topics([topic])
    if topic not in found:
        raise PluginError(f"{peer.name} has no topic {topic}")
    partitions = [TopicPartition(topic, number) for number in range(found[topic].partitions)]
    ends = peer.offsets(dict.fromkeys(partitions, LATEST), committed=True)
    begins = peer.offsets(dict.fromkeys(partitions, EARLIEST))
    done = peer.committed(group) if group is not None else {}
    with peer.reader(committed=True) as reader:
        for partition in partitions:
            at = max(begins.get(partition, 0), done[partition].offset if partition in done else 0)
            yield from _letters_of(reader, partition, at, ends.get(partition, 0))


def _letters_of(reader: "BlockingReader", partition: TopicPartition, at: int, end: int) -> Iterator[Letter]:
    from leafcuttr_sdk.batches import batches_in

    if at < end:
        reader.assign({partition: at})
    while at < end:
        reads = [read for read in reader.read(_WAIT_S) if read.partition == partition]
        if not reads:
            raise PluginError(f"nothing of {partition} came for {_WAIT_S:.0f} s")
        for read in reads:
            if read.error is not None:
                raise read.error
            for batch in batches_in(read.data):
                if not batch.header.is_control and not batch.is_aborted(read.aborted):
                    yield from (_letter(partition, one) for one in batch.records() if at <= one.offset < end)
            at = max(at, read.next_offset)
    reader.unassign(partition)


def _letter(partition: TopicPartition, record: "BatchRecord") -> Letter:
    headers: list[tuple[str, bytes | None]] = []
    about: dict[str, str] = {}
    for name, content in record.headers():
        if name.startswith(PREFIX):
            about[name.removeprefix(PREFIX)] = (content or b"").decode("utf-8", "replace")
        else:
            headers.append((name, content))
    return Letter(
        partition,
        record.offset,
        record.timestamp,
        None if record.key is None else bytes(record.key),
        None if record.value is None else bytes(record.value),
        tuple(headers),
        about,
    )


# Back


def send_back(
    peer: "BlockingPeer",
    letters: Iterator[Letter],
    group: str,
    to: str | None,
    chosen: Callable[[Letter], bool],
) -> int:
    """Write the records that are chosen to their topics, or to this one, and keep that all up to them are done. How
    many. Raises BrokerError, PluginError for a letter that does not say where it came from."""
    count = 0
    with peer.owner(group) as owner:
        counts: dict[str, int] = {}
        while letters_now := _some(letters):
            wanted = [letter for letter in letters_now if chosen(letter)]
            for letter in wanted:
                topic = to or letter.topic
                if topic is None:
                    raise PluginError(
                        f"the record at {letter.offset} of {letter.partition} does not say which topic it came from:"
                        " name one with --to"
                    )
                if topic not in counts:
                    counts |= _partitions(peer, topic)
            shared = owner.begin()
            with peer.join(shared) as appender:
                appender.send(_batches(wanted, to, counts))
                written = appender.flush()
            offsets = {letter.partition: CommittedOffset(letter.offset + 1) for letter in letters_now}
            owner.commit_offsets(group, offsets)
            owner.commit(written)
            count += len(wanted)
    return count


def _some(letters: Iterator[Letter]) -> list[Letter]:
    found: list[Letter] = []
    size = 0
    for letter in letters:
        found.append(letter)
        size += len(letter.key or b"") + len(letter.value or b"")
        if len(found) >= _BATCH or size >= _LARGEST:
            break
    return found


def _partitions(peer: "BlockingPeer", topic: str) -> dict[str, int]:
    found = peer.topics([topic])
    if topic not in found:
        raise PluginError(f"{peer.name} has no topic {topic}")
    return {topic: found[topic].partitions}


def _batches(letters: list[Letter], to: str | None, counts: Mapping[str, int]) -> list[NewBatch]:
    """One for each partition, with the times that the records had."""
    from leafcuttr_sdk.batches import BatchBuilder, partition_of

    found: dict[TopicPartition, BatchBuilder] = {}
    for letter in letters:
        topic = to or letter.topic or ""
        # Without a key any partition will do.
        number = letter.offset if letter.key is None else partition_of(letter.key, counts[topic])
        builder = found.setdefault(TopicPartition(topic, number % counts[topic]), BatchBuilder())
        builder.extend_records([(letter.value, letter.key, letter.headers, _time_of(letter))])
    return [NewBatch(partition, builder.finish()) for partition, builder in found.items()]


def _time_of(letter: Letter) -> int:
    given = letter.about.get("timestamp", "")
    return int(given) if given.isascii() and given.isdecimal() else letter.at_ms
