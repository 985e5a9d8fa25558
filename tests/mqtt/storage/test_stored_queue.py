"""`StoredQueue` beside a dict."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from leafcuttr_mqtt.session.types import Delivery
from leafcuttr_mqtt.storage.stored_queue import MOST_MISSING, StoredQueue


class Queues(RuleBasedStateMachine):
    """Sequences rise, with gaps now and then; some are stored again, some are over out of order."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = StoredQueue()
        self.model: dict[int, Delivery] = {}
        self.next = 0
        self.offset = 0

    def put(self, sequence: int, qos: int, retain: bool, size: int, identifiers: tuple[int, ...]) -> None:
        flags = qos | (4 if retain else 0) | (8 if identifiers else 0)
        self.queue.put(sequence, self.offset, flags, size, identifiers)
        self.model[sequence] = Delivery(None, qos, retain, identifiers, size, self.offset, sequence)

    @rule(
        qos=st.integers(1, 2),
        retain=st.booleans(),
        size=st.integers(0, 1000),
        identifiers=st.sampled_from([(), (), (5,), (6, 7)]),
        gap=st.sampled_from([0, 0, 0, 1, 70, MOST_MISSING, MOST_MISSING + 1, 10**12]),
    )
    def add(self, qos: int, retain: bool, size: int, identifiers: tuple[int, ...], gap: int) -> None:
        self.next += gap
        self.offset += 1
        self.put(self.next, qos, retain, size, identifiers)
        self.next += 1

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        sequence = data.draw(st.sampled_from(sorted(self.model)))
        assert self.queue.remove(sequence) == self.model.pop(sequence).offset

    @precondition(lambda self: self.model)
    @rule(count=st.integers(1, 200))
    def remove_first(self, count: int) -> None:
        for sequence in sorted(self.model)[:count]:
            assert self.queue.get(sequence) == self.model[sequence]
            assert self.queue.remove(sequence) == self.model.pop(sequence).offset

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def move(self, data: st.DataObject) -> None:
        """The message was stored once more."""
        one = self.model[data.draw(st.sampled_from(sorted(self.model)))]
        self.offset += 1
        self.put(one.sequence, one.qos, one.retain, one.size, one.identifiers)

    @precondition(lambda self: self.next)
    @rule(data=st.data())
    def bring_back(self, data: st.DataObject) -> None:
        # Anywhere, or beside one that is there.
        near = [each + by for each in self.model for by in (-MOST_MISSING - 1, -MOST_MISSING, -3, -1, 1, 7)]
        sequence = data.draw(st.integers(0, self.next - 1) | st.sampled_from(near or [0]))
        if not 0 <= sequence < self.next:
            return
        if sequence not in self.model:
            self.offset += 1
            self.put(sequence, 1, False, 3, ())

    @rule(sequence=st.integers(-5, 100_000))
    def remove_what_is_not_there(self, sequence: int) -> None:
        if sequence not in self.model:
            assert self.queue.remove(sequence) == -1

    @rule()
    def take_all(self) -> None:
        taken = [
            Delivery(None, qos, retain, identifiers, size, offset, sequence)
            for sequence, qos, retain, identifiers, size, offset in self.queue.take_rows()
        ]
        assert taken == [self.model[sequence] for sequence in sorted(self.model)]
        self.model.clear()

    @invariant()
    def same(self) -> None:
        assert list(self.queue) == [self.model[sequence] for sequence in sorted(self.model)]
        assert len(self.queue) == self.queue.count == len(self.model)
        assert self.queue.size == sum(one.size for one in self.model.values())
        assert self.queue.sequences() == sorted(self.model)
        assert sorted(self.queue.offsets()) == sorted(one.offset for one in self.model.values())


TestQueues = Queues.TestCase


def test_an_empty_queue() -> None:
    queue = StoredQueue()
    assert list(queue) == []
    assert queue.get(0) is None
    assert 0 not in queue


def test_what_was_removed_takes_no_place() -> None:
    """A queue whose front is removed and whose end grows does not grow."""
    queue = StoredQueue()
    for sequence in range(10_000):
        queue.put(sequence, sequence, 1, 1)
        if sequence >= 10:
            queue.remove(sequence - 10)
    assert places(queue) < 200


def places(queue: StoredQueue) -> int:
    return sum(len(run.offsets) for run in queue._runs)


def test_millions_that_are_over_between_two_take_no_place() -> None:
    queue = StoredQueue()
    for sequence in (0, 1, 10**12, 10**12 + 1, 10**9, 10**9 + 2, 10**12 - 1):
        assert queue.put(sequence, sequence, 1, 1) == -1
    assert queue.sequences() == [0, 1, 10**9, 10**9 + 2, 10**12 - 1, 10**12, 10**12 + 1]
    assert (places(queue), len(queue._runs)) == (8, 3)
    assert queue.put(10**9, 7, 1, 1) == 10**9
    assert [queue.remove(sequence) for sequence in (10**9, 10**9 + 1, 10**9 + 2, 2)] == [7, -1, 10**9 + 2, -1]
    assert places(queue) == 5


def test_few_that_are_over_keep_their_places() -> None:
    """A run costs more than they."""
    queue = StoredQueue()
    queue.put(0, 0, 1, 1)
    queue.put(1 + MOST_MISSING, 1, 1, 1)
    assert len(queue._runs) == 1
    queue.put(3 + 2 * MOST_MISSING, 2, 1, 1)
    assert (places(queue), len(queue._runs)) == (3 + MOST_MISSING, 2)
