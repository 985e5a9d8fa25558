"""Identical sources, one of which is read: it stops, hangs, lags, or has something else. Each record comes once, in its
order."""

from __future__ import annotations

import itertools
from functools import partial
from pathlib import Path

import pytest
import trio

from forward.clusters import produce, until
from forward.conftest import MakeRun, started
from forward.nodes import Node, nodes, whole, write
from leafcuttr_forward.relay.pool import Health
from leafcuttr_forward.relay.running import Run
from support.live_broker import LiveBroker

INTERVAL_S = 0.2
"""As `make_run` has it."""
_NUMBERS = itertools.count(1)
POOL = 'request_timeout = "500ms"\noffset_lag_threshold = 20'


def is_other(run: Run, index: int) -> bool:
    return run.pool.current != index


def is_up(run: Run, index: int) -> bool:
    return run.pool.sources[index].health is Health.UP


def has_copied(run: Run, count: int) -> bool:
    return run.counters.total == count


@pytest.fixture
def topic() -> str:
    return f"topic-{next(_NUMBERS)}"


def relay(
    make_run: MakeRun, found: list[Node], hub: LiveBroker, topic: str, pool: str = POOL, **more: str
) -> Run:
    addresses = [each.address for each in found]
    return make_run(addresses, hub.address, {topic: topic}, pool=pool, mode="failover", **more)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("trouble", ["stops", "hangs"])
async def test_another_source_is_read_within_two_intervals(
    trouble: str, tmp_path: Path, make_run: MakeRun, hub: LiveBroker, topic: str
) -> None:
    async with nodes(tmp_path, 2, topic) as found:
        run = relay(make_run, found, hub, topic)
        async with started(run):
            await until(lambda: run.counters.total == 200, "what there is is copied")
            if trouble == "stops":
                found[0].way.refuses = True
                found[0].way.cut()
            else:
                found[0].way.hold()
            began = trio.current_time()
            await until(lambda: run.pool.current == 1, "the second source is read")
            # An interval, and two probes that nothing answers.
            assert trio.current_time() - began < INTERVAL_S + 2 * 0.5 + 0.5
            await write(found[1], topic, 100, 150)
            await until(lambda: run.counters.total == 300, "what came is copied")
            assert run.report.switches == 1
        assert (run.status, run.why) == (0, None)
        await whole(hub, topic, 150)


@pytest.mark.long
async def test_records_that_come_all_the_time_come_once(
    tmp_path: Path, make_run: MakeRun, hub: LiveBroker, topic: str
) -> None:
    """Sources that take turns to be cut off, while both grow."""
    async with nodes(tmp_path, 2, topic) as found:
        run = relay(make_run, found, hub, topic)
        async with started(run):
            await until(partial(has_copied, run, 200), "what there is is copied")
            for turn in range(1, 5):
                before = run.pool.current or 0
                async with trio.open_nursery() as nursery:
                    for node in found:
                        nursery.start_soon(write, node, topic, turn * 100, turn * 100 + 100)
                    found[before].way.refuses = True
                    found[before].way.cut()
                await until(partial(is_other, run, before), f"turn {turn}: another source is read")
                await until(partial(has_copied, run, turn * 200 + 200), f"turn {turn}: all is copied")
                found[before].way.refuses = False
                await until(partial(is_up, run, before), f"turn {turn}: the first one is up again")
            assert run.pool.switches == 4
        await whole(hub, topic, 500)


async def test_a_source_that_lags_is_left(
    tmp_path: Path, make_run: MakeRun, hub: LiveBroker, topic: str
) -> None:
    async with nodes(tmp_path, 3, topic) as found:
        run = relay(make_run, found, hub, topic)
        async with started(run):
            await until(lambda: run.counters.total == 200, "what there is is copied")
            await write(found[1], topic, 100, 105)
            await write(found[2], topic, 100, 111)
            await until(lambda: run.pool.current == 2, "the source that is ahead is read")
            await until(lambda: run.counters.total == 222, "what it has is copied")
            assert run.counters.lagging == {0: 1}
        await whole(hub, topic, 111)


async def test_a_source_that_ends_before_the_position_is_waited_for(
    tmp_path: Path, make_run: MakeRun, hub: LiveBroker, topic: str
) -> None:
    async with nodes(tmp_path, 2, topic) as found:
        await write(found[0], topic, 100, 110)
        run = relay(make_run, found, hub, topic)
        async with started(run):
            await until(lambda: run.counters.total == 220, "what there is is copied")
            found[0].way.refuses = True
            found[0].way.cut()
            await until(lambda: run.pool.sources[0].health is Health.DOWN, "the first is down")
            sources = run.status_now()["sources"]
            assert "ends at 100, before the position 110" in sources[1]["trouble"]
            await write(found[1], topic, 100, 110)
            await until(lambda: run.pool.current == 1, "the second has caught up, and is read")
            await write(found[1], topic, 110, 120)
            await until(lambda: run.counters.total == 240, "the rest is copied")
        await whole(hub, topic, 120)


@pytest.mark.long
async def test_a_source_with_other_records_is_not_read(
    tmp_path: Path, make_run: MakeRun, hub: LiveBroker, topic: str
) -> None:
    async with nodes(tmp_path, 3, topic) as found:
        await write(found[0], topic, 100, 110)
        await trio.to_thread.run_sync(produce, found[1].direct, topic, ["other"] * 10, 0)
        await trio.to_thread.run_sync(produce, found[1].direct, topic, ["other"] * 10, 1)
        await write(found[2], topic, 100, 110)
        run = relay(make_run, found, hub, topic)
        async with started(run):
            await until(lambda: run.counters.total == 220, "what there is is copied")
            found[0].way.refuses = True
            found[0].way.cut()
            await until(lambda: run.pool.current == 2, "the third is read")
            assert "another one than was copied" in (run.pool.sources[1].refused or "")
            await write(found[2], topic, 110, 120)
            await until(lambda: run.counters.total == 240, "the rest is copied")
        await whole(hub, topic, 120)


async def test_it_ends_after_the_switches_that_are_allowed(
    tmp_path: Path, make_run: MakeRun, hub: LiveBroker, topic: str
) -> None:
    async with nodes(tmp_path, 2, topic) as found:
        most = 'session_timeout = "5s"\nmax_failovers = 0'
        run = relay(make_run, found, hub, topic, more_of_source=most)
        async with trio.open_nursery() as nursery:
            await nursery.start(run.run)
            await until(lambda: run.counters.total == 200, "what there is is copied")
            found[0].way.refuses = True
            found[0].way.cut()
        assert run.status == 1
        assert (run.why or "").endswith("and max_failovers allows 0 switches of source")


async def test_the_first_source_that_answers_is_begun_with(
    tmp_path: Path, make_run: MakeRun, hub: LiveBroker, topic: str
) -> None:
    async with nodes(tmp_path, 2, topic) as found:
        found[0].way.refuses = True
        run = relay(make_run, found, hub, topic)
        async with started(run):
            await until(lambda: run.counters.total == 200, "the records of the second are copied")
            assert (run.pool.current, run.pool.switches) == (1, 0)
        await whole(hub, topic, 100)


@pytest.mark.long
async def test_a_slow_link_is_no_switch(
    tmp_path: Path, make_run: MakeRun, hub: LiveBroker, topic: str
) -> None:
    async with nodes(tmp_path, 2, topic) as found:
        run = relay(make_run, found, hub, topic)
        found[0].way.delay_s = 0.1
        async with started(run):
            await until(lambda: run.counters.total == 200, "what there is is copied")
            await write(found[0], topic, 100, 110)
            await until(lambda: run.counters.total == 220, "what came is copied")
            assert (run.pool.current, run.pool.switches) == (0, 0)
        await whole(hub, topic, 110)
