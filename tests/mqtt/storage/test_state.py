"""Numbers of messages, and which messages a session needs."""

from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_mqtt.storage.state import StoredSession, parts_of, record_number


@given(st.integers(0, 1 << 40), st.integers(0, (1 << 64) - 1))
def test_record_numbers(session: int, number: int) -> None:
    assert parts_of(record_number(session, number)) == (session, number)
    assert record_number(session, number) < record_number(session, number + 1)


@given(st.lists(st.tuples(st.sampled_from(["begin", "end"]), st.integers(0, 8)), max_size=40))
def test_which_messages_a_session_needs(steps: list[tuple[str, int]]) -> None:
    """Sequences rise, with gaps; deliveries end in any order, some more than once."""
    stored, needed, upto = StoredSession("c", 1), set[int](), 0
    for step, which in steps:
        if step == "begin":
            upto += which // 4
            stored.begin(upto)
            needed.add(upto)
            upto += 1
        else:
            sequence = max(upto - which, 0)
            stored.end(sequence)  # one that has not begun has no end
            needed.discard(sequence)
        assert {each for each in range(-1, upto + 3) if stored.needs(each)} == needed
        assert stored.next_sequence == upto
        if not needed:
            assert not stored.done
    stored.ended = True
    assert not any(stored.needs(each) for each in range(upto))


def test_one_that_is_never_acknowledged_before_millions_that_are_over() -> None:
    """They take the room of one."""
    stored = StoredSession("c", 1)
    stored.begin(0)
    for sequence in range(1, 1000):
        stored.begin(sequence)
        stored.end(sequence)
    stored.begin(10**12)
    assert list(stored.done.ranges()) == [(1, 10**12)]
    stored.end(0)
    assert (stored.first, stored.next_sequence) == (10**12, 10**12 + 1)
    assert stored.needs(10**12)
