"""Which partitions a reader reads, how far it is in each, and what it has of them that was not handed out. No I/O.

Theory of operation. A partition has a leader (`learn`) or waits for one (`leaderless`). A fetch goes to one leader at a
time and names all partitions of it that are read; the next one goes out when all that it found has been handed out
(`take`), so a partition is never fetched twice. Whatever comes for a partition that was assigned anew meanwhile, or is
assigned no more, belongs to an older `turn` of it and is dropped.

A partition with an error is left alone until it is assigned again. What passes by itself is no error: the partition
waits for a leader again. Before a new leader is read from, it has to confirm the epoch of what was read last (KIP-320),
which is `unconfirmed`.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from leafcuttr.client.codes import LATER, NEW_LEADER
from leafcuttr.client.errors import refusal
from leafcuttr.client.fetching.whole_batches import aborted_ranges, whole_batches
from leafcuttr.client.leaders import Led
from leafcuttr.client.rights import is_for_want, topic_refusal
from leafcuttr.errors import BrokerError, CorruptMessage, OffsetOutOfRange, UnknownTopicId
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.messages.fetch import PartitionData
from leafcuttr.wire.primitives import ZERO_UUID
from leafcuttr_sdk.peers import PeerRead
from leafcuttr_sdk.security import Operation
from leafcuttr_sdk.types import TopicPartition

MISSES: Final = 4
"""So many times in a row has metadata to have no such partition until it is taken for deleted: a topic that was created
a moment ago is not known to all brokers."""


class Wanted(NamedTuple):
    """A partition in a fetch."""

    partition: TopicPartition
    topic_id: bytes
    offset: int
    leader_epoch: int
    turn: int


class Unconfirmed(NamedTuple):
    """A leader is to say where the epoch ends that was read last."""

    partition: TopicPartition
    node: int
    leader_epoch: int
    epoch: int
    turn: int


class _Partition:
    __slots__ = (
        "confirmed", "error", "found", "last_epoch", "led", "misses", "paused", "position", "topic_id", "turn",
    )  # fmt: skip

    def __init__(self) -> None:
        self.turn = 0
        self.position = 0
        self.led: Led | None = None
        self.topic_id = ZERO_UUID
        self.last_epoch = -1
        self.confirmed = True
        self.paused = False
        self.misses = 0
        self.found: PeerRead | None = None
        self.error = False


class Assignment:
    """The state of one reader."""

    def __init__(self, *, committed: bool) -> None:
        self._committed = committed
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._turns = 0
        self._rotation = 0

    # --- by the caller of the reader ----------------------------------------------------------------------

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        for tp, position in positions.items():
            self._turns += 1
            known = self._partitions.get(tp)
            one = self._partitions[tp] = _Partition()
            one.turn, one.position = self._turns, position
            if known is not None:
                one.paused = known.paused
                if not known.error:
                    one.led, one.topic_id = known.led, known.topic_id

    def unassign(self, partitions: Iterable[TopicPartition]) -> None:
        for tp in partitions:
            self._partitions.pop(tp, None)

    def pause(self, partitions: Iterable[TopicPartition], *, paused: bool) -> None:
        for tp in partitions:
            if (one := self._partitions.get(tp)) is not None:
                one.paused = paused

    def take(self) -> list[PeerRead]:
        """What is to be handed out now; the caller has it from then on."""
        taken: list[PeerRead] = []
        for one in self._partitions.values():
            if one.found is not None and not one.paused:
                taken.append(one.found)
                one.found = None
        return taken

    # --- by the fetches -----------------------------------------------------------------------------------

    def nodes(self) -> set[int]:
        """The leaders of what is read."""
        return {one.led.node for one in self._partitions.values() if one.led is not None and not one.error}

    def to_fetch(self, node: int) -> "list[Wanted] | None":
        """What is to be fetched of this leader now; None while there is nothing, or what it sent is not handed out."""
        wanted: list[Wanted] = []
        for tp, one in self._partitions.items():
            led = one.led
            if led is None or led.node != node or one.error or one.paused:
                continue
            if one.found is not None:
                return None
            if one.confirmed:
                wanted.append(Wanted(tp, one.topic_id, one.position, led.leader_epoch, one.turn))
        if not wanted:
            return None
        # Brokers fill their answers in the order of the request: each partition comes first in its turn.
        self._rotation = (self._rotation + 1) % len(wanted)
        return wanted[self._rotation :] + wanted[: self._rotation]

    def leaves_some(self, node: int, wanted: int) -> bool:
        """Whether there are partitions of this leader that may come to be fetched at any moment."""
        return wanted < sum(
            one.led is not None and one.led.node == node and not one.error
            for one in self._partitions.values()
        )

    def found(self, wanted: Wanted, data: PartitionData) -> bool:
        """What a leader answered; False for what is to be tried again after a pause."""
        one = self._current(wanted.partition, wanted.turn)
        if one is None:
            return True
        if data.error_code:
            return self._refused(wanted.partition, one, data.error_code)
        try:
            records = data.records
            assert records is None or isinstance(records, memoryview)
            whole = whole_batches(records if records is not None else memoryview(b""), one.position)
            aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
            ranges = aborted_ranges(aborted, whole.data, whole.next_offset) if self._committed else []
        except WireError as error:
            self._fail(
                wanted.partition, one, CorruptMessage(f"{wanted.partition} at offset {one.position}: {error}")
            )
            return True
        if whole.next_offset > one.position:
            end = data.last_stable_offset if self._committed else data.high_watermark
            one.found = PeerRead(
                wanted.partition, whole.data, whole.next_offset, end, data.log_start_offset, ranges
            )
            one.position = whole.next_offset
            if whole.leader_epoch >= 0:
                one.last_epoch = whole.leader_epoch
        return True

    def _refused(self, tp: TopicPartition, one: _Partition, code: int) -> bool:
        if code in NEW_LEADER:
            one.led = None
            return True
        if code in LATER or code == -1:
            return False
        place = f"{tp} at offset {one.position}"
        lacks = is_for_want(code, None)
        self._fail(
            tp, one, topic_refusal(code, place, tp.topic, Operation.READ) if lacks else refusal(code, place)
        )
        return True

    def lost(self, node: int) -> None:
        """The connection to this leader is gone, or it does not answer."""
        for one in self._partitions.values():
            if one.led is not None and one.led.node == node:
                one.led = None

    # --- by the metadata ----------------------------------------------------------------------------------

    def leaderless(self) -> set[TopicPartition]:
        """Those whose leader is to be looked up."""
        return {tp for tp, one in self._partitions.items() if one.led is None and not one.error}

    def readable(self) -> set[TopicPartition]:
        """All that have no error."""
        return {tp for tp, one in self._partitions.items() if not one.error}

    def learn(self, tp: TopicPartition, led: Led) -> None:
        """The metadata says who leads a partition."""
        one = self._partitions.get(tp)
        if one is None or one.error:
            return
        one.misses = 0
        if one.led == led:
            return
        if one.topic_id not in (ZERO_UUID, led.topic_id):
            self._fail(tp, one, UnknownTopicId(f"{tp.topic} was deleted and created anew"))
            return
        one.topic_id = led.topic_id
        one.led = led
        one.confirmed = one.last_epoch < 0 or one.last_epoch == led.leader_epoch or led.leader_epoch < 0

    def missed(self, tp: TopicPartition, error: BrokerError, *, for_good: bool) -> None:
        """The metadata has no such partition, or refuses it."""
        one = self._partitions.get(tp)
        if one is None or one.error:
            return
        one.misses += 1
        one.led = None
        if for_good or one.misses >= MISSES:
            self._fail(tp, one, error)

    def unconfirmed(self) -> list[Unconfirmed]:
        """What leaders are to be asked before they are read from."""
        return [
            Unconfirmed(tp, one.led.node, one.led.leader_epoch, one.last_epoch, one.turn)
            for tp, one in self._partitions.items()
            if one.led is not None and not one.confirmed and not one.error
        ]

    def confirm(self, asked: Unconfirmed, epoch: int, end_offset: int) -> None:
        """The leader's largest epoch that is not above the one asked, and where it ends; (-1, -1) for none."""
        one = self._current(asked.partition, asked.turn)
        if one is None or one.error:
            return
        if end_offset < one.position:
            there = f"epoch {epoch} ends at offset {end_offset}" if end_offset >= 0 else "it is unknown there"
            why = f"offset {one.position} was read of leader epoch {asked.epoch}, now {there}"
            self._fail(asked.partition, one, OffsetOutOfRange(f"{asked.partition} was truncated: {why}"))
        one.confirmed = True

    def forget(self, asked: Unconfirmed) -> None:
        """This is not the leader."""
        one = self._current(asked.partition, asked.turn)
        if one is not None:
            one.led = None

    def _current(self, tp: TopicPartition, turn: int) -> _Partition | None:
        one = self._partitions.get(tp)
        return one if one is not None and one.turn == turn else None

    def _fail(self, tp: TopicPartition, one: _Partition, error: BrokerError) -> None:
        """Handed out behind what was read before, which `found` is never overwritten by."""
        one.error = True
        one.confirmed = True
        before = one.found
        one.found = (
            PeerRead(tp, b"", one.position, -1, -1, (), error)
            if before is None
            else before._replace(error=error)
        )
