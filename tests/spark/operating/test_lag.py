"""The age of what was not read."""

from __future__ import annotations

from itertools import count

from leafcuttr_sdk.batches import BatchBuilder
from leafcuttr_sdk.blocking_peers import open_peer
from leafcuttr_sdk.records import NewBatch
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.operating.lag import lag_s, oldest_ms
from support import librdkafka
from support.live_broker import LiveBroker
from support.waiting import free_port, until

_NUMBERS = count()


def test_the_oldest_record_at_or_behind_the_positions(live: LiveBroker) -> None:
    topic = f"ages-{next(_NUMBERS)}"
    librdkafka.create(live.address, topic, 3)
    with open_peer({"bootstrap.servers": live.address}) as peer:
        with peer.appender() as appender:
            for partition in range(3):
                builder = BatchBuilder()
                for number in range(4):
                    builder.add(b"x", 1000 * (partition + 1) + number)
                appender.append([NewBatch(TopicPartition(topic, partition), builder.finish())])

        def oldest(*positions: int, wait_s: float = 60) -> int | None:
            given = {TopicPartition(topic, number): at for number, at in enumerate(positions) if at >= 0}
            return oldest_ms(peer, given, wait_s)

        assert oldest(0, 0, 0) == 1000
        assert oldest(2, 0, 0) == 1002
        assert oldest(-1, -1, 1) == 3001
        # At the end of one, where nothing comes: the others come first, however slow the machine
        until(lambda: oldest(4, 3, 0, wait_s=0.2) == 2003, "those that are not at their ends")
        # At their ends
        assert oldest(4, 4, 4, wait_s=0.2) is None
        # Behind: no such offset
        assert oldest(9, -1, 0) == 3000
        assert oldest() is None


def test_a_cluster_that_is_away() -> None:
    given = {
        "bootstrap.servers": f"127.0.0.1:{free_port()}",
        "request.timeout.ms": "300",
        "default.api.timeout.ms": "300",
    }
    with open_peer(given) as peer:
        assert oldest_ms(peer, {TopicPartition("a", 0): 0}, wait_s=0.1) is None


def test_in_seconds() -> None:
    one, two = TopicPartition("a", 0), TopicPartition("a", 1)
    assert lag_s({}, {}, 5000, lambda _: None) == 0.0
    assert lag_s({one: 3}, {one: 7, two: 9}, 5000, lambda given: 2500 if given == {one: 7} else None) == 2.5
    assert lag_s({one: 3}, {}, 5000, lambda given: 6000 if given == {one: 0} else None) == 0.0
    assert lag_s({one: 3}, {}, 5000, lambda _: None) is None


def test_the_partitions_with_the_largest_lag() -> None:
    lag = {TopicPartition("a", number): number for number in range(1, 30)}
    asked: list[TopicPartition] = []
    lag_s(lag, {}, 5000, asked.extend)  # type: ignore[func-returns-value]
    assert asked == [TopicPartition("a", number) for number in range(29, 13, -1)]
