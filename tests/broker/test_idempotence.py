"""Idempotent producers over the wire: what comes twice is stored once, whatever happens to the broker in between."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest
from support import librdkafka
from support.broker_process import running_broker
from support.changing import alter_broker
from support.live_broker import LiveBroker, live_broker
from support.logs import NOW, batch
from support.wire_client import WireClient

GAP, FENCED = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH
LAST_SEQUENCE = 2**31 - 1


class Producer:
    """An idempotent producer that does as it is told. Batches have `count` records."""

    def __init__(
        self, client: WireClient, topic: str, *, epoch: int = 0, producer_id: int | None = None
    ) -> None:
        self._client = client
        self._topic = topic
        self.epoch = epoch
        if producer_id is None:
            answer = client.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=-1), 4)
            assert answer.error_code == 0
            producer_id = answer.producer_id
        self.producer_id = producer_id

    def send(self, sequence: int, count: int = 1) -> int:
        """The base offset, or the error code, negative."""
        data = batch(
            count,
            timestamp=NOW,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
        )
        answer = self._client.produce(self._topic, data)
        return -answer.error_code if answer.error_code else answer.base_offset


@pytest.fixture
def producer(live: LiveBroker, topic: str) -> Producer:
    return Producer(WireClient(live.address), topic)


def end(live: LiveBroker, topic: str) -> int:
    return librdkafka.watermarks(live.address, topic)[1]


def test_a_duplicate_has_the_offset_of_the_first(live: LiveBroker, topic: str, producer: Producer) -> None:
    assert [producer.send(0, 3), producer.send(3, 2)] == [0, 3]
    assert [producer.send(0, 3), producer.send(3, 2), producer.send(0, 3)] == [0, 3, 0]
    assert end(live, topic) == 5
    assert [header.base_sequence for header in live.stored(topic)] == [0, 3]
    assert producer.send(5) == 5


def test_five_batches_are_remembered(live: LiveBroker, topic: str, producer: Producer) -> None:
    assert [producer.send(at) for at in range(6)] == list(range(6))
    assert [producer.send(at) for at in range(1, 6)] == list(range(1, 6))
    assert producer.send(0) == -GAP
    assert end(live, topic) == 6


def test_a_gap_is_refused(live: LiveBroker, topic: str, producer: Producer) -> None:
    assert producer.send(0, 2) == 0
    assert [producer.send(3), producer.send(1), producer.send(LAST_SEQUENCE)] == [-GAP] * 3
    assert end(live, topic) == 2
    assert producer.send(2) == 2


def test_an_older_epoch_is_fenced(live: LiveBroker, topic: str, producer: Producer) -> None:
    assert producer.send(0) == 0
    producer.epoch = 1
    assert producer.send(1) == -GAP, "a new epoch begins at 0"
    assert producer.send(0) == 1
    producer.epoch = 0
    assert producer.send(1) == -FENCED
    assert producer.send(0) == -FENCED, "not a duplicate any more"
    producer.epoch = 1
    assert producer.send(1) == 2
    assert end(live, topic) == 3


def test_sequences_begin_again_after_the_last(topic: str, producer: Producer) -> None:
    assert producer.send(LAST_SEQUENCE - 1, 1) == 0, "of an unknown producer any sequence is taken"
    assert producer.send(LAST_SEQUENCE, 2) == 1
    assert producer.send(1) == 3
    assert producer.send(LAST_SEQUENCE, 2) == 1


def test_producers_have_their_own_sequences_in_each_partition(live: LiveBroker, topic: str) -> None:
    with WireClient(live.address) as client:
        one, other = Producer(client, topic), Producer(client, topic)
        assert one.producer_id != other.producer_id
        assert [one.send(0), other.send(0), one.send(1), other.send(1)] == [0, 1, 2, 3]


@pytest.mark.setting("producer.id.expiration.ms", while_running=True)
def test_a_silent_producer_is_forgotten(live: LiveBroker, topic: str, producer: Producer, scope: str) -> None:
    producer.send(0)
    live.clock.ms += 1000
    live.run(live.broker.logs.expire_producers)
    assert producer.send(5) == -GAP
    alter_broker(live.address, scope, {"producer.id.expiration.ms": "1000"})
    try:
        live.run(live.broker.logs.expire_producers)
        assert producer.send(5) == 1, "of an unknown producer any sequence is taken"
    finally:
        alter_broker(live.address, scope, {"producer.id.expiration.ms": None})


def test_a_batch_refused_for_its_settings_takes_no_sequence(
    live: LiveBroker, topic: str, producer: Producer
) -> None:
    librdkafka.alter(live.address, "topic", topic, {"cleanup.policy": "compact"})
    assert producer.send(0) == -ErrorCode.INVALID_RECORD
    librdkafka.alter(live.address, "topic", topic, {"cleanup.policy": "delete"})
    assert producer.send(0) == 0


def test_after_a_clean_restart(tmp_path: Path) -> None:
    with live_broker(tmp_path) as broker:
        librdkafka.create(broker.address, "t", segment_ms="1")
        first = Producer(WireClient(broker.address), "t")
        assert [first.send(0, 2), first.send(2)] == [0, 2]
    with live_broker(tmp_path) as broker:
        again = Producer(WireClient(broker.address), "t", producer_id=first.producer_id)
        assert [again.send(0, 2), again.send(2), again.send(4)] == [0, 2, -GAP]
        assert again.send(3) == 3
        assert Producer(WireClient(broker.address), "t").producer_id > first.producer_id


def test_after_sigkill(tmp_path: Path) -> None:
    """Also of batches before the active segment, and of a second kill at once."""
    with running_broker(tmp_path) as broker:
        librdkafka.create(broker.address, "t", segment_bytes=str(1 << 20))
        with WireClient(broker.address) as client:
            first = Producer(client, "t")
            assert [first.send(at * 50_000, 50_000) for at in range(4)] == [at * 50_000 for at in range(4)]
        assert len(list((broker.data / "t-0").glob("*.log"))) > 1
        broker.stop(signal.SIGKILL)
    for expected in (200_000, 200_001):
        with running_broker(tmp_path) as broker:
            with WireClient(broker.address) as client:
                again = Producer(client, "t", producer_id=first.producer_id)
                assert [again.send(at * 50_000, 50_000) for at in range(4)] == [
                    at * 50_000 for at in range(4)
                ]
                assert again.send(expected + 1) == -GAP
                assert again.send(expected) == expected
                assert Producer(client, "t").producer_id > first.producer_id
            broker.stop(signal.SIGKILL)
