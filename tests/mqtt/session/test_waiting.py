"""What waits: its three parts, what of it is in memory, and what is taken out."""

from __future__ import annotations

from collections import deque
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.messages import Message
from leafcuttr_mqtt.session.limits import QueueLimits
from leafcuttr_mqtt.session.types import Delivery
from leafcuttr_mqtt.session.waiting import Waiting


def one(sequence: int, *, size: int = 10, offset: int = -1, qos: int = 1) -> Delivery:
    return Delivery(Message("a", b"%d" % sequence), qos, False, (), size, offset, sequence)


def of_memory(keeps: int) -> Waiting:
    waiting = Waiting(QueueLimits())
    waiting.keeps = keeps
    return waiting


def in_memory(waiting: Waiting) -> list[int]:
    return [each.sequence for each in waiting if each.message is not None]


def test_nothing() -> None:
    waiting = of_memory(100)
    assert (list(waiting), waiting.count, waiting.bytes, waiting.memory) == ([], 0, 0, 0)
    assert not waiting.refill(10)
    assert waiting.fits()


def test_while_little_waits_all_of_it_is_in_memory() -> None:
    waiting = of_memory(100)
    for number in range(10):
        waiting.add(one(number, offset=number))
    assert in_memory(waiting) == [*range(10)]
    assert len(waiting.near) == 10


def test_above_that_what_is_in_the_log_is_there_only() -> None:
    waiting = of_memory(30)
    for number in range(10):
        waiting.add(one(number, offset=number))
    # The last one is moved when the next one comes.
    assert in_memory(waiting) == [0, 1, 2, 9]
    assert waiting.memory == 40
    assert [each.offset for each in waiting] == [*range(10)]


def test_what_is_not_in_the_log_stays_and_keeps_its_place() -> None:
    waiting = of_memory(10)
    offsets = [0, 1, -1, 3, 4]
    for number, offset in enumerate(offsets):
        waiting.add(one(number, offset=offset))
    assert in_memory(waiting) == [0, 2, 3, 4]
    assert [each.sequence for each in waiting] == [*range(5)]
    waiting.give_up_memory()
    assert in_memory(waiting) == [2, 3, 4]
    assert waiting.memory == 30
    found = []
    while waiting.refill(2):
        found.append(waiting.pop().sequence)
    assert found == [*range(5)]


def test_an_offset_may_be_known_later() -> None:
    waiting = of_memory(10)
    late = [one(2), one(3)]
    for each in (one(0, offset=0), one(1, offset=1), *late):
        waiting.add(each)
    assert in_memory(waiting) == [0, 2, 3]
    late[0].offset = 2
    waiting.add(one(4))
    assert in_memory(waiting) == [0, 3, 4]


def test_what_is_not_in_the_log_does_not_hold_back_what_is_behind_it() -> None:
    waiting = of_memory(25)
    for number in range(4):
        waiting.add(one(number))
    for number in range(4, 8):
        waiting.add(one(number, offset=number))
    assert in_memory(waiting) == [0, 1, 2, 3, 7]


def test_offsets_begin_at_0() -> None:
    waiting = of_memory(10)
    for number, offset in enumerate((-1, 0, 1)):
        waiting.add(one(number, offset=offset))
    assert in_memory(waiting) == [0, 2]


def test_bounds() -> None:
    waiting = Waiting(QueueLimits(max_messages=2, max_bytes=25))
    waiting.add(one(0))
    waiting.add_0(1, one(1, size=15, qos=0))
    assert waiting.fits()
    waiting.add(one(1, size=0))
    assert not waiting.fits()
    assert waiting.pop_oldest().qos == 0
    assert waiting.fits()
    waiting.add_0(1, one(1, size=16, qos=0))
    assert not waiting.fits()
    waiting.clear_0()
    assert (waiting.count, waiting.bytes) == (2, 10)
    assert waiting.pop_oldest().sequence == 0


steps = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 30), st.booleans()),
    st.tuples(st.just("add_0"), st.integers(0, 30), st.booleans()),
    st.tuples(
        st.sampled_from(["pop", "pop_0", "oldest", "give up", "remove", "offsets"]),
        st.integers(1, 5),
        st.none(),
    ),
)


@given(st.lists(steps, max_size=60), st.sampled_from([0, 25, 1000]))
def test_as_one_list(what: list[Any], keeps: int) -> None:
    waiting = of_memory(keeps)
    model, model_0 = deque[tuple[int, int]](), deque[tuple[int, int]]()
    offsets: dict[int, Delivery] = {}
    for number, (name, value, stored) in enumerate(what):
        match name:
            case "add":
                delivery = one(number, size=value, offset=number if stored else -1)
                if not stored:
                    offsets[number] = delivery
                waiting.add(delivery)
                model.append((number, value))
            case "add_0":
                waiting.add_0(number, one(number, size=value, qos=0))
                model_0.append((number, value))
            case "pop" if model:
                for _ in range(min(value, len(model))):
                    waiting.refill(value)
                    delivery = waiting.pop()
                    assert (delivery.sequence, delivery.size) == model.popleft()
            case "pop_0" if model_0:
                assert waiting.pop_0().sequence == model_0.popleft()[0]
            case "oldest" if model or model_0:
                expected = (model_0 or model).popleft()[0]
                assert waiting.pop_oldest().sequence == expected
            case "give up":
                waiting.give_up_memory()
            case "remove":
                removed = waiting.remove(lambda each, by=value: each.sequence % (by + 1) == 0)  # type: ignore[misc]
                gone = [each for each in model if each[0] % (value + 1) == 0]
                assert [(each.sequence, each.size) for each in removed] == gone
                model = deque(each for each in model if each not in gone)
            case "offsets":
                for sequence, delivery in offsets.items():
                    delivery.offset = sequence
        assert [(each.sequence, each.size) for each in waiting] == list(model)
        assert waiting.count == len(model) + len(model_0)
        assert waiting.bytes == sum(size for _, size in [*model, *model_0])
        kept = [each for each in waiting if each.message is not None]
        assert waiting.memory == sum(each.size for each in kept)
        assert all(each.offset >= 0 for each in waiting if each.message is None)
