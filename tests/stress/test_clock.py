"""The time of day is set while the broker runs, an hour forward and an hour back: a real process, real clients.

Sessions, rebalances, transactions and delays do not notice; timestamps say what the clock says, as in Kafka; nothing
that is acknowledged is lost. What a single part does is tested where the part is.
"""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka import Producer

from support import librdkafka
from support.broker_process import BrokerProcess, running_broker
from support.forked_start import run_leafcuttr
from support.logs import batch
from support.waiting import until
from support.wall_clock import WallClock
from support.wire_client import WireClient

HOUR = 3600
MAX_TIMESTAMP = -3
SETTINGS = {
    "log.retention.check.interval.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "transactional.id.expiration.ms": "600000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.segment.delete.delay.ms": "0",
}


def rounds_pass(broker: BrokerProcess) -> None:
    """Everything that goes on by itself has been done at this time of day: the record of it is written last."""
    record = broker.data / "leafcuttr.partitions"
    before = record.stat().st_mtime_ns if record.exists() else 0
    with WireClient(broker.address) as client:  # something to record
        client.produce("noise", batch())
    until(lambda: record.exists() and record.stat().st_mtime_ns != before, "a checkpoint")


def assert_all_there(broker: BrokerProcess, counts: dict[str, int]) -> None:
    for topic, count in counts.items():
        assert len(librdkafka.read(broker.address, topic, count)) == count
        assert librdkafka.watermarks(broker.address, topic) == (0, count)


def test_an_hour_forward_and_an_hour_back(tmp_path: Path) -> None:
    clock, home = WallClock(tmp_path), tmp_path / "home"
    counts = {"plain": 0, "stamped": 0}
    stamps: list[int] = []

    def produce(client: WireClient) -> None:
        for _ in range(5):
            now = time.time_ns() // 1_000_000
            answer = client.produce("plain", batch(timestamp=now, size=400))
            assert (answer.error_code, answer.base_offset) == (0, counts["plain"])
            answer = client.produce("stamped", batch(timestamp=now, size=400))
            assert (answer.error_code, answer.base_offset) == (0, counts["stamped"])
            stamps.append(answer.log_append_time_ms)
            counts["plain"] += 1
            counts["stamped"] += 1

    with running_broker(home, SETTINGS, environ=clock.environ) as broker:
        kept = {"retention_ms": str(2 * HOUR * 1000), "segment_ms": str(HOUR * 500)}
        librdkafka.create(broker.address, "noise")
        librdkafka.create(broker.address, "in-transaction")
        # As in Kafka a broker whose clock is behind refuses what is too far ahead of it: an hour by default.
        librdkafka.create(
            broker.address, "plain", message_timestamp_after_max_ms=str(3 * HOUR * 1000), **kept
        )
        librdkafka.create(broker.address, "stamped", message_timestamp_type="LogAppendTime", **kept)
        producer = Producer(
            {
                "bootstrap.servers": broker.address,
                "transactional.id": "id",
                "transaction.timeout.ms": 300_000,
                "linger.ms": 0,
            }
        )
        producer.init_transactions(30)
        producer.begin_transaction()
        group = librdkafka.Group(broker.address, "g", ["plain"], session_timeout_ms=6000)
        try:
            with WireClient(broker.address) as client:
                for ahead in (0, HOUR, 0, -HOUR):
                    clock.ahead(ahead)
                    produce(client)
                    producer.produce("in-transaction", b"one")
                    assert producer.flush(30) == 0
                    assert len(group.take(5)) == 5
                    rounds_pass(broker)
                    group.commit()
                assert client.list_offset("stamped", MAX_TIMESTAMP).offset == stamps.index(max(stamps))
                forward = min(stamps[5:10])
                assert client.list_offset("stamped", forward).offset == 5
                assert client.list_offset("stamped", stamps[0]).offset == 0
            assert (group.assigned, group.lost) == (1, 0)  # no session has ended
            producer.commit_transaction(30)  # nor has the transaction
        finally:
            group.close()
        steps = [round((stamps[at] - stamps[at - 5]) / HOUR / 1000) for at in (5, 10, 15)]
        assert steps == [1, -1, -1]
        counts["in-transaction"] = 4
        assert librdkafka.watermarks(broker.address, "in-transaction") == (0, 5)  # and the marker
        assert len(librdkafka.read(broker.address, "in-transaction", 4)) == 4
        del counts["in-transaction"]
        assert_all_there(broker, counts)
        assert "Traceback" not in broker.log

    # The next start is an hour before the last stop, and the one after that follows a kill.
    clock.ahead(-2 * HOUR)
    with running_broker(home, SETTINGS, environ=clock.environ) as broker:
        assert_all_there(broker, counts)
        with WireClient(broker.address) as client:
            produce(client)
        broker.process.kill()
        broker.process.wait()
        broker.ended = True
    clock.ahead(0)
    with running_broker(home, SETTINGS, environ=clock.environ) as broker:
        assert_all_there(broker, counts)
    checked = run_leafcuttr(("verify", str(broker.data)))
    assert checked.returncode == 0, checked.stdout + checked.stderr
