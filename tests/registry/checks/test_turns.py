"""Checks that take long do not keep others from an answer, and each request has its answer in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from leafcuttr_registry.checks import reading, turns, work
from leafcuttr_registry.checks.reading import Checks
from leafcuttr_registry.checks.turns import DEADLINE_S, SOON_S, Limit, Turns
from leafcuttr_registry.checks.work import Done, Reading, Source
from leafcuttr_registry.subjects.refusals import Refusal, busy
from leafcuttr_registry.subjects.registering import Registration
from leafcuttr_sdk.workers import WorkerDeadlineError
from support.column_schemas import Columns
from support.registries import opened

HOSTILE_S = 1000.0


class Broker:
    """Works as long as a text says in seconds, one after the other in each of two processes."""

    def __init__(self) -> None:
        self.schema_formats = {"COLUMNS": Columns()}
        self.running = 0
        self.slowness = 1.0
        """So many times as long by the clock as the processor works: the machine has other work."""
        self.given: list[tuple[str, float]] = []

    async def run_in_worker(
        self,
        within: Callable[..., Any],
        limit_s: float,
        function: Callable[..., Any],
        format: Any,
        more: Sequence[Source],
        *,
        deadline_s: float,
        memory_bytes: int,
    ) -> Done[Reading]:
        (source,) = more
        assert (within, function) == (work.within, work.read)
        assert deadline_s == limit_s * (2 if limit_s == SOON_S else 5)
        self.given.append((source.text, round(limit_s, 2)))
        self.running += 1
        assert self.running <= 2, "it would wait where no deadline counts"
        takes_s = float(source.text.partition(" ")[0])
        await trio.sleep(min(takes_s, limit_s) * self.slowness)
        self.running -= 1
        if takes_s > limit_s:
            raise WorkerDeadlineError("too long")
        return Done(Reading(source.text, source.text, None), takes_s)


class Counts:
    def __init__(self, broker: object) -> None:
        pass

    def judged(self, format: str, verdict: str) -> None:
        pass

    def took(self, format: str, seconds: float) -> None:
        pass


class Clients:
    """What each was answered, in order, with the time since it asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reading, "CheckCounts", Counts)
        self.broker = Broker()
        self.checks = Checks(cast(Any, self.broker))
        self.checks._turns = Turns(2)  # type: ignore[misc]
        self.answers: list[tuple[str, int]] = []

    async def ask(self, text: str) -> None:
        turns.begin()
        began = trio.current_time()
        code = 200
        try:
            await self.checks.read("COLUMNS", text, {})
        except Refusal as refusal:
            code = refusal.code
        assert trio.current_time() - began < DEADLINE_S * self.broker.slowness + 0.001
        self.answers.append((text, code))

    async def ask_at_once(self, *texts: str) -> dict[str, int]:
        self.answers.clear()
        async with trio.open_nursery() as nursery:
            for text in texts:
                nursery.start_soon(self.ask, text)
                await trio.testing.wait_all_tasks_blocked()
        return dict(self.answers)


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> Clients:
    return Clients(monkeypatch)


HOSTILE = [f"{HOSTILE_S} {number}" for number in range(5)]


async def test_one_alone_has_all_of_the_time(clients: Clients, autojump_clock: MockClock) -> None:
    assert await clients.ask_at_once("1.7") == {"1.7": 200}
    assert await clients.ask_at_once("1.9") == {"1.9": 42201}
    assert clients.broker.given == [("1.7", DEADLINE_S), ("1.9", DEADLINE_S)]


async def test_a_machine_with_other_work_refuses_nothing_more(
    clients: Clients, autojump_clock: MockClock
) -> None:
    clients.broker.slowness = 4.0
    assert await clients.ask_at_once("1.7") == {"1.7": 200}
    assert await clients.ask_at_once("1.9") == {"1.9": 42201}
    clients.broker.given.clear()
    # A short turn that is not enough takes no more from what is left than the work that was done in it.
    assert await clients.ask_at_once("0.3 a", "0.4 b") == {"0.3 a": 200, "0.4 b": 200}
    assert clients.broker.given == [("0.3 a", DEADLINE_S), ("0.4 b", SOON_S), ("0.4 b", 1.35)]


async def test_what_one_request_has_read_counts_for_the_next_that_it_reads(
    clients: Clients, autojump_clock: MockClock
) -> None:
    turns.begin()
    await clients.checks.read("COLUMNS", "1.0 a", {})
    await clients.checks.read("COLUMNS", "0.5 b", {})
    assert [seconds for _, seconds in clients.broker.given] == [DEADLINE_S, 0.8]
    with pytest.raises(Refusal, match="too complex"):
        await clients.checks.read("COLUMNS", "0.4 c", {})


async def test_others_are_answered_meanwhile_and_each_in_time(
    clients: Clients, autojump_clock: MockClock
) -> None:
    found = await clients.ask_at_once(*HOSTILE, "0.01 good")
    assert clients.answers[0] == ("0.01 good", 200)
    assert found[HOSTILE[0]] == 42201, "its own text took the time"
    assert {found[each] for each in HOSTILE[1:]} == {503}, "others took it"


async def test_what_took_too_long_once_does_not_get_the_other_half(
    clients: Clients, autojump_clock: MockClock
) -> None:
    await clients.ask_at_once(*HOSTILE)
    clients.broker.given.clear()
    await clients.ask_at_once(*HOSTILE, "0.01 good")
    assert clients.answers[0] == ("0.01 good", 200)
    assert clients.broker.given == [(HOSTILE[0], DEADLINE_S), ("0.01 good", SOON_S)]


async def test_one_that_needs_more_than_a_short_turn_begins_again(
    clients: Clients, autojump_clock: MockClock
) -> None:
    assert await clients.ask_at_once("0.5 a", "0.6 b") == {"0.5 a": 200, "0.6 b": 200}
    assert clients.broker.given == [("0.5 a", DEADLINE_S), ("0.6 b", SOON_S), ("0.6 b", DEADLINE_S - 0.5)]


def test_what_is_slow() -> None:
    found = Turns(4)
    assert found.is_slow("A", "x" * (turns.LARGE + 1)) and not found.is_slow("A", "x")
    found.was_slow("A", "x\ud800")
    assert found.is_slow("A", "x\ud800") and not found.is_slow("B", "x\ud800")


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_MOST_SLOW", 2)
    found = Turns()
    for text in "abc":
        found.was_slow("A", text)
    assert [found.is_slow("A", text) for text in "abc"] == [False, True, True]


async def test_a_limit_that_is_waited_out(autojump_clock: MockClock) -> None:
    limit = Limit(1)
    with limit.waiting():
        await trio.sleep(0.5)
    assert not limit.was_others
    with pytest.raises(Refusal, match="busy") as caught, limit.waiting():
        await trio.sleep_forever()
    assert caught.value.code == 503 and limit.was_others


async def test_the_wait_for_others_of_a_subject_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "DEADLINE_S", 0.05)
    async with opened(tmp_path) as registry, trio.open_nursery() as nursery:
        subject = "a"

        async def wait(*, task_status: trio.TaskStatus[None]) -> None:
            async with registry._only_one(subject):
                task_status.started()
                await trio.sleep_forever()

        await nursery.start(wait)
        turns.begin()
        with pytest.raises(Refusal, match="busy"):
            await registry.register(subject, Registration("AVRO", '"int"'))
        nursery.cancel_scope.cancel()


async def test_a_look_up_that_has_no_time_finds_out_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A subject without a context is one of any: none of these may be passed over."""
    async with opened(tmp_path) as registry:
        registry.state.subjects[":.x:a"] = {}
        monkeypatch.setattr(registry.state, "context_names", lambda: [".", ".x"])

        async def waits(*_: object) -> Reading:
            raise busy()

        monkeypatch.setattr(registry.checks, "read", waits)
        with pytest.raises(Refusal, match="busy"):
            await registry.look_up("a", Registration("AVRO", '"int"'))
