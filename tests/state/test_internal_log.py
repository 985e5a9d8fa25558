"""What a coordinator hears of its writes: at once where they are done on the loop, later where a worker does them."""

import os
from collections.abc import Callable
from dataclasses import replace

import pytest
import trio

from leafcuttr.errors import ErrorCode
from leafcuttr.log.log import Log
from leafcuttr.state.broker import Broker
from leafcuttr.state.groups.store import OffsetsLog
from leafcuttr.state.internal_log import KeyValue, ProducerIdAndEpoch

RECORDS: list[KeyValue] = [(b"\0\0k", b"v"), (b"\0\0l", None)]


class Coordinator:
    """One with its log; `told` is what it has heard."""

    def __init__(self, broker: Broker) -> None:
        self.store = OffsetsLog(topics=broker.topics, settings=broker.settings, clock=broker.clock)
        self.told: list[tuple[ErrorCode, int]] = []
        self._broker = broker

    async def log(self, *, synced: bool) -> Log:
        await self.store.ready()
        log = self._broker.topics.by_name[self.store.name].partitions[0].log
        log.config = replace(log.config, lc_log_sync_always=synced)
        return log

    def write(self, producer: ProducerIdAndEpoch | None = None) -> None:
        def then(error: ErrorCode, offset: int) -> None:
            self.told.append((error, offset))

        self.store.write(0, RECORDS, then, producer=producer)


@pytest.fixture
def coordinator(start: Callable[..., Broker]) -> Coordinator:
    return Coordinator(start(offsets_topic_num_partitions="1"))


async def test_a_plain_write_is_told_before_it_returns(coordinator: Coordinator) -> None:
    await coordinator.log(synced=False)
    coordinator.write()
    coordinator.write(ProducerIdAndEpoch(7, 0))
    assert coordinator.told == [(ErrorCode.NONE, 0), (ErrorCode.NONE, 2)]


@pytest.mark.parametrize("runs", [True, False])
async def test_a_workers_write_is_told_once_it_is_done(coordinator: Coordinator, runs: bool) -> None:
    """Whether or not the coordinator runs: records before and after it are written too."""
    log = await coordinator.log(synced=True)
    async with trio.open_nursery() as nursery:
        coordinator.store.use(nursery if runs else None)
        coordinator.write()
        coordinator.write()
        assert coordinator.told == []
        assert log.next_write is not None
        await log.next_write.wait()
    assert coordinator.told == [(ErrorCode.NONE, 0), (ErrorCode.NONE, 2)]


@pytest.mark.parametrize("synced", [True, False])
async def test_a_write_that_fails_is_the_coordinators_answer(
    coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch, synced: bool
) -> None:
    log = await coordinator.log(synced=synced)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwritev", full)
        coordinator.write()
        if log.writing is not None:
            await log.writing.wait()
    assert coordinator.told == [(ErrorCode.NOT_COORDINATOR, -1)]
    coordinator.told.clear()
    coordinator.write()
    if log.writing is not None:
        await log.writing.wait()
    assert coordinator.told == [(ErrorCode.NONE, 0)]
