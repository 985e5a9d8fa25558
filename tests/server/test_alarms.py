"""Times by descriptor: beside the plainest table that does the same, and how much they keep."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.server.alarms import Alarms

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.integers(0, 4), st.integers(0, 50)),
        st.tuples(st.just("forget"), st.integers(0, 4), st.just(0)),
        st.tuples(st.just("due"), st.just(0), st.integers(0, 20)),
    ),
    max_size=60,
)


@given(STEPS)
def test_as_a_plain_table(steps: list[tuple[str, int, int]]) -> None:
    alarms, table, now = Alarms(), dict[int, float](), 0.0
    for what, key, number in steps:
        if what == "set":
            alarms.set(key, now + number)
            table[key] = min(now + number, table.get(key, inf))
        elif what == "forget":
            alarms.forget(key)
            table.pop(key, None)
        else:
            now += number
            due = {key for key, at in table.items() if at <= now}
            found = list(alarms.due(now))
            assert sorted(found) == sorted(due)
            assert [table[key] for key in found] == sorted(table[key] for key in due)
            for key in due:
                del table[key]
            assert alarms.next > now
        assert alarms.next <= min(table.values(), default=inf)


def test_what_is_set_again_costs_nothing() -> None:
    """A later time changes nothing; one entry is kept."""
    alarms = Alarms()
    for number in range(10_000):
        alarms.set(7, 1.0 + number)
    assert len(alarms._heap) == 1
    assert list(alarms.due(5.0)) == [7]
    assert list(alarms.due(inf)) == []


def test_what_is_forgotten_is_not_kept() -> None:
    """Connections that come, wait for weeks and go."""
    alarms = Alarms()
    for number in range(10_000):
        alarms.set(number, 1e9 + number)
        alarms.forget(number)
    for number in range(10_000):
        alarms.set(1, 1e9 - number)
    assert len(alarms._heap) < 300
    assert list(alarms.due(2e9)) == [1]


def test_a_descriptor_that_another_one_has_now() -> None:
    """What was set for the one before does not count."""
    alarms = Alarms()
    alarms.set(5, 1.0)
    alarms.forget(5)
    alarms.set(5, 3.0)
    assert list(alarms.due(2.0)) == []
    assert list(alarms.due(3.0)) == [5]
