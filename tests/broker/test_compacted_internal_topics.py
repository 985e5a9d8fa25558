"""The coordinators' topics are compacted: what a start reads does not grow with all that was ever written to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.groups.committing import Committer, NewOffset
from leafcuttr.state.transactions.states import TransactionState
from leafcuttr_sdk import TopicPartition
from support import librdkafka
from support.live_broker import LiveBroker, live_broker
from support.waiting import until

SETTINGS = {"offsets.topic.num.partitions": "1", "offsets.topic.segment.bytes": "1048576"}
METADATA = "m" * 3900


def commit(live: LiveBroker, first: int, count: int) -> None:
    """Commits of one group for one partition, each of about 4 KB."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {"bootstrap.servers": live.address, "group.id": "readers", "enable.auto.commit": False}
    )
    try:
        for offset in range(first, first + count):
            where = TopicPartition("t", 0, offset, METADATA)
            consumer.commit(offsets=[where], asynchronous=False)
    finally:
        consumer.close()


def committed(live: LiveBroker) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": live.address, "group.id": "readers"})
    try:
        return int(consumer.committed([TopicPartition("t", 0)], timeout=60)[0].offset)
    finally:
        consumer.close()


def records_read_at_start(live: LiveBroker, topic: str) -> int:
    live.pass_time(0)
    while live.run(live.broker.logs.cleaner.clean_due):
        pass
    return sum(header.count for header in live.stored(topic))


@pytest.mark.long
def test_a_start_reads_no_more_after_more_commits(tmp_path: Path) -> None:
    with live_broker(tmp_path / "data", SETTINGS) as live:
        librdkafka.create(live.address, "t")
        commit(live, 0, 600)
        first = records_read_at_start(live, "__consumer_offsets")
        commit(live, 600, 1200)
        second = records_read_at_start(live, "__consumer_offsets")
    # Only the active segment holds commits that are not the last: at most a megabyte of them.
    assert max(first, second) < 300
    with live_broker(tmp_path / "data", SETTINGS) as live:
        assert committed(live) == 1799


# With the segments of 100 MB that are the default, and with more than one of them in the end.
DEFAULTS = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
SMALL, READ = 8_000, 12_000
"""So many records are written at a time, of about 130 bytes; and at most so many are read by a start."""


def test_many_small_commits_in_segments_of_the_usual_size(tmp_path: Path) -> None:
    async def commits(live: LiveBroker, first: int) -> None:
        topic, offsets = live.broker.topics.by_name["t"], live.broker.groups.offsets
        await live.broker.groups.ready()
        for offset in range(first, first + SMALL):
            new = NewOffset("t", topic.id, 0, offset, -1, "")
            assert offsets.commit(f"group-{offset % 10}", Committer(), [new]) == [ErrorCode.NONE]

    with live_broker(tmp_path / "data", DEFAULTS) as live:
        librdkafka.create(live.address, "t")
        for number in range(3):
            live.run(commits, live, number * SMALL)
            assert records_read_at_start(live, "__consumer_offsets") < READ
    with live_broker(tmp_path / "data", DEFAULTS) as live:
        until(lambda: not live.call(lambda: live.broker.groups.loading), "the groups")
        for number in range(10):
            found = live.call(live.broker.groups.offsets.fetch, f"group-{number}")
            assert found["t"][0].offset == 3 * SMALL - 10 + number


@pytest.mark.long
def test_many_transactions_in_segments_of_the_usual_size(tmp_path: Path) -> None:
    async def transactions(live: LiveBroker) -> list[int]:
        """The epochs in which the ids have ended."""
        coordinator, epochs = live.broker.transactions, []
        for number in range(10):
            name = f"id-{number}"
            _, producer_id, epoch = await coordinator.init(name, 60_000, None)
            for _ in range(SMALL // 30):
                assert not coordinator.add(name, producer_id, epoch, [TopicPartition("t", 0)], 2)
                error, producer_id, epoch = await coordinator.end(
                    name, producer_id, epoch, commit=True, version=2
                )
                assert not error
            epochs.append(epoch)
        return epochs

    with live_broker(tmp_path / "data", DEFAULTS) as live:
        librdkafka.create(live.address, "t")
        for _ in range(2):
            epochs = live.run(transactions, live)
            assert records_read_at_start(live, "__transaction_state") < READ
    with live_broker(tmp_path / "data", DEFAULTS) as live:
        until(lambda: not live.call(lambda: live.broker.transactions.loading), "the transactional ids")
        found = [live.call(live.broker.transactions.find, f"id-{number}") for number in range(10)]
        now = [each.now for each in found if each is not None]
        assert [each.epoch for each in now] == epochs
        assert {each.state for each in now} == {TransactionState.COMPLETE_COMMIT}
