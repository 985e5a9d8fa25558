"""From what was read of one partition to batches for the target: the raw path, and the record path.

On the raw path whole batches pass as they are; see `rewriting` for those that do not. On the record path, where filters
or keys decide, records are taken one by one; of one that a filter keeps as it came, the bytes are used as they are.

What comes out is a `Portion`: batches, and how far the source has been read with them. Control batches, aborted
transactions, and records before the position are left out, so a portion may have no batches.

Longer than other modules because both paths fill the same portion, and the one goes over into the other within it.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from leafcuttr_forward.flows import points
from leafcuttr_forward.flows.errors import NO_TOPIC, FlowStopped, NotReadyYet, PoisonRecord, line_of
from leafcuttr_forward.flows.positions import digest_of
from leafcuttr_forward.flows.rewriting import SMALL_RECORDS, Growing, Tail, is_whole, number, tails
from leafcuttr_sdk.batches import BatchError, batches_in, encode_headers, encode_key
from leafcuttr_sdk.batches.checksum import crc32c
from leafcuttr_sdk.batches.compression import Codec
from leafcuttr_sdk.batches.header import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    TRANSACTIONAL,
)
from leafcuttr_sdk.batches.varints import VARINTS
from leafcuttr_sdk.errors import BrokerError, CorruptMessage, PluginError
from leafcuttr_sdk.filters import DeadLetter, FilterFailure, NotReady, Routed
from leafcuttr_sdk.records import Headers, Record
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_forward.flows.routes import Route
    from leafcuttr_sdk.batches import Batch
    from leafcuttr_sdk.filters import FilterChain
    from leafcuttr_sdk.peers import PeerRead

SMALL_BYTES: Final = 16 * 1024
"""A batch that is larger is not joined with others, however few records it has."""
_TURN: Final = 400
"""After so many batches, or as many slices of `_SLICE` records, other tasks have their turn."""
_LETTER_HEADERS: Final = 2048
"""Bytes that the headers of a dead letter may take."""
_DROPPED: Final = bytearray()
_SLICE: Final = 500
"""Records that a filter gets at a time."""


MakeChain = Callable[[Sequence[str], str], Awaitable["FilterChain"]]
"""Makes the filters of these names for a topic: `Broker.record_filters`."""


class Routes(Protocol):
    """Where things go; `topics.TopicPlan` is one."""

    def route(self, topic: str) -> "Route":
        """For a topic of the source. Raises BrokerError for one that is there no more."""
        ...

    async def route_to(self, topic: str, like: str) -> "Route":
        """For a topic of the target that a filter has named; created like that topic of the source. Raises
        BrokerError."""
        ...


@dataclass(slots=True)
class Piece:
    """A batch for a partition of the target."""

    target: TopicPartition
    batch: bytearray | memoryview
    """As `leafcuttr_sdk.peers.Peer` takes it: what appends it sets producer, sequence, base offset and CRC."""
    records: int
    first: int
    """Offset at the source of the first of its records."""
    last: int
    """Of the last."""
    size: int
    """Bytes of the batch."""


@dataclass(slots=True)
class Portion:
    """What came of one partition of the source, from `first` to before `next`."""

    source: TopicPartition
    first: int
    next: int
    end: int = -1
    """The high watermark at that read."""
    pieces: list[Piece] = field(default_factory=list[Piece])
    size: int = 0
    """Bytes that it takes."""
    epoch: int = -1
    last: int = -1
    """The offset of the last record that was read; -1 for none."""
    digest: str = ""
    timestamp: int = -1
    read_records: int = 0
    dropped: int = 0
    dead_letters: int = 0
    alone: bool = False
    """Whether it is to be written by itself, because the target has refused it with others."""
    is_letter: bool = False
    """Whether it is the dead letter of a record that cannot be copied."""

    def add_whole(self, target: TopicPartition, batch: "Batch") -> None:
        """A whole batch of the source. What the target's end sets anyway is left as it is, and nothing is copied: the
        transactional bit, producer, sequence, base offset, leader epoch and CRC."""
        header, data = batch
        base_offset, _, _, _, _, attributes, delta, *_, count = header
        if attributes & ~(CODEC_MASK | TRANSACTIONAL):
            data = memoryview(batch.as_new())
        size = len(data)
        self.pieces.append(Piece(target, data, count, base_offset, base_offset + delta, size))
        self.size += size
        self.read_records += count

    def add_grown(self, target: TopicPartition, growing: Growing) -> None:
        """One that was made anew."""
        batch = growing.finish()
        size = len(batch)
        self.pieces.append(Piece(target, batch, growing.count, growing.first, growing.last, size))
        self.size += size

    def drop_batches(self) -> int:
        """The target has them: what they were counts, their bytes are needed no more. How much memory that frees."""
        for piece in self.pieces:
            piece.batch = _DROPPED
        size, self.size = self.size, 0
        return size


class RecordsRefused(Exception):
    """The target does not take some of what came in these portions. None of them is at the target
    for good."""

    def __init__(self, portions: Sequence[Portion], error: BrokerError) -> None:
        super().__init__(str(error) or type(error).__name__)
        self.portions = portions
        self.error = error


class Maker:
    """Makes portions, for all partitions of one flow."""

    def __init__(
        self,
        routes: Routes,
        *,
        compression: str | None = None,
        filters: Sequence[str] = (),
        make_chain: MakeChain | None = None,
        dead_letter_topic: str | None = None,
        with_digest: bool = False,
    ) -> None:
        self._routes = routes
        self._codec = None if compression is None else Codec[compression.upper()]
        self._filters = filters
        self._make_chain = make_chain
        self._chains: dict[str, FilterChain] = {}
        self._dead_letter_topic = dead_letter_topic
        self._with_digest = with_digest

    async def make(self, read: "PeerRead", position: int, until: int | None = None) -> Portion:
        """The portion from `position` on, at most to before `until`; with that, the CRCs of whole batches are checked
        too. Raises CorruptMessage for a batch that is broken, PoisonRecord for a record that cannot be copied,
        NotReadyYet, and BrokerError of a topic that a filter names."""
        next_offset = read.next_offset if until is None else min(until, read.next_offset)
        portion = Portion(read.partition, position, max(next_offset, position), read.high_watermark)
        route = self._routes.route(read.partition.topic)
        target = route.partition(read.partition.partition)
        try:
            if target is None or self._filters:
                await self._by_record(read, portion, route)
            else:
                whole = TopicPartition(route.topic, target)
                await self._raw(read, portion, route, whole, checks=until is not None)
        except BatchError as error:
            raise CorruptMessage(f"{read.partition}: {error}") from error
        return portion

    async def letter(self, read: "PeerRead", poison: PoisonRecord) -> Portion:
        """The portion that has a dead letter in the place of a record that cannot be copied. Raises FlowStopped where
        there is no topic for it, BrokerError."""
        topic, source = partition = read.partition
        if self._dead_letter_topic is None:
            raise FlowStopped(f"{partition}, offset {poison.offset}: {poison}")
        points.reach("dead-letter-begun")
        try:
            route = await self._route_to(self._dead_letter_topic, partition, poison.offset)
        except PoisonRecord as error:
            raise FlowStopped(f"{partition}, offset {poison.offset}: {poison}; {error}") from error
        portion = Portion(partition, poison.offset, poison.next_offset, read.high_watermark)
        record, timestamp = _poisoned(read, poison)
        headers = dead_letter_headers(
            str(poison), topic, source, Tail(poison.offset, timestamp, memoryview(b""))
        )
        value = record.value
        if value is not None and len(encoded(record)) + _LETTER_HEADERS > route.limit:
            headers = (*headers, ("lc.dead.letter.value.bytes", str(len(value)).encode()))
            value = None
        growing = Growing(route.limit, Codec.NONE)
        letter = encoded(record._replace(value=value, headers=(*record.headers, *headers)))
        growing.add(Tail(poison.offset, timestamp, memoryview(letter)))
        portion.add_grown(TopicPartition(route.topic, source % route.partitions), growing)
        portion.last, portion.read_records, portion.dead_letters = poison.offset, 1, 1
        portion.alone = portion.is_letter = True
        if self._with_digest:
            portion.digest = digest_of(record.key, record.value)
        return portion

    async def _raw(
        self, read: "PeerRead", portion: Portion, route: "Route", target: TopicPartition, *, checks: bool
    ) -> None:
        """The CRC of a batch that passes whole is checked by what stamps it anew, or by the target; here only if
        `checks`, to find the batch at fault, and where the digest is made of its last record."""
        import trio

        chosen, limit, first, until = self._codec, route.limit, portion.first, portion.next
        small: list[Batch] = []
        last: Batch | None = None
        unchecked = False
        for index, batch in enumerate(self._batches(read, portion)):
            if index % _TURN == _TURN - 1:
                await trio.lowlevel.checkpoint()
            last = batch
            base_offset, length, _, _, _, attributes, delta, *_, count = batch.header
            size = length + LOG_OVERHEAD
            fits = size <= limit and (chosen is None or attributes & CODEC_MASK == chosen)
            whole = count == delta + 1 and not attributes & LOG_APPEND_TIME
            passes = fits and whole and base_offset >= first and base_offset + delta < until
            is_small = count <= SMALL_RECORDS and size <= SMALL_BYTES
            unchecked = passes and not is_small and not checks
            if not unchecked:
                _check(batch, portion)
            if not passes:
                self._join(small, portion, target, limit)
                self._anew([batch], portion, target, limit)
            elif is_small:
                small.append(batch)
            else:
                if small:
                    self._join(small, portion, target, limit)
                portion.add_whole(target, batch)
        self._join(small, portion, target, limit)
        if last is not None:
            if unchecked and self._with_digest:
                _check(last, portion)
            self._remember(last, portion)

    def _batches(self, read: "PeerRead", portion: Portion) -> "Sequence[Batch]":
        """Those with records to copy."""
        found: list[Batch] = []
        first, until, aborted = portion.first, portion.next, read.aborted
        epoch, timestamp = portion.epoch, portion.timestamp
        for batch in batches_in(read.data):
            base_offset, _, leader_epoch, _, _, attributes, delta, _, max_timestamp, *_, count = batch.header
            if base_offset + delta < first:
                continue
            if base_offset >= until:
                break
            if leader_epoch > epoch:
                epoch = leader_epoch
            if attributes & CONTROL or not count or (aborted and batch.is_aborted(aborted)):
                continue
            if max_timestamp > timestamp:
                timestamp = max_timestamp
            found.append(batch)
        portion.epoch, portion.timestamp = epoch, timestamp
        return found

    def _tails(self, batch: "Batch", portion: Portion) -> Sequence[Tail]:
        try:
            return [*tails(batch)]
        except BatchError as error:
            header = batch.header
            offset = max(header.base_offset, portion.first)
            raise PoisonRecord(
                portion.source, offset, line_of(error), next_offset=header.next_offset, broken=True
            ) from error

    def _join(self, small: "list[Batch]", portion: Portion, target: TopicPartition, limit: int) -> None:
        """One batch of several small ones; a single one as it is. Forgets them."""
        if len(small) == 1:
            portion.add_whole(target, small[0])
        elif small:
            self._anew(small, portion, target, limit)
        small.clear()

    def _anew(self, batches: "Sequence[Batch]", portion: Portion, target: TopicPartition, limit: int) -> None:
        growing: Growing | None = None
        for batch in batches:
            codec = batch.header.codec if self._codec is None else self._codec
            for tail in self._tails(batch, portion):
                if not portion.first <= tail.offset < portion.next:
                    continue
                portion.read_records += 1
                if growing is None or growing.codec != codec or not growing.add(tail):
                    if growing is not None:
                        portion.add_grown(target, growing)
                    growing = Growing(limit, codec)
                    growing.add(tail)
        if growing is not None:
            portion.add_grown(target, growing)

    def _remember(self, batch: "Batch", portion: Portion) -> None:
        """The last record, by which a copy of the source is recognised."""
        if not self._with_digest and is_whole(batch.header) and batch.header.next_offset <= portion.next:
            portion.last = batch.header.last_offset
            return
        last: Tail | None = None
        for tail in tails(batch):
            if tail.offset < portion.next:
                last = tail
        if last is not None:
            portion.last = last.offset
            if self._with_digest:
                key, value, _ = parts_of(last.data)
                portion.digest = digest_of(key, value)

    async def _by_record(self, read: "PeerRead", portion: Portion, route: "Route") -> None:
        import trio

        sorted_out = _SortedOut(portion)
        topic, source = read.partition
        chain = await self._chain(topic) if self._filters else None
        last: Batch | None = None
        for batch in self._batches(read, portion):
            last = batch
            _check(batch, portion)
            codec = batch.header.codec if self._codec is None else self._codec
            found = [
                tail for tail in self._tails(batch, portion) if portion.first <= tail.offset < portion.next
            ]
            portion.read_records += len(found)
            for at in range(0, len(found), _SLICE):
                some = found[at : at + _SLICE]
                await trio.lowlevel.checkpoint()
                if chain is None:
                    for tail in some:
                        target = TopicPartition(route.topic, route.partition_for(source, key_of(tail.data)))
                        sorted_out.add(target, route.limit, codec, tail)
                else:
                    await self._judged(chain, topic, source, some, route, codec, sorted_out)
        sorted_out.finish()
        if last is not None:
            self._remember(last, portion)

    async def _chain(self, topic: str) -> "FilterChain":
        """The filters of one topic. Raises FlowStopped where they cannot be made."""
        chain = self._chains.get(topic)
        if chain is None:
            if self._make_chain is None:
                raise FlowStopped("there is nothing that makes filters")
            try:
                chain = self._chains[topic] = await self._make_chain(self._filters, topic)
            except PluginError as error:
                raise FlowStopped(line_of(error)) from error
        return chain

    def forget(self, topic: str) -> None:
        """Records of this topic come again: filters that remember records forget them."""
        if topic in self._chains:
            self._chains[topic].forget()

    def close(self) -> None:
        """The filters are used no more."""
        for chain in self._chains.values():
            chain.close()
        self._chains.clear()

    async def _judged(
        self,
        chain: "FilterChain",
        topic: str,
        source: int,
        some: Sequence[Tail],
        route: "Route",
        codec: int,
        sorted_out: "_SortedOut",
    ) -> None:
        records = [record_of(tail) for tail in some]
        for tail, record, outcome in zip(some, records, chain.filter(records), strict=False):
            if outcome is record:
                target = TopicPartition(route.topic, route.partition_for(source, record.key))
                sorted_out.add(target, route.limit, codec, tail)
            elif isinstance(outcome, Record):
                target = TopicPartition(route.topic, route.partition_for(source, outcome.key))
                sorted_out.add(target, route.limit, codec, _changed(tail, outcome))
            elif isinstance(outcome, DeadLetter):
                await self._dead_letter(topic, source, tail, record, outcome, sorted_out)
            elif isinstance(outcome, NotReady):
                raise NotReadyYet(outcome.waits_for)
            elif isinstance(outcome, FilterFailure):
                why = f"the filter {outcome.filter} failed: {outcome.reason}"
                raise PoisonRecord(TopicPartition(topic, source), tail.offset, why)
            elif isinstance(outcome, Routed):
                other = await self._route_to(outcome.topic, TopicPartition(topic, source), tail.offset)
                target = TopicPartition(other.topic, other.partition_for(source, outcome.record.key))
                sorted_out.add(target, other.limit, codec, _changed(tail, outcome.record))
            else:
                sorted_out.portion.dropped += 1

    async def _route_to(self, topic: str, partition: TopicPartition, offset: int) -> "Route":
        """For a record of the source that goes to another topic than the others. Raises PoisonRecord where there can be
        no such topic, BrokerError."""
        try:
            return await self._routes.route_to(topic, partition.topic)
        except NO_TOPIC as error:
            raise PoisonRecord(
                partition, offset, f"the target cannot have the topic {topic}: {line_of(error)}"
            ) from error

    async def _dead_letter(
        self,
        topic: str,
        source: int,
        tail: Tail,
        record: Record,
        verdict: DeadLetter,
        sorted_out: "_SortedOut",
    ) -> None:
        name = verdict.topic or self._dead_letter_topic
        if name is None:
            raise PoisonRecord(TopicPartition(topic, source), tail.offset, verdict.reason)
        route = await self._route_to(name, TopicPartition(topic, source), tail.offset)
        letter = verdict.record or record
        letter = letter._replace(
            headers=(*letter.headers, *dead_letter_headers(verdict.reason, topic, source, tail))
        )
        target = TopicPartition(route.topic, source % route.partitions)
        sorted_out.add(target, route.limit, Codec.NONE, _changed(tail, letter))
        sorted_out.portion.dead_letters += 1


def _check(batch: "Batch", portion: Portion) -> None:
    """Raises PoisonRecord for a wrong CRC."""
    header = batch.header
    if crc32c(batch.data[ATTRIBUTES_AT:]) != header.crc:
        raise PoisonRecord(
            portion.source,
            max(header.base_offset, portion.first),
            f"the batch at offset {header.base_offset} has a wrong CRC",
            next_offset=header.next_offset,
            broken=True,
        )


def _poisoned(read: "PeerRead", poison: PoisonRecord) -> tuple[Record, int]:
    """The record at fault with its time; of a broken batch its bytes as a value."""
    for batch in batches_in(read.data):
        if batch.header.next_offset <= poison.offset or batch.header.is_control:
            continue
        try:
            if not poison.broken:
                found = next((tail for tail in tails(batch) if tail.offset == poison.offset), None)
                if found is not None:
                    return record_of(found), found.timestamp
        except BatchError:
            pass
        return Record(bytes(batch.data)), batch.header.max_timestamp
    return Record(None), -1


class _SortedOut:
    """Batches in the making, one for each partition of the target, in the order of their first records."""

    def __init__(self, portion: Portion) -> None:
        self.portion = portion
        self._growing: dict[TopicPartition, Growing] = {}

    def add(self, target: TopicPartition, limit: int, codec: int, tail: Tail) -> None:
        growing = self._growing.get(target)
        if growing is None:
            growing = self._growing[target] = Growing(limit, codec)
        if not growing.add(tail):
            self.portion.add_grown(target, growing)
            growing = self._growing[target] = Growing(limit, codec)
            growing.add(tail)

    def finish(self) -> None:
        for target, growing in self._growing.items():
            self.portion.add_grown(target, growing)
        self._growing.clear()


def key_of(tail: memoryview) -> memoryview | None:
    """The key of a record. Raises BatchError."""
    try:
        size, at = number(tail, 0)
    except IndexError:
        raise BatchError("a record ends in the length of its key") from None
    return None if size < 0 else tail[at : at + size]


def parts_of(tail: memoryview) -> tuple[memoryview | None, memoryview | None, memoryview]:
    """Key, value, and the headers as they stand. Raises BatchError."""
    try:
        size, at = number(tail, 0)
        key = None if size < 0 else tail[at : at + size]
        at += max(size, 0)
        size, at = number(tail, at)
        value = None if size < 0 else tail[at : at + size]
        at += max(size, 0)
    except IndexError:
        raise BatchError("a record ends in the middle of a number") from None
    if at >= len(tail):
        raise BatchError("a record ends before its headers")
    return key, value, tail[at:]


def record_of(tail: Tail) -> Record:
    """The record as filters get it. Raises BatchError."""
    key, value, rest = parts_of(tail.data)
    return Record(
        None if value is None else bytes(value),
        None if key is None else bytes(key),
        () if len(rest) == 1 and not rest[0] else _headers(rest),
        tail.timestamp,
    )


def encoded(record: Record) -> bytes:
    """A record as its bytes stand behind its deltas. Raises UnicodeEncodeError as `encode_headers`."""
    value = record.value
    return b"".join(
        (
            encode_key(record.key),
            b"\x01" if value is None else VARINTS[len(value)],
            value or b"",
            encode_headers(record.headers),
        )
    )


def dead_letter_headers(reason: str, topic: str, partition: int, tail: Tail) -> Headers:
    """As those of dead letters within the broker."""
    return (
        ("lc.dead.letter.reason", " ".join(reason.split()).encode("utf-8", "replace")),
        ("lc.dead.letter.topic", topic.encode()),
        ("lc.dead.letter.partition", str(partition).encode()),
        ("lc.dead.letter.offset", str(tail.offset).encode()),
        ("lc.dead.letter.timestamp", str(tail.timestamp).encode()),
    )


def _headers(data: memoryview) -> Headers:
    from leafcuttr_sdk.batches import BatchRecord

    return BatchRecord(-1, -1, None, None, data).headers()


def _changed(tail: Tail, record: Record) -> Tail:
    """What a filter has made of a record, in its place."""
    timestamp = tail.timestamp if record.timestamp is None else record.timestamp
    return Tail(tail.offset, timestamp, memoryview(encoded(record)))
