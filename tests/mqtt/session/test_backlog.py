"""The middle of a long queue."""

from __future__ import annotations

import sys
from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.session.backlog import Backlog
from leafcuttr_mqtt.session.types import Delivery

deliveries = st.builds(
    Delivery,
    message=st.none(),
    qos=st.integers(1, 2),
    retain=st.booleans(),
    identifiers=st.lists(st.integers(1, 268_435_455), max_size=2).map(tuple),
    size=st.integers(0, 2**28),
    offset=st.integers(0, 2**62),
)


@given(st.lists(st.one_of(deliveries, st.integers(1, 90)), max_size=200))
def test_first_in_first_out(steps: list[Any]) -> None:
    backlog, model = Backlog(), deque[Delivery]()
    for number, step in enumerate(steps):
        if isinstance(step, Delivery):
            for copy in range(20):
                one = Delivery(
                    None, step.qos, step.retain, step.identifiers, step.size, step.offset, number * 20 + copy
                )
                backlog.append(one)
                model.append(one)
        else:
            for _ in range(min(step, len(model))):
                assert backlog.pop() == model.popleft()
        assert len(backlog) == len(model)
        assert bool(backlog) == bool(model)
    assert list(backlog) == list(model)


def test_there_is_none() -> None:
    with pytest.raises(IndexError):
        Backlog().pop()


def test_a_delivery_takes_little() -> None:
    backlog = Backlog()
    for sequence in range(10_000):
        backlog.append(
            Delivery(None, 1, False, (sequence + 1,) if sequence < 9 else (), 100, sequence, sequence)
        )
    taken = sum(sys.getsizeof(getattr(backlog, name)) for name in Backlog.__slots__ if name != "_head")
    assert taken < 30 * 10_000
    for _ in range(9_999):
        backlog.pop()
    assert not backlog._identifiers
    left = sum(sys.getsizeof(getattr(backlog, name)) for name in Backlog.__slots__ if name != "_head")
    assert left < 10_000
