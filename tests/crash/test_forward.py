"""A relay, its source and its target are killed again and again while records come: at the target is what is at the
source, in its order, and exactly once each record once.

The relay is the command `leafcuttr relay` in a process of its own, killed at each named point of a flow and at random
moments; the brokers are processes too, killed at random moments and at the named points that they pass for a relay. A
producer of librdkafka goes on all the time. At the end each partition of the target is compared with that of the
source, as readers of committed records see them: records that the target refuses are not there, but all of them are
dead letters. With `--at-least-once` a copy may go back after a kill, and come again from there on.

The gate kills each of the three once, `--long` 100 times with each guarantee, `--kills` as often as one likes.
`--crash-seed` repeats the plan of a run, not its timing.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

import leafcuttr_forward
from crash.copies import Cluster, check, committed_records
from crash.relay_run import (
    DEAD,
    ENDS,
    PARTITIONS,
    PATIENCE_S,
    REFUSED,
    TOPIC,
    Load,
    Relay,
    Victim,
    create_topics,
    plan,
    wait_for_the_end,
)
from crash.relay_run import POINTS as KILLED_AT
from leafcuttr import crashpoints
from leafcuttr_forward.flows.points import POINTS
from leafcuttr_forward.flows.spec import Guarantee
from support.waiting import until

BOTH = [Guarantee.EXACTLY_ONCE, pytest.param(Guarantee.AT_LEAST_ONCE, marks=pytest.mark.long)]


@pytest.mark.long
@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("guarantee", BOTH, ids=lambda one: one.name.lower())
def test_nothing_is_lost_or_comes_twice(
    tmp_path: Path, request: pytest.FixtureRequest, seed: int, guarantee: Guarantee
) -> None:
    kills = request.config.getoption("--kills") or (100 if request.config.getoption("--long") else 2)
    dice = random.Random(seed)
    unused = threading.Event()
    began = time.monotonic()
    steps = plan(dice, kills, guarantee)
    with Cluster(tmp_path / "source") as source, Cluster(tmp_path / "target") as target:
        create_topics(source, target)
        clusters = {"source": source, "target": target}
        with Relay(tmp_path / "relay", source, target, guarantee) as relay:
            with Load(source.address) as load:
                until(lambda: has_some(target, relay), "the first records", seconds=PATIENCE_S)
                for victim in steps:
                    unused.wait(dice.uniform(0.1, 1.5))
                    if victim.place == "dead-letter-begun":
                        load.send_refused()
                    kill(victim, relay, clusters)
                    relay.check()
            seconds = time.monotonic() - began
            wait_for_the_end(source, relay)
            assert relay.stop() == 0, relay.log
            counts = compare(source, target, repeats=guarantee is Guarantee.AT_LEAST_ONCE)
    print(f"{kills} kills in {seconds:.0f} s, {kills / seconds * 3600:.0f} an hour; {counts}")
    for (name, place), count in sorted(Counter((one.name, one.place) for one in steps).items()):
        print(f"  {name:6} {place or 'at random':26} {count}")


def kill(victim: Victim, relay: Relay, clusters: Mapping[str, Cluster]) -> None:
    if victim.name == "relay":
        if victim.point:
            relay.killed_at(victim.point, early=victim.early)
        else:
            relay.kill(early=victim.early)
    elif victim.point:
        clusters[victim.name].killed_at(victim.point, PATIENCE_S)
    else:
        clusters[victim.name].kill()


def compare(source: Cluster, target: Cluster, *, repeats: bool) -> str:
    """How many there are. Raises AssertionError with what is wrong."""
    wanted = committed_records(source.address, TOPIC, PARTITIONS)
    copied = [[one for one in some if not one.startswith(REFUSED)] for some in wanted]
    refused = [[one for one in some if one.startswith(REFUSED)] for some in wanted]
    assert min(map(len, copied)) > 10
    assert any(refused)
    found = committed_records(target.address, TOPIC, PARTITIONS)
    check(found, copied, repeats=repeats)
    letters = committed_records(target.address, DEAD, PARTITIONS)
    check(letters, refused, "dead letters of partition", repeats=repeats)
    again = sum(map(len, found)) - sum(map(len, copied))
    return (
        f"{sum(map(len, copied))} records in their order, {again} of them again; "
        f"{sum(map(len, letters))} dead letters of {sum(map(len, refused))} records"
    )


def has_some(target: Cluster, relay: Relay) -> bool:
    relay.check()
    try:
        return any(committed_records(target.address, TOPIC, PARTITIONS))
    except (AssertionError, KafkaException):
        return False


def test_every_point_of_the_source_is_one_at_which_a_relay_is_killed() -> None:
    folder = Path(leafcuttr_forward.__file__).parent
    source = "".join(path.read_text() for path in folder.rglob("*.py"))
    assert set(re.findall(r'\breach\("([^"]+)"\)', source)) == POINTS
    assert {point for some in KILLED_AT.values() for point in some} == POINTS
    assert {point for ends in ENDS.values() for some in ends.values() for point in some} <= crashpoints.POINTS


@pytest.mark.parametrize("guarantee", Guarantee, ids=lambda one: one.name.lower())
def test_twelve_kills_are_at_every_point_of_a_relay(guarantee: Guarantee) -> None:
    for seed in range(20):
        steps = plan(random.Random(seed), 12, guarantee)
        assert {one.place for one in steps if one.name == "relay" and one.point} == {*KILLED_AT[guarantee]}
        assert [one.name for one in plan(random.Random(seed), 3, guarantee)] == ["relay", "target", "source"]
        places = {(one.name, one.place) for one in plan(random.Random(seed), 24, guarantee)}
        assert places >= {(end, point) for end, some in ENDS[guarantee].items() for point in some}


@pytest.mark.parametrize(
    ("found", "once", "again"),
    [
        ("abc", "", ""),
        ("ac", "1 are lost", "1 are lost"),
        ("ab", "1 are lost", "1 are lost"),
        ("abbc", "1 come twice", ""),
        ("ababc", "2 come twice", ""),
        ("acb", "their order", "their order"),
        ("abcb", "1 come twice", "their order"),
        ("abcd", "1 were never sent", "1 were never sent"),
    ],
)
def test_the_checker_sees_what_is_wrong(found: str, once: str, again: str) -> None:
    wanted = [[b"a", b"b", b"c"]]
    there = [[one.encode() for one in found]]
    for repeats, what in (False, once), (True, again):
        if not what:
            check(there, wanted, repeats=repeats)
            continue
        with pytest.raises(AssertionError, match=what):
            check(there, wanted, repeats=repeats)
