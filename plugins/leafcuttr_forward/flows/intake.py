"""Between reading and writing: reads ahead while the writer writes, and holds no more than it may.

One task runs `Intake.run`; the writer takes portions from it and says when they are at the target for good. What goes
wrong with one partition of the source is handed to `on_error`, and the others go on.

Where the target has refused something, portions stand alone, and the next one is made once the writer is done with the
one before. Their read is kept meanwhile, and what is refused is made of it again: nothing else is made of it until the
record at fault is found.
"""

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from leafcuttr_forward.flows import points
from leafcuttr_forward.flows.errors import NotReadyYet, PoisonRecord, one_error
from leafcuttr_forward.flows.making import Maker, Portion
from leafcuttr_forward.flows.pace import Backoff, Throttle
from leafcuttr_sdk.errors import CorruptMessage
from leafcuttr_sdk.types import TopicPartition

if TYPE_CHECKING:
    from leafcuttr_sdk.errors import BrokerError
    from leafcuttr_sdk.peers import PeerRead, PeerReader

MUCH: Final = 256 << 10
"""Bytes that wait: a flow that takes its target's commits one by one keeps up with less."""
_EPOCH: Final = slice(12, 16)
"""Where the leader epoch of a batch is (int32)."""


class Intake:
    """Portions in the order in which they came, those of a partition in the order of their offsets."""

    def __init__(
        self,
        reader: "PeerReader",
        maker: Maker,
        *,
        limit: int,
        throttle: Throttle,
        on_read: Callable[["PeerRead"], None],
        on_error: Callable[[TopicPartition, "BrokerError"], None],
        on_epoch: Callable[[TopicPartition, int, int], Awaitable[bool]],
        broken: set[tuple[TopicPartition, int]],
        on_wait: Callable[[str | None], None],
        on_held: Callable[[int], None],
    ) -> None:
        import trio

        self._reader = reader
        self._maker = maker
        self._limit = limit
        self._throttle = throttle
        self._on_read = on_read
        self._on_error = on_error
        self._on_wait = on_wait
        self._on_held = on_held
        self._on_epoch = on_epoch
        self._broken = broken
        self._poison: dict[TopicPartition, PoisonRecord] = {}
        self._epochs: dict[TopicPartition, int] = {}
        self._queue: deque[Portion] = deque()
        self._taken: Counter[TopicPartition] = Counter()
        self._changed = trio.Event()
        self._generations: dict[TopicPartition, int] = {}
        self._closed = False
        self._interrupted = False
        self._steps: dict[TopicPartition, tuple[int, int]] = {}
        self._kept: dict[TopicPartition, tuple[PeerRead, int]] = {}
        """What portions that stand alone are made of, and from which offset on. The reader pauses these partitions."""
        self._making: set[TopicPartition] = set()
        self._one_at_a_time = trio.Lock()
        self.positions: dict[TopicPartition, int] = {}
        """The next offset of each partition to be made."""
        self.held = 0
        """Bytes that were read and are not at the target for good."""

    def assign(
        self, positions: Mapping[TopicPartition, int], epochs: Mapping[TopicPartition, int] | None = None
    ) -> None:
        """Read these from there on; what was read of them and not taken is forgotten. `epochs` are the leader epochs of
        what was read before."""
        for partition in positions:
            self._forget(partition)
            self._epochs[partition] = (epochs or {}).get(partition, -1)
            self._maker.forget(partition.topic)
        self.positions.update(positions)
        self._reader.assign(positions)

    def make_again(
        self, positions: Mapping[TopicPartition, int], epochs: Mapping[TopicPartition, int]
    ) -> None:
        """As `assign`, but what is kept is not read again."""
        for partition, position in positions.items():
            read, start = self._kept.get(partition, (None, 0))
            if read is None or not start <= position <= read.next_offset:
                self.assign({partition: position}, {partition: epochs.get(partition, -1)})
                continue
            self._drop_portions(partition)
            self._maker.forget(partition.topic)
            self.positions[partition] = position

    def unassign(self, *partitions: TopicPartition) -> None:
        """Read these no more, and forget what was read of them and not taken."""
        for partition in partitions:
            self._forget(partition)
            self.positions.pop(partition, None)
        self._reader.unassign(*partitions)

    async def settled(self, partitions: Collection[TopicPartition]) -> None:
        """Read these no more, and wait until the writer has none of them: what it took is at the target, or is not
        going to be."""
        self.unassign(*partitions)
        while any(self._taken[partition] for partition in partitions):
            await self._changed.wait()

    def go_carefully(self, partition: TopicPartition, step: int, until: int) -> None:
        """Portions of this one are of so many offsets, and stand alone, up to this offset."""
        self._steps[partition] = (step, until)

    def set_aside(self, poison: PoisonRecord) -> None:
        """This record becomes a dead letter."""
        self._poison[poison.partition] = poison

    def close(self) -> None:
        """The writer gets nothing more, once it has finished what it took."""
        self._closed = True
        self._queue.clear()
        self._wake()

    def start_taking(self) -> None:
        """For a writer, before it takes anything."""
        self._interrupted = False

    def stop_taking(self) -> None:
        """A writer that waits in `take` gets nothing; what is read stays for the next one."""
        self._interrupted = True
        self._wake()

    async def run(self) -> None:
        """Until cancelled, or closed. Raises what `Maker.make` raises but for NotReadyYet, and the reader's errors."""
        import trio

        with one_error():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._go_on_with_kept)
                await self._read_on()
                nursery.cancel_scope.cancel()

    async def _read_on(self) -> None:
        import trio

        while not self._closed:
            while self.held >= self._limit and not self._closed:
                await self._changed.wait()
            reads = await self._reader.read()
            points.reach("read")
            for read in [(read, self._generation(read.partition)) for read in reads]:
                await self._make(*read)
            pause = self._throttle.pause_s(sum(len(read.data) for read in reads))
            if pause:
                await trio.sleep(pause)

    async def take(self, most: int, *, alone: bool = True) -> list[Portion]:
        """The next portions, of about so many bytes; waits for the first. Empty once it is closed, or interrupted; and
        without `alone`, where the first is to be written by itself."""
        while not self._queue and not self._closed and not self._interrupted:
            await self._changed.wait()
        if self._interrupted or (self.next_is_alone and not alone):
            return []
        return self.take_now(most)

    def take_now(self, most: int) -> list[Portion]:
        """As `take`, without waiting: empty if there are none."""
        taken: list[Portion] = []
        size = 0
        while self._queue and size < most:
            if self._queue[0].alone and taken:
                break
            portion = self._queue.popleft()
            taken.append(portion)
            self._taken[portion.source] += 1
            size += portion.size
            if portion.alone:
                break
        return taken

    @property
    def next_is_alone(self) -> bool:
        """Whether the next portion is to be written by itself."""
        return bool(self._queue) and self._queue[0].alone

    def is_behind(self) -> bool:
        """Whether so much waits to be taken that to write it together is worth more than to write it soon."""
        return sum(portion.size for portion in self._queue) >= MUCH

    def written(self, portions: Sequence[Portion]) -> None:
        """The target has taken the batches of these: they need no memory any more, though they are not there for good.
        What follows them is read meanwhile."""
        self.held -= sum(portion.drop_batches() for portion in portions)
        self._wake()

    def release(self, portions: Sequence[Portion]) -> None:
        """These need no memory any more: they are at the target for good, or will be read again."""
        self.held -= sum(portion.size for portion in portions)
        self._taken.subtract(portion.source for portion in portions)
        self._wake()

    async def _make(self, read: "PeerRead", generation: int) -> None:
        partition = read.partition
        if generation != self._generation(partition) or partition not in self.positions:
            return
        if read.error is not None:
            self._on_error(partition, read.error)
            return
        if await self._is_cut(read) or generation != self._generation(partition):
            return
        self._on_read(read)
        await self._make_portions(read, generation)

    async def _make_portions(self, read: "PeerRead", generation: int) -> None:
        """All of a read; up to the first that stands alone where the target has refused something."""
        partition = read.partition
        self._making.add(partition)
        try:
            while self.positions.get(partition, read.next_offset) < read.next_offset:
                position = self.positions[partition]
                until = self._until(partition, position)
                if until is not None and partition not in self._kept:
                    self._keep(read, position)
                portion = await self._made(read, position, until)
                if generation != self._generation(partition):
                    return
                self.positions[partition] = portion.next
                self.held += portion.size
                self._queue.append(portion)
                points.reach("made")
                self._wake()
                if until is not None:
                    return
            self._drop_kept(partition)
        finally:
            self._making.discard(partition)
            self._wake()

    async def _go_on_with_kept(self) -> None:
        """Make the next portions of what is kept, once the writer is done with those before."""
        while not self._closed:
            ready = [partition for partition in self._kept if not self._is_under_way(partition)]
            for partition in ready:
                if partition in self._kept:
                    await self._make_portions(self._kept[partition][0], self._generation(partition))
            if not ready:
                await self._changed.wait()

    def _is_under_way(self, partition: TopicPartition) -> bool:
        """Whether a portion of it waits, is being made, or is with the writer."""
        return (
            self._taken[partition] > 0
            or partition in self._making
            or any(portion.source == partition for portion in self._queue)
        )

    def _keep(self, read: "PeerRead", position: int) -> None:
        self._kept[read.partition] = (read, position)
        self.held += len(read.data)
        self._reader.pause(read.partition)

    def _drop_kept(self, partition: TopicPartition) -> None:
        kept = self._kept.pop(partition, None)
        if kept is not None:
            self.held -= len(kept[0].data)
            self._reader.resume(partition)
            self._wake()

    async def _made(self, read: "PeerRead", position: int, until: int | None) -> Portion:
        import trio

        backoff = Backoff()
        while True:
            poison = self._poison.get(read.partition)
            if poison is not None and poison.offset <= position:
                del self._poison[read.partition]
                if poison.offset == position:
                    return await self._maker.letter(read, poison)
                continue
            end = until if poison is None else min(poison.offset, until or poison.offset)
            try:
                async with self._one_at_a_time:  # filters see the records of a topic one after the other
                    portion = await self._maker.make(read, position, end)
            except NotReadyYet as error:
                self._maker.forget(read.partition.topic)
                self._on_wait(f"a filter waits for {error}")
                await trio.sleep(backoff.next_s())
            except PoisonRecord as error:
                self._maker.forget(read.partition.topic)
                self._found(error)
            else:
                self._on_wait(None)
                portion.alone = until is not None
                return portion

    def _found(self, poison: PoisonRecord) -> None:
        """What is broken is read once more before it is given up. Raises CorruptMessage."""
        place = (poison.partition, poison.offset)
        if poison.broken and place not in self._broken:
            self._broken.add(place)
            raise CorruptMessage(f"{poison.partition}, offset {poison.offset}: {poison}")
        self._poison[poison.partition] = poison

    async def _is_cut(self, read: "PeerRead") -> bool:
        """Whether a new leader of the source does not have all that was read of the one before."""
        partition = read.partition
        if not read.data:
            return False
        epoch = int.from_bytes(read.data[_EPOCH], "big", signed=True)
        before = self._epochs.get(partition, -1)
        self._epochs[partition] = epoch
        return 0 <= before < epoch and await self._on_epoch(partition, before, self.positions[partition])

    def _until(self, partition: TopicPartition, position: int) -> int | None:
        careful = self._steps.get(partition)
        if careful is None:
            return None
        step, end = careful
        if position >= end:
            del self._steps[partition]
            return None
        return min(position + step, end)

    def _forget(self, partition: TopicPartition) -> None:
        self._drop_kept(partition)
        self._drop_portions(partition)

    def _drop_portions(self, partition: TopicPartition) -> None:
        self._generations[partition] = self._generation(partition) + 1
        kept = [portion for portion in self._queue if portion.source != partition]
        self.held -= sum(portion.size for portion in self._queue if portion.source == partition)
        self._queue = deque(kept)
        self._wake()

    def _generation(self, partition: TopicPartition) -> int:
        return self._generations.get(partition, 0)

    def _wake(self) -> None:
        import trio

        self._on_held(self.held)
        event, self._changed = self._changed, trio.Event()
        event.set()
