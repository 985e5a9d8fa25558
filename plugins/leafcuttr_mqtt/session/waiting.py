"""What waits in a session, and its bounds: deliveries that have no packet identifier in use yet.

Those with QoS 1 and 2 are in three parts, in this order: `near`, whose turn is next; a backlog of those that are in the
log, without their messages; and those that came last, of which it may not be known yet where in the log they are. While
little waits there is `near` alone.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from leafcuttr_mqtt.session.backlog import Backlog
from leafcuttr_mqtt.session.limits import QueueLimits
from leafcuttr_mqtt.session.types import Delivery

_NOTHING: Final[deque[Delivery]] = deque(maxlen=0)
_NOTHING_0: Final[deque[tuple[int, Delivery]]] = deque(maxlen=0)
"""What all sessions without deliveries share: an empty deque takes 760 bytes."""


class Waiting:
    __slots__ = ("_backlog", "_last", "_limits", "_memory", "bytes", "count", "keeps", "near", "qos_0")

    def __init__(self, limits: QueueLimits) -> None:
        self._limits = limits
        self.near = _NOTHING
        """Read with `refill`, taken from with `pop`."""
        self.qos_0 = _NOTHING_0
        """Each with the sequence that the next delivery with QoS 1 or 2 had when it came: its place among them. Taken
        from with `pop_0`."""
        self._backlog: Backlog | None = None
        self._last = _NOTHING
        self._memory = 0
        """Bytes of those with QoS 1 and 2 whose messages are in memory."""
        self.keeps = 0
        """How many bytes of these are kept in memory although they are in the log; 0 while there is no connection."""
        self.count = 0
        self.bytes = 0

    @property
    def memory(self) -> int:
        return self._memory

    def __iter__(self) -> Iterator[Delivery]:
        """Those with QoS 1 and 2, in their order."""
        yield from self.near
        yield from self._backlog or ()
        yield from self._last

    def fits(self) -> bool:
        return self.bytes <= self._limits.max_bytes and self.count <= self._limits.max_messages

    # In.

    def add(self, delivery: Delivery) -> None:
        """One with QoS 1 or 2."""
        size = delivery.size
        # One that is not in the log is in memory, wherever it is.
        too_much = delivery.offset >= 0 and self._memory + size > self.keeps
        if self._last or self._backlog or (too_much and self.near):
            self._move()
            if self._last is _NOTHING:
                self._last = deque()
            self._last.append(delivery)
        else:
            if self.near is _NOTHING:
                self.near = deque()
            self.near.append(delivery)
        if delivery.message is not None:
            self._memory += size
        self.bytes += size
        self.count += 1

    def add_0(self, place: int, delivery: Delivery) -> None:
        """One with QoS 0."""
        if self.qos_0 is _NOTHING_0:
            self.qos_0 = deque()
        self.qos_0.append((place, delivery))
        self.bytes += delivery.size
        self.count += 1

    def loaded(self, delivery: Delivery) -> None:
        """One of `near` has got its message."""
        self._memory += delivery.size

    def restore(
        self, sequence: int, qos: int, retain: bool, identifiers: tuple[int, ...], size: int, offset: int
    ) -> None:
        """After a restart, one more that is in the log: it is no object before its turn, there may be millions."""
        if self._backlog is None:
            self._backlog = Backlog()
        self._backlog.put(sequence, offset, size, qos | 4 if retain else qos, identifiers)
        self.bytes += size
        self.count += 1

    def _move(self) -> None:
        """From the last ones to the backlog, as far as they are in the log."""
        last = self._last
        while last and last[0].offset >= 0:
            delivery = last.popleft()
            self._unload(delivery)
            if self._backlog is None:
                self._backlog = Backlog()
            self._backlog.append(delivery)

    def give_up_memory(self) -> None:
        """What is in the log is held there only from now on."""
        every = self._take_all()
        while every:
            delivery = every.popleft()
            if delivery.offset < 0:
                # It keeps its place, and all behind it theirs.
                every.appendleft(delivery)
                self._last = every
                return
            self._unload(delivery)
            if self._backlog is None:
                self._backlog = Backlog()
            self._backlog.append(delivery)

    def _take_all(self) -> deque[Delivery]:
        every = deque(self)
        self.near = self._last = _NOTHING
        self._backlog = None
        return every

    def _unload(self, delivery: Delivery) -> None:
        if delivery.message is not None:
            self._memory -= delivery.size
            delivery.message = None

    # Out.

    def refill(self, most: int) -> deque[Delivery]:
        """`near`, filled up to so many from what is behind it."""
        if self._backlog:
            if self.near is _NOTHING:
                self.near = deque()
            for _ in range(min(most - len(self.near), len(self._backlog))):
                self.near.append(self._backlog.pop())
        if self._last and not self._backlog:
            if not self.near:
                self.near, self._last = self._last, _NOTHING
            else:
                while self._last and len(self.near) < most:
                    self.near.append(self._last.popleft())
        return self.near

    def pop(self) -> Delivery:
        """The first of `near`."""
        delivery = self.near.popleft()
        size = delivery.size
        if delivery.message is not None:
            self._memory -= size
        self.bytes -= size
        self.count -= 1
        return delivery

    def pop_0(self) -> Delivery:
        """The first with QoS 0."""
        _, delivery = self.qos_0.popleft()
        self.bytes -= delivery.size
        self.count -= 1
        return delivery

    def pop_oldest(self) -> Delivery:
        """What goes first where the bounds are exceeded."""
        if self.qos_0:
            return self.pop_0()
        self.refill(1)
        return self.pop()

    def clear_0(self) -> None:
        while self.qos_0:
            self.pop_0()
        self.qos_0 = _NOTHING_0

    def log_is_gone(self) -> tuple[list[Delivery], int]:
        """Of those that are in the log: those that are in memory too, which are there no more; and how many are not,
        and are given up."""
        kept: list[Delivery] = []

        def only_there(delivery: Delivery) -> bool:
            if delivery.offset < 0:
                return False
            delivery.offset = -1
            if delivery.message is not None:
                kept.append(delivery)
            return delivery.message is None

        lost = 0
        if self._backlog is not None:
            lost = len(self._backlog)
            self.count -= lost
            self.bytes -= self._backlog.bytes
            self._backlog = None
        return kept, lost + len(self.remove(only_there))

    def remove(self, which: Callable[[Delivery], bool]) -> list[Delivery]:
        """Take out those with QoS 1 and 2 of which this holds. Goes over all of them."""
        removed: list[Delivery] = []

        def kept(delivery: Delivery) -> bool:
            if not which(delivery):
                return True
            removed.append(delivery)
            self.bytes -= delivery.size
            self.count -= 1
            if delivery.message is not None:
                self._memory -= delivery.size
            return False

        if self.near:
            self.near = deque(filter(kept, self.near))
        if self._backlog:
            backlog = Backlog()
            for delivery in filter(kept, self._backlog):
                backlog.append(delivery)
            self._backlog = backlog
        if self._last:
            self._last = deque(filter(kept, self._last))
        return removed
