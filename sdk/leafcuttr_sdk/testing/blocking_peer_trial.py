"""The check of a blocking peer but for its transactions: topics, appending, reading, offsets, groups."""

import time
from collections.abc import Callable, Mapping
from typing import Final

from leafcuttr_sdk.batches.builder import BatchBuilder
from leafcuttr_sdk.batches.reader import batches_in
from leafcuttr_sdk.blocking_peers import BlockingPeer
from leafcuttr_sdk.broker import EARLIEST, LATEST
from leafcuttr_sdk.errors import BrokerError, CorruptMessage, MessageTooLarge, OffsetOutOfRange
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.records import Appended, NewBatch
from leafcuttr_sdk.testing.peer_findings import PeerFindings
from leafcuttr_sdk.testing.report import Notes, told
from leafcuttr_sdk.types import TopicPartition

SOON_S: Final = 10.0
SILENCE_S: Final = 0.3
"""How long nothing may come where nothing is to come."""
_SENT: Final = 40
_TIME: Final = 1_700_000_000_000


class BlockingTrial(PeerFindings):
    """The peer, another one of its cluster, and what was found."""

    def __init__(self, peer: BlockingPeer, second: BlockingPeer, notes: Notes, prefix: str) -> None:
        super().__init__(notes, prefix)
        self.peer = peer
        self.second = second

    def part(self, name: str, check: Callable[[], None]) -> None:
        """One part of the check, whatever becomes of it."""
        self._part = name
        try:
            check()
        except Exception as error:
            self.wrong(f"it raised {told(error)}")

    def becomes(self, what: str, find: Callable[[], object], wanted: object) -> None:
        """A line unless what is found is this soon: what was committed shows a moment later."""
        until = time.monotonic() + SOON_S
        while (found := find()) != wanted and time.monotonic() < until:
            time.sleep(0.02)
        self.same(what, found, wanted)

    def topic(
        self, what: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> list[TopicPartition]:
        """The partitions of a new topic."""
        name = self.name(what)
        self.peer.create_topic(name, partitions=partitions, configs=configs)
        return [TopicPartition(name, number) for number in range(partitions)]

    def records(
        self, partition: TopicPartition, start: int = 0, *, committed: bool = True
    ) -> list[tuple[int, bytes]]:
        """Offset and value of each record that is there, from an offset on, as a client hands them out."""
        end = self.peer.offsets({partition: LATEST}, committed=committed)[partition]
        seen: list[tuple[int, bytes]] = []
        at, until = start, time.monotonic() + SOON_S
        with self.peer.reader(committed=committed) as reader:
            reader.assign({partition: start})
            while at < end and time.monotonic() < until:
                for read in reader.read(SOON_S):
                    if read.error is not None:
                        self.wrong(f"a read of {partition} said {told(read.error)}")
                    at = read.next_offset
                    seen += [
                        (record.offset, bytes(record.value or b""))
                        for batch in batches_in(read.data)
                        if not batch.header.is_control and not batch.is_aborted(read.aborted)
                        for record in batch.records()
                        if record.offset >= start
                    ]
        if at < end:
            self.wrong(f"reading {partition} came to {at} of {end}")
        return seen

    def values(self, partition: TopicPartition, *, committed: bool = True) -> list[bytes]:
        """The same without offsets."""
        return [value for _, value in self.records(partition, committed=committed)]

    # The parts

    def cluster(self) -> None:
        first, second = self.topic("cluster", 2, {"max.message.bytes": "1000"})
        if not self.peer.cluster_id():
            self.wrong("the cluster has no id")
        self.same("the id as another peer has it", self.second.cluster_id(), self.peer.cluster_id())
        if not self.peer.name:
            self.wrong("the peer has no name")
        absent = self.name("absent")
        found = self.peer.topics([first.topic, absent])
        self.same("the topics that exist", list(found), [first.topic])
        self.same("the number of partitions", found[first.topic].partitions, 2)
        if first.topic not in self.peer.topics():
            self.wrong("all topics are not all")
        configs = self.peer.topic_configs([first.topic])
        self.same("a setting of the topic", configs.get(first.topic, {}).get("max.message.bytes"), "1000")
        leaders = self.peer.leaders([first, second, TopicPartition(absent, 0), first._replace(partition=7)])
        self.same("the partitions with a leader", sorted(leaders), [first, second])
        if any(not leader.host or leader.port <= 0 for leader in leaders.values()):
            self.wrong("a leader has no address")

    def order(self) -> None:
        first, second = self.topic("order", 2)
        with self.peer.appender(max_bytes=2000) as appender:
            answers = appender.append([new(first, b"a", b"b"), new(second, b"x"), new(first, b"c")])
            offsets = [(each.base_offset, each.last_offset) for each in answers if isinstance(each, Appended)]
            self.same("the offsets of the batches", offsets, [(0, 1), (0, 0), (2, 2)])
            self.same("the answer to no batches", appender.append([]), [])
            for number in range(_SENT):
                appender.send([new(first, b"%d" % number, b"-"), new(second, b"%d" % number)])
            self.same("what was sent", appender.flush(), {first: 2 * _SENT, second: _SENT})
            self.same("what was sent, said again", appender.flush(), {first: 2 * _SENT, second: _SENT})
        sent = [b"%d" % number for number in range(_SENT)]
        wanted = [b"a", b"b", b"c", *(value for number in sent for value in (number, b"-"))]
        self.same("what is read", self.records(first), list(enumerate(wanted)))
        self.same("what is read from within a batch", self.records(first, 1), list(enumerate(wanted))[1:])
        self.same("the other partition", self.values(second), [b"x", *sent])

    def refusals(self) -> None:
        (partition,) = self.topic("refusals", configs={"max.message.bytes": "1000"})
        damaged, large = batch_of(b"damaged"), batch_of(b"x" * 5000)
        damaged[-1] ^= 1
        for bad, kind in ((damaged, CorruptMessage), (large, MessageTooLarge)):
            with self.peer.appender() as appender:
                answers = appender.append([NewBatch(partition, bad), new(partition, b"behind")])
                if not isinstance(answers[0], kind):
                    self.wrong(f"a bad batch is answered with {answers[0]!r}, not {kind.__name__}")
                if not isinstance(answers[1], BrokerError):
                    self.wrong("a batch was appended behind one of its call that was refused")
                self.all_appended(appender.append([new(partition, b"next")]))
            with self.peer.appender() as appender:
                appender.send([new(partition, b"sent")])
                appender.flush()
                appender.send([NewBatch(partition, bad)])
                with self.raises("`flush` after a batch that is refused", kind):
                    appender.flush()
                with self.raises("`send` after a batch that is refused", kind):
                    appender.send([new(partition, b"behind")])
        self.same("what is read", self.values(partition), [b"next", b"sent"] * 2)

    def reading(self) -> None:
        first, second = self.topic("reading", 2)
        with self.peer.appender() as appender, self.peer.reader() as reader:
            began = time.monotonic()
            reader.assign({first: 0, second: 0})
            self.same("a read of what is not there", list(reader.read(SILENCE_S)), [])
            if time.monotonic() - began > SOON_S:
                self.wrong("a read did not return after its time")
            self.all_appended(appender.append([new(first, b"a"), new(second, b"x")]))
            next_offsets: dict[TopicPartition, int] = {}
            while len(next_offsets) < 2 and (reads := reader.read(SOON_S)):
                next_offsets |= {read.partition: read.next_offset for read in reads}
            self.same("where both go on", next_offsets, {first: 1, second: 1})
            reader.pause(first)
            reader.unassign(second)
            self.all_appended(appender.append([new(first, b"b"), new(second, b"y")]))
            self.same("a read of what is paused or unassigned", list(reader.read(SILENCE_S)), [])
            reader.resume(first)
            again = reader.read(SOON_S)
            self.same("a read once it is resumed", [each.partition for each in again], [first])
            reader.assign({first: 999})
            wrong = reader.read(SOON_S)
            if not [each for each in wrong if isinstance(each.error, OffsetOutOfRange)]:
                self.wrong("a position that is none is not said")

    def offsets(self) -> None:
        (partition,) = self.topic("offsets")
        with self.peer.appender() as appender:
            for number in range(3):
                self.all_appended(appender.append([new(partition, b"r", timestamp=_TIME + 1000 * number)]))

        def at(when: int) -> int | None:
            return self.peer.offsets({partition: when}).get(partition)

        wanted = {EARLIEST: 0, LATEST: 3, _TIME: 0, _TIME + 1: 1, _TIME + 2000: 2, _TIME + 2001: 3}
        self.same("the offsets of times", {when: at(when) for when in wanted}, wanted)
        absent = TopicPartition(self.name("absent"), 0)
        self.same("the offsets of what does not exist", self.peer.offsets({absent: LATEST}), {})

    def groups(self) -> None:
        first, second = self.topic("groups", 2)
        group = self.name("group")
        self.same("the offsets of a new group", dict(self.peer.committed(group)), {})
        offsets = {first: CommittedOffset(3, "meta"), second: CommittedOffset(0)}
        self.peer.commit(group, offsets)
        self.becomes("the offsets of the group", lambda: dict(self.second.committed(group)), offsets)


def batch_of(*values: bytes, timestamp: int = _TIME) -> bytearray:
    """One batch."""
    builder = BatchBuilder()
    for value in values:
        builder.add(value, timestamp)
    return builder.finish()


def new(partition: TopicPartition, *values: bytes, timestamp: int = _TIME) -> NewBatch:
    """The same for `append`."""
    return NewBatch(partition, batch_of(*values, timestamp=timestamp))
