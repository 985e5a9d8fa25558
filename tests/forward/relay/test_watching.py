"""When clusters are probed, how long a probe may take, and what is done with what it finds; on a clock that jumps."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from leafcuttr_forward.relay.pool import Decision, GiveUp, Health, Pauses, Range, Ranges, SourcePool, Switch
from leafcuttr_forward.relay.watching import Watch, WatchedPeer
from leafcuttr_sdk.errors import BrokerError
from leafcuttr_sdk.types import TopicPartition

ONE = TopicPartition("orders", 0)
INTERVAL_S, REQUEST_S, CONNECT_S = 3.0, 0.1, 6.0


class Bench:
    """Sources that answer or do not, and what has become of them."""

    def __init__(self, count: int, **of_pool: int) -> None:
        self.pool = SourcePool([f"node{each}" for each in range(count)], **{"lag_threshold": 10, **of_pool})
        self.peers: list[Any] = [SimpleNamespace(trouble=None, number=number) for number in range(count)]
        self.silent: set[int] = set()
        self.refusing: set[int] = set()
        self.probes: list[tuple[float, int, float]] = []
        self.decisions: list[tuple[float, Decision]] = []
        self.in_vain = 0

    async def probe(self, peer: Any, limit_s: float) -> Ranges:
        self.probes.append((trio.current_time(), peer.number, limit_s))
        if peer.number in self.refusing:
            raise BrokerError("refused")
        if peer.number in self.silent:
            with trio.fail_after(limit_s):
                await trio.sleep_forever()
        return {ONE: Range(0, 100)}

    def act(self, decision: Decision) -> None:
        self.decisions.append((trio.current_time(), decision))
        if isinstance(decision, GiveUp):
            raise KeyError(decision.why)

    def watch(self, pauses: Pauses = Pauses(True, 2.0, 10.0)) -> Watch:  # noqa: B008
        return Watch(
            self.pool,
            [WatchedPeer(peer, CONNECT_S) for peer in self.peers],
            self.probe,
            interval_s=INTERVAL_S,
            request_s=REQUEST_S,
            pauses=pauses,
            position=dict,
            act=self.act,
            in_vain=self.count,
        )

    def count(self) -> None:
        self.in_vain += 1


@pytest.fixture
def bench() -> Bench:
    return Bench(2)


async def run_for(bench: Bench, seconds: float) -> None:
    with trio.move_on_after(seconds):
        await bench.watch().run()


async def test_every_source_is_probed_once_in_an_interval(
    bench: Bench, autojump_clock: trio.testing.MockClock
) -> None:
    began = trio.current_time()
    await run_for(bench, 3.5 * INTERVAL_S)
    at = [round(time - began, 3) for time, number, _ in bench.probes if number == 1]
    assert at == [0, INTERVAL_S, 2 * INTERVAL_S, 3 * INTERVAL_S]
    assert [decision.to for _, decision in bench.decisions if isinstance(decision, Switch)] == [0]


async def test_a_first_probe_may_take_as_long_as_a_connection(
    bench: Bench, autojump_clock: trio.testing.MockClock
) -> None:
    await run_for(bench, 1.5 * INTERVAL_S)
    limits = [limit for _, number, limit in bench.probes if number == 0]
    assert limits == [CONNECT_S, REQUEST_S]


async def test_a_silent_source_is_left_within_an_interval_and_two_timeouts(
    bench: Bench, autojump_clock: trio.testing.MockClock
) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.watch().run)
        await trio.sleep(INTERVAL_S + 0.01)  # just behind a probe
        silent_since = trio.current_time()
        bench.silent.add(0)
        await trio.sleep(2 * INTERVAL_S)
        nursery.cancel_scope.cancel()
    (_, first), (time, second) = bench.decisions
    assert isinstance(first, Switch)
    assert isinstance(second, Switch)
    assert (second.to, second.why) == (1, "node0: no answer within 100ms")
    assert time - silent_since == pytest.approx(INTERVAL_S - 0.01 + 2 * REQUEST_S)


async def test_a_slow_source_holds_up_no_other(bench: Bench, autojump_clock: trio.testing.MockClock) -> None:
    bench.silent.add(0)
    began = trio.current_time()
    await run_for(bench, CONNECT_S + INTERVAL_S)
    assert (began, 1) in [probe[:2] for probe in bench.probes]
    # The first is waited for, because it is the first.
    ((time, decision),) = bench.decisions
    assert (time - began, decision.to) == (CONNECT_S, 1)  # type: ignore[union-attr]


async def test_a_cluster_that_says_what_is_wrong_is_not_waited_for(
    bench: Bench, autojump_clock: trio.testing.MockClock
) -> None:
    bench.silent.add(0)
    bench.peers[0].trouble = "no broker answers at edge:9092"
    began = trio.current_time()
    await run_for(bench, INTERVAL_S)
    assert bench.pool.sources[0].trouble == "no broker answers at edge:9092"
    assert bench.decisions[0][0] - began < 1
    # Trouble that passes does not count.
    bench.peers[0].trouble, bench.silent = None, set()
    await run_for(bench, INTERVAL_S)
    assert bench.pool.sources[0].health is Health.UP


async def test_an_error_is_the_trouble_of_the_source(
    bench: Bench, autojump_clock: trio.testing.MockClock
) -> None:
    bench.refusing.add(0)
    await run_for(bench, 1)
    assert bench.pool.sources[0].trouble == "refused"
    assert bench.pool.current == 1


async def test_while_none_answers_the_pauses_grow(autojump_clock: trio.testing.MockClock) -> None:
    bench = Bench(2, max_retries=4)
    bench.refusing |= {0, 1}
    with pytest.raises(KeyError, match="no source answers after 4 tries: node0: refused; node1: refused"):
        await bench.watch().run()
    times = [time for time, number, _ in bench.probes if number == 0]
    pauses = [after - before for before, after in pairwise(times)]
    assert len(pauses) == 3
    for pause, usual in zip(pauses, (2.0, 4.0, 8.0), strict=True):
        assert usual * 0.8 <= pause <= usual * 1.2
    assert bench.in_vain == 3


async def test_one_that_answers_again_ends_the_pauses(
    bench: Bench, autojump_clock: trio.testing.MockClock
) -> None:
    bench.refusing |= {0, 1}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bench.watch().run)
        await trio.sleep(1)
        bench.refusing.clear()
        await trio.sleep(2 * INTERVAL_S)
        nursery.cancel_scope.cancel()
    assert bench.pool.vain == 0
    assert [type(decision) for _, decision in bench.decisions] == [Switch]
