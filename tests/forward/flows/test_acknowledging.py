"""At least once: a position never passes records that the target has not acknowledged."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio

from forward.flows.test_intake import PARTITION, running, some
from leafcuttr_forward.flows.acknowledging import AcknowledgedWriter
from leafcuttr_forward.flows.making import RecordsRefused
from leafcuttr_forward.flows.positions import POSITIONS
from leafcuttr_forward.flows.progress import Progress
from leafcuttr_forward.flows.report import FlowReport
from leafcuttr_forward.flows.spec import FlowSpec
from leafcuttr_sdk.errors import BrokerError, InvalidTimestamp, RequestTimedOut
from leafcuttr_sdk.peers import PeerRead
from leafcuttr_sdk.records import Appended, NewBatch
from support.logs import HandClock


class Fails:
    """An appender whose first records are not acknowledged in time."""

    def __init__(self) -> None:
        self.calls = 0
        self.stored = 0

    async def append(self, batches: Sequence[NewBatch]) -> list[Appended | BrokerError]:
        await trio.lowlevel.checkpoint()
        if batches[0].partition == POSITIONS:
            self.stored += 1
            return [Appended(0, 0)]
        self.calls += 1
        return [RequestTimedOut("no answer") if self.calls == 1 else Appended(0, 9) for _ in batches]


class Third:
    """An appender whose third call fails at once, and whose first is answered late."""

    def __init__(self) -> None:
        self.calls = 0
        self.late = trio.Event()

    async def append(self, batches: Sequence[NewBatch]) -> list[Appended | BrokerError]:
        await trio.lowlevel.checkpoint()
        if batches[0].partition == POSITIONS:
            return [Appended(0, 0)]
        self.calls += 1
        if self.calls == 3:
            return [InvalidTimestamp("late") for _ in batches]
        if self.calls == 1:
            await self.late.wait()
        return [Appended(0, 9) for _ in batches]


async def test_nothing_is_sent_behind_what_failed() -> None:
    """Nor while what was sent before it is not answered: the target would take it, and what failed comes later."""
    async with running() as case, trio.open_nursery() as nursery:
        for base in range(0, 100, 10):
            case.found(some(base))
        await trio.testing.wait_all_tasks_blocked()
        appender, report = Third(), FlowReport("f")
        progress = Progress("f", "c", "c", {}, report)
        progress.start(PARTITION, 0, "copy")
        spec = FlowSpec(name="f", rules=[], request_bytes=1)
        writer = AcknowledgedWriter(spec, appender, case.intake, progress, HandClock())
        refused: list[RecordsRefused] = []

        async def write() -> None:
            try:
                await writer.run()
            except RecordsRefused as error:
                refused.append(error)

        nursery.start_soon(write)
        await trio.testing.wait_all_tasks_blocked()
        assert appender.calls <= 5
        appender.late.set()
        await trio.testing.wait_all_tasks_blocked()
        assert appender.calls <= 5
        assert refused[0].portions[0].first == 20
        assert progress.positions[PARTITION].offset == 20
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("behind", ["nothing to copy", "records"])
async def test_a_position_waits_for_what_failed_before_it(behind: str) -> None:
    """Also where what comes behind has nothing that could fail: a marker, or an aborted transaction."""
    async with running() as case:
        case.found(some(0))
        if behind == "records":
            case.found(some(10))
        else:
            case.reads.send.send_nowait([PeerRead(PARTITION, b"", 20, 20, 0)])
        with trio.fail_after(5):
            while case.intake.positions[PARTITION] < 20:
                await trio.sleep(0.001)
        appender, report = Fails(), FlowReport("f")
        progress = Progress("f", "c", "c", {}, report)
        progress.start(PARTITION, 0, "copy")
        spec = FlowSpec(name="f", rules=[], request_bytes=1)
        writer = AcknowledgedWriter(spec, appender, case.intake, progress, HandClock())
        with pytest.raises(RequestTimedOut):
            await writer.run()
        assert progress.positions[PARTITION].offset == 0
        assert (report.partitions[PARTITION].written_records, appender.stored) == (0, 0)
