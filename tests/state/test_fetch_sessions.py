"""Incremental fetch sessions (KIP-227): epochs, what is remembered, what is left out, who is pushed out."""

import pytest

from leafcuttr.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from leafcuttr.state.fetch_sessions import FINAL_EPOCH, INITIAL_EPOCH, FetchPlan, FetchSessions, FetchSpec


class HandClock:
    def __init__(self) -> None:
        self.ms = 1_000_000

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000


def spec(partition: int, offset: int = 0, topic: str = "t") -> FetchSpec:
    return FetchSpec(topic, partition, offset, 1 << 20)


def ask(
    sessions: FetchSessions,
    session_id: int,
    epoch: int,
    *specs: FetchSpec,
    forget: tuple[tuple[str, int], ...] = (),
    ids: bool = False,
) -> FetchPlan:
    return sessions.plan(session_id, epoch, specs, forget, uses_topic_ids=ids)


def test_a_full_fetch_opens_a_session_and_later_fetches_say_only_what_changed() -> None:
    sessions = FetchSessions(10, HandClock())
    first = ask(sessions, 0, INITIAL_EPOCH, spec(0), spec(1))
    assert first.session_id > 0
    assert not first.incremental
    second = ask(sessions, first.session_id, 1, spec(1, offset=7))
    assert second.incremental
    assert [(s.partition, s.fetch_offset) for s in second.specs] == [(0, 0), (1, 7)]
    third = ask(sessions, first.session_id, 2, spec(2), forget=(("t", 0),))
    assert [s.partition for s in third.specs] == [1, 2]


def test_the_epoch_must_be_the_next_one() -> None:
    sessions = FetchSessions(10, HandClock())
    plan = ask(sessions, 0, INITIAL_EPOCH, spec(0))
    for epoch in (2, 7):
        with pytest.raises(InvalidFetchSessionEpoch):
            ask(sessions, plan.session_id, epoch)
    assert plan.session is not None
    plan.session.epoch = 2**31 - 1
    ask(sessions, plan.session_id, 2**31 - 1)
    assert plan.session.epoch == 1


def test_an_unknown_session_and_a_change_to_topic_ids_are_errors() -> None:
    sessions = FetchSessions(10, HandClock())
    with pytest.raises(FetchSessionIdNotFound):
        ask(sessions, 5, 1, spec(0))
    plan = ask(sessions, 0, INITIAL_EPOCH, spec(0))
    with pytest.raises(FetchSessionTopicIdError):
        ask(sessions, plan.session_id, 1, ids=True)


def test_the_final_epoch_closes_a_session_and_fetches_without_one() -> None:
    sessions = FetchSessions(10, HandClock())
    plan = ask(sessions, 0, INITIAL_EPOCH, spec(0))
    last = ask(sessions, plan.session_id, FINAL_EPOCH, spec(3))
    assert last.session_id == 0
    assert [s.partition for s in last.specs] == [3]
    assert len(sessions) == 0


def test_forgetting_everything_ends_the_session() -> None:
    sessions = FetchSessions(10, HandClock())
    plan = ask(sessions, 0, INITIAL_EPOCH, spec(0))
    assert ask(sessions, plan.session_id, 1, forget=(("t", 0),)).session_id == 0
    assert len(sessions) == 0


def test_only_news_is_answered_and_partitions_take_turns() -> None:
    sessions = FetchSessions(10, HandClock())
    session = ask(sessions, 0, INITIAL_EPOCH, spec(0), spec(1)).session
    assert session is not None
    zero, one = session.partitions.values()
    assert session.has_news(zero, 5, 0, with_records=False)
    assert not session.has_news(zero, 5, 0, with_records=False)
    assert session.has_news(zero, 6, 0, with_records=False)
    assert session.has_news(zero, 6, 3, with_records=False)
    assert session.has_news(zero, 6, 3, with_records=True)
    assert list(session.partitions.values()) == [one, zero]


def test_a_full_cache_serves_without_session_until_one_is_stale() -> None:
    clock = HandClock()
    sessions = FetchSessions(1, clock)
    first = ask(sessions, 0, INITIAL_EPOCH, spec(0))
    assert ask(sessions, 0, INITIAL_EPOCH, spec(1)).session_id == 0
    clock.ms += 120_001
    second = ask(sessions, 0, INITIAL_EPOCH, spec(1))
    assert second.session_id not in (0, first.session_id)
    with pytest.raises(FetchSessionIdNotFound):
        ask(sessions, first.session_id, 1)


def test_a_larger_old_session_pushes_out_a_smaller_one() -> None:
    clock = HandClock()
    sessions = FetchSessions(1, clock)
    small = ask(sessions, 0, INITIAL_EPOCH, spec(0))
    clock.ms += 120_001
    ask(sessions, small.session_id, 1)  # used now, so not stale, but old
    assert ask(sessions, 0, INITIAL_EPOCH, spec(1)).session_id == 0
    assert ask(sessions, 0, INITIAL_EPOCH, spec(1), spec(2)).session_id != 0
    assert len(sessions) == 1


def test_all_sessions_together_remember_so_many_partitions() -> None:
    sessions = FetchSessions(10, HandClock(), most_partitions=5)
    first = ask(sessions, 0, INITIAL_EPOCH, spec(0), spec(1), spec(2))
    assert ask(sessions, 0, INITIAL_EPOCH, spec(0), spec(1), spec(2)).session_id == 0
    second = ask(sessions, 0, INITIAL_EPOCH, spec(0), spec(1))
    assert second.session_id != 0
    ask(sessions, first.session_id, 1, spec(7), forget=(("t", 0),))
    with pytest.raises(FetchSessionIdNotFound):
        ask(sessions, second.session_id, 1, spec(7))
    assert len(sessions) == 1
    third = ask(sessions, 0, INITIAL_EPOCH, spec(0), spec(1))
    assert third.session_id != 0
    ask(sessions, third.session_id, FINAL_EPOCH, spec(0))
    ask(sessions, first.session_id, 2, forget=(("t", 1), ("t", 2), ("t", 7)))
    assert len(sessions) == 0
    assert ask(sessions, 0, INITIAL_EPOCH, *(spec(number) for number in range(5))).session_id != 0


def test_a_partition_that_was_forgotten_during_a_wait() -> None:
    """By another request with the number of the session: the answer that was delayed mentions it, and that is all."""
    sessions = FetchSessions(10, HandClock())
    session = ask(sessions, 0, INITIAL_EPOCH, spec(0), spec(1), spec(2)).session
    assert session is not None
    first = next(iter(session.partitions.values()))
    ask(sessions, session.id, 1, forget=(("t", 0),))
    assert session.has_news(first, 5, 0, with_records=True)
    assert [each.partition for each in session.partitions.values()] == [1, 2]
