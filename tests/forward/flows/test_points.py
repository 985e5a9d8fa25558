"""A flow that ends at any point of its work, and begins again: nothing is lost, the order is kept, and with exactly
once nothing comes twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
import trio

from forward.flows.test_copying import LATE, NO_SYNC, with_bad_records
from leafcuttr_forward.flows import points
from leafcuttr_forward.flows.report import FlowReport
from leafcuttr_forward.flows.spec import Guarantee
from leafcuttr_sdk.types import TopicPartition
from support.flows import contents, copy_all, fill, flow_of, numbered, two_clusters
from support.forwarded_batches import Seen

PARTITIONS = 3
EXACTLY = {"transaction-begun", "transaction-appended", "transaction-positioned", "transaction-committed"}
AT_LEAST = {"sent", "acknowledged", "position-stored"}
BOTH = {"read", "made", "group-committed"}
CASES = [
    *[(Guarantee.EXACTLY_ONCE, point) for point in sorted(EXACTLY | BOTH)],
    *[(Guarantee.AT_LEAST_ONCE, point) for point in sorted(AT_LEAST | BOTH)],
]


class Ending:
    """Cancels what runs in `scope` at the n-th time that a point is reached."""

    def __init__(self, point: str, number: int) -> None:
        self.scope = trio.CancelScope()
        self.reached = False
        self._point = point
        self._left = number

    def __call__(self, name: str) -> None:
        if name == self._point:
            self._left -= 1
            if not self._left:
                self.reached = True
                self.scope.cancel()


def is_complete_with_repetitions(found: Sequence[Seen], wanted: Sequence[Seen]) -> bool:
    """Whether everything came in its order, but that it went back sometimes and came again from there on."""
    places = {record: at for at, record in enumerate(wanted)}
    at = -1
    for record in found:
        if places[record] > at + 1:
            return False
        at = places[record]
    return at == len(wanted) - 1


def test_every_point_has_a_case() -> None:
    assert {point for _, point in CASES} == points.POINTS - {"dead-letter-begun"}, "that one has its own test"


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """What would be sent to which process."""
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    return sent


def test_a_name_with_a_count_ends_the_process_at_that_pass(ended: list[tuple[int, int]]) -> None:
    watch = points.armed("made:2")
    assert watch is not None
    for name in ("made", "read", "sent"):
        watch(name)
    assert ended == []
    watch("made")
    watch("made")
    assert ended == [(os.getpid(), signal.SIGKILL)]


def test_a_file_arms_a_flow_that_runs(tmp_path: Path, ended: list[tuple[int, int]]) -> None:
    """Passes count from when it is there."""
    file = tmp_path / "point"
    watch = points.armed(f"@{file}")
    assert watch is not None
    watch("made")
    file.write_text("made:2\n")
    watch("made")
    file.unlink()
    assert ended == []
    watch("made")
    assert ended == [(os.getpid(), signal.SIGKILL)]


def test_only_a_point_arms(tmp_path: Path) -> None:
    assert points.armed(None) is None
    assert points.armed("") is None
    with pytest.raises(
        ValueError, match="LEAFCUTTR_FLOW_CRASH_POINT=nowhere:1: allowed are acknowledged, dead"
    ):
        points.armed("nowhere:1")


@pytest.mark.one_in(6)
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(("guarantee", "point"), CASES, ids=lambda one: getattr(one, "name", one))
async def test_an_end_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guarantee: Guarantee, point: str, number: int
) -> None:
    spec = flow_of("orders", guarantee=guarantee, stop_at_end=True, request_bytes=2000)
    async with two_clusters(tmp_path) as ends:
        await ends.source.create_topic("orders", partitions=PARTITIONS)
        records = [numbered(200, first=1000 * partition, size=30) for partition in range(PARTITIONS)]
        for partition, some in enumerate(records):
            await fill(ends.source, "orders", some[:100], partition)
        for attempt in range(2):
            ending = Ending(point, number)
            monkeypatch.setattr(points, "watch", ending)
            before = [
                len(await contents(ends.target, "orders", each)) for each in range(attempt * PARTITIONS)
            ]
            report = FlowReport(spec.name)
            with ending.scope:
                await copy_all(spec, ends.source, ends.target, report)
            assert ending.reached or number > 1
            for partition, count in enumerate(before or [0] * PARTITIONS):
                copied = report.partitions.get(TopicPartition("orders", partition))
                told = count if copied is None else count + copied.written_records
                assert told <= len(await contents(ends.target, "orders", partition)), "it is there for good"
            if not attempt:
                for partition, some in enumerate(records):
                    await fill(ends.source, "orders", some[100:], partition)
        monkeypatch.setattr(points, "watch", None)
        await copy_all(spec, ends.source, ends.target)
        for partition, some in enumerate(records):
            found = await contents(ends.target, "orders", partition)
            if guarantee is Guarantee.EXACTLY_ONCE:
                assert found == some
            else:
                assert is_complete_with_repetitions(found, some)


@pytest.mark.parametrize(
    "guarantee", [Guarantee.EXACTLY_ONCE, pytest.param(Guarantee.AT_LEAST_ONCE, marks=pytest.mark.long)]
)
async def test_an_end_before_a_dead_letter_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guarantee: Guarantee
) -> None:
    spec = flow_of(
        "orders", guarantee=guarantee, stop_at_end=True, dead_letter_topic="dead", creation=NO_SYNC
    )
    async with two_clusters(tmp_path) as ends:
        records = await with_bad_records(ends, [10, 33])
        await ends.target.create_topic(
            "dead", partitions=1, configs={"message.timestamp.after.max.ms": str(1 << 60)}
        )
        for number in (1, 2):
            ending = Ending("dead-letter-begun", number)
            monkeypatch.setattr(points, "watch", ending)
            with ending.scope:
                await copy_all(spec, ends.source, ends.target)
            assert ending.reached
        monkeypatch.setattr(points, "watch", None)
        await copy_all(spec, ends.source, ends.target)
        wanted = [one for one in records if one.timestamp != LATE]
        found = await contents(ends.target, "orders")
        letters = [one.key for one in await contents(ends.target, "dead")]
        if guarantee is Guarantee.EXACTLY_ONCE:
            assert (found, letters) == (wanted, [b"k10", b"k33"])
        else:
            assert is_complete_with_repetitions(found, wanted)
            assert [*dict.fromkeys(letters)] == [b"k10", b"k33"]
