"""After a start the partitions may know more of transactions than the coordinator, whose log has lost its end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trio
import trio.testing

from leafcuttr.log.layout.suffixes import CLEAN_SHUTDOWN
from leafcuttr.log.log import Log
from leafcuttr.state.broker import Broker
from leafcuttr_sdk import TopicPartition
from support.logs import NOW, append, append_marker, batch

Start = Callable[..., Broker]
P0 = TopicPartition("t", 0)


async def loaded(broker: Broker, nursery: trio.Nursery) -> Log:
    """Its coordinators run, and have done what a start does; the log of the test's partition."""
    await nursery.start(broker.groups.run)
    await nursery.start(broker.transactions.run)
    with trio.fail_after(30):
        while broker.transactions.loading:
            await trio.testing.wait_all_tasks_blocked(0.01)
    await trio.testing.wait_all_tasks_blocked(0.01)
    return broker.topics.partition(P0).log


def left_open(log: Log, producer_id: int, epoch: int) -> None:
    append(
        log, batch(1, producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True), NOW
    )


def stop(broker: Broker, *, cleanly: bool) -> None:
    broker.logs.close()
    if not cleanly:
        (broker.logs.directory / CLEAN_SHUTDOWN).unlink()


@pytest.mark.parametrize("cleanly", [True, False])
async def test_no_epoch_that_a_partition_has_seen_is_given_out_again(
    start: Start, tmp_path: Path, cleanly: bool
) -> None:
    broker = start()
    await broker.topics.create("t", 1, {})
    given = await broker.transactions.init("id", 60_000, None)
    log = broker.topics.partition(P0).log
    # Later transactions, of which the coordinator's log has lost what it said.
    left_open(log, given.producer_id, given.epoch + 6)
    append_marker(log, given.producer_id, given.epoch + 6, commit=True, coordinator_epoch=0)
    stop(broker, cleanly=cleanly)
    for expected in (given.epoch + 7, given.epoch + 8):
        broker = start()
        async with trio.open_nursery() as nursery:
            await loaded(broker, nursery)
            again = await broker.transactions.init("id", 60_000, None)
            nursery.cancel_scope.cancel()
        assert (again.producer_id, again.epoch) == (given.producer_id, expected)


async def test_an_open_transaction_that_the_coordinator_does_not_know_is_aborted(start: Start) -> None:
    broker = start()
    await broker.topics.create("t", 1, {})
    left_open(broker.topics.partition(P0).log, 77, 3)
    stop(broker, cleanly=False)
    broker = start()
    async with trio.open_nursery() as nursery:
        log = await loaded(broker, nursery)
        assert log.last_stable_offset == log.log_end_offset == 2
        assert [each.producer_id for each in log.aborted_transactions(0, 2)] == [77]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("prepared", [True, False])
async def test_a_later_one_than_the_coordinator_knows_is_aborted(
    start: Start, monkeypatch: pytest.MonkeyPatch, prepared: bool
) -> None:
    broker = start()
    await broker.topics.create("t", 1, {})
    given = await broker.transactions.init("id", 60_000, None)
    assert not broker.transactions.add("id", given.producer_id, given.epoch, [P0], 2)
    if prepared:
        monkeypatch.setattr(broker.transactions._endings, "finish", lambda transaction: None)
        answer = await broker.transactions.end("id", given.producer_id, given.epoch, commit=True, version=2)
        assert not answer.error
    left_open(broker.topics.partition(P0).log, given.producer_id, given.epoch + 1)
    stop(broker, cleanly=False)
    broker = start()
    async with trio.open_nursery() as nursery:
        log = await loaded(broker, nursery)
        assert log.last_stable_offset == log.log_end_offset
        assert len(log.aborted_transactions(0, log.log_end_offset)) == 1
        again = await broker.transactions.init("id", 60_000, None)
        if again.error:  # the one that the coordinator knew has been aborted
            again = await broker.transactions.init("id", 60_000, None)
        assert (again.producer_id, again.error) == (given.producer_id, 0)
        assert again.epoch > given.epoch + 1
        nursery.cancel_scope.cancel()


async def test_one_that_the_coordinator_knows_goes_on(start: Start) -> None:
    broker = start()
    await broker.topics.create("t", 1, {})
    given = await broker.transactions.init("id", 60_000, None)
    assert not broker.transactions.add("id", given.producer_id, given.epoch, [P0], 2)
    left_open(broker.topics.partition(P0).log, given.producer_id, given.epoch)
    stop(broker, cleanly=False)
    broker = start()
    async with trio.open_nursery() as nursery:
        log = await loaded(broker, nursery)
        assert (log.last_stable_offset, log.log_end_offset) == (0, 1)
        answer = await broker.transactions.end("id", given.producer_id, given.epoch, commit=True, version=2)
        assert not answer.error
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert log.last_stable_offset == log.log_end_offset == 2
        assert not log.aborted_transactions(0, 2)
        nursery.cancel_scope.cancel()


async def test_after_a_clean_stop_nothing_is_aborted(start: Start) -> None:
    """What somebody has written without the coordinator stays for somebody to end."""
    broker = start()
    await broker.topics.create("t", 1, {})
    left_open(broker.topics.partition(P0).log, 77, 3)
    stop(broker, cleanly=True)
    broker = start()
    async with trio.open_nursery() as nursery:
        log = await loaded(broker, nursery)
        assert (log.last_stable_offset, log.log_end_offset) == (0, 1)
        nursery.cancel_scope.cancel()
