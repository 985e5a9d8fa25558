"""Filters and validators of a running broker, with real clients that produce to it and read from it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.config.topic import TopicConfig
from leafcuttr.state.chains import Instance, Tables
from leafcuttr.wire.records import Record as Stored
from leafcuttr.wire.records import encode_batch
from leafcuttr_sdk.filters import DROP, DeadLetter
from leafcuttr_sdk.records import Record
from support import librdkafka
from support.live_broker import LiveBroker, live_broker
from support.logs import NOW
from support.waiting import until
from support.wire_client import WireClient, produce_request

Call = Callable[[Record], Any]


def drop_odd(record: Record) -> Any:
    return DROP if int(record.value or b"0") % 2 else record


def louder(record: Record) -> Any:
    return record._replace(value=(record.value or b"") + b"!")


def only_json(record: Record) -> Any:
    try:
        json.loads(record.value or b"")
    except ValueError:
        return DeadLetter("the value is no JSON")
    return record


def fail(record: Record) -> Any:
    raise LookupError("no table")


def keep(record: Record) -> Any:
    return record


def short(record: Record) -> str | None:
    return None if len(record.value or b"") <= 3 else "the value is longer than 3 bytes"


def tables(**more: Call) -> Tables:
    def made(call: Call) -> Callable[[str, TopicConfig], Instance]:
        return lambda *_: Instance("tests", call)

    filters = {"drop-odd": drop_odd, "louder": louder, "only-json": only_json, "fail": fail, **more}
    return Tables({name: made(call) for name, call in filters.items()}, {"short": made(short)})


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveBroker]:
    with live_broker(tmp_path / "data") as broker:
        broker.call(broker.broker.chains.equip, tables())
        yield broker


def send(address: str, topic: str, values: list[bytes], **settings: Any) -> list[int | str]:
    return librdkafka.send(address, topic, values, timestamp=NOW, **settings)


def values(live: LiveBroker, topic: str, count: int, **settings: Any) -> list[tuple[int, bytes | None]]:
    return [(m.offset(), m.value()) for m in librdkafka.read(live.address, topic, count, **settings)]


@pytest.mark.parametrize("idempotent", [False, True])
def test_a_filter_of_a_topic_that_a_kafka_client_writes_to(live: LiveBroker, idempotent: bool) -> None:
    librdkafka.create(live.address, "t", lc_filters="drop-odd,louder")
    sent = send(
        live.address, "t", [b"%d" % n for n in range(20)], enable_idempotence=idempotent, linger_ms=50
    )
    assert sent == list(range(20))  # the producer does not learn what is gone
    assert values(live, "t", 10) == [(n, b"%d!" % n) for n in range(0, 20, 2)]
    assert librdkafka.watermarks(live.address, "t") == (0, 20)


def test_small_requests_one_after_the_other_are_filtered_too(live: LiveBroker) -> None:
    """They go the short way (`server.repeated_produce`) where there is no filter; and one comes and goes meanwhile."""
    librdkafka.create(live.address, "t")
    with WireClient(live.address) as wire:
        for n in range(300):
            if n == 100:
                librdkafka.alter(live.address, "topic", "t", {"lc.filters": "drop-odd"})
            if n == 200:
                librdkafka.alter(live.address, "topic", "t", {"lc.filters": None})
            answer = wire.produce("t", encode_batch([Stored(0, NOW, None, b"%03d" % n)]))
            assert (answer.error_code, answer.base_offset) == (0, n)
    kept = [n for n in range(300) if not (100 <= n < 200 and n % 2)]
    assert values(live, "t", 250) == [(n, b"%03d" % n) for n in kept]


def test_dead_letters_go_to_a_topic_of_as_many_partitions(live: LiveBroker) -> None:
    librdkafka.create(live.address, "t", partitions=3, lc_filters="only-json")
    for partition in range(3):
        send(live.address, "t", [b"1", b"no", b"{}"], partition=partition, linger_ms=50)
    # Who has the answer can read the dead letters: nothing to wait for.
    assert len(live.broker.topics.by_name["t.dlq"].partitions) == 3
    for partition in range(3):
        (letter,) = librdkafka.read(live.address, "t.dlq", 1, partition=partition)
        headers = dict(letter.headers())
        assert letter.value() == b"no"
        assert headers["lc.dead.letter.reason"] == b"the value is no JSON"
        assert headers["lc.dead.letter.filter"] == b"only-json"
        assert (headers["lc.dead.letter.topic"], headers["lc.dead.letter.offset"]) == (b"t", b"1")
        assert headers["lc.dead.letter.partition"] == b"%d" % partition
    assert live.broker.dead_letters.written == {"t.dlq": 3}
    tally = live.broker.chains.tallies["t", "lc.filters", "only-json"]
    assert (tally.taken, tally.dead_lettered, tally.dropped) == (9, 3, 0)


def test_the_dead_letter_topic_is_not_filtered_for_dead_letters(live: LiveBroker) -> None:
    librdkafka.create(live.address, "t.dlq", lc_filters="fail")
    librdkafka.create(live.address, "t", lc_filters="only-json")
    assert send(live.address, "t", [b"no"]) == [0]
    assert len(librdkafka.read(live.address, "t.dlq", 1)) == 1
    with WireClient(live.address) as wire:
        assert wire.produce("t.dlq", encode_batch([Stored(0, NOW, None, b"x")])).error_code == -1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("target", ["t", "__consumer_offsets", "no/topic"])
def test_where_dead_letters_cannot_go(live: LiveBroker, target: str) -> None:
    from confluent_kafka import KafkaException

    astray = tables(astray=lambda _: DeadLetter("astray", target))
    live.call(live.broker.chains.equip, astray)
    for create in (
        lambda: librdkafka.create(live.address, "t", **{"lc.filters.dead.letter.topic": target}),
        lambda: librdkafka.alter(live.address, "topic", "t", {"lc.filters.dead.letter.topic": target}),
    ):
        with pytest.raises(KafkaException, match=r"lc\.filters\.dead\.letter\.topic"):
            create()
        if "t" not in live.broker.topics.by_name:
            librdkafka.create(live.address, "t", lc_filters="astray")
    with WireClient(live.address) as wire:
        answer = wire.produce("t", encode_batch([Stored(0, NOW, None, b"no")]))
    assert (answer.error_code, answer.error_message) == (-1, "The record filter astray of topic t failed")
    assert librdkafka.watermarks(live.address, "t") == (0, 0)


def test_instances_are_made_by_a_worker_once_the_broker_serves(live: LiveBroker) -> None:
    made: list[tuple[str, int]] = []

    def make(topic: str, _: TopicConfig) -> Instance:
        made.append((topic, threading.get_ident()))
        return Instance("tests", keep)

    loop = live.call(threading.get_ident)
    live.call(live.broker.chains.equip, Tables({"keep": make}))
    librdkafka.create(live.address, "t", lc_filters="keep")
    librdkafka.alter(live.address, "topic", "t", {"retention.ms": "100000"})
    librdkafka.alter(
        live.address, "broker", "1", {"log.retention.ms": "100000"}
    )  # nothing of the topic changes
    assert [topic for topic, _ in made] == ["t", "t"]
    assert loop not in {thread for _, thread in made}


def test_without_an_answer_and_in_sync_mode(live: LiveBroker) -> None:
    librdkafka.create(live.address, "t", lc_filters="only-json", lc_log_sync_always="true")
    with WireClient(live.address) as wire:
        batch = encode_batch([Stored(0, NOW, None, b"no"), Stored(1, NOW, None, b"1")])
        wire.send(produce_request("t", batch, 0, 0), 11)
        for n in range(1, 5):
            assert wire.produce("t", batch).base_offset == 2 * n
    assert values(live, "t", 5) == [(2 * n + 1, b"1") for n in range(5)]
    assert len(librdkafka.read(live.address, "t.dlq", 5)) == 5


def test_dead_letters_that_cannot_be_written(live: LiveBroker, caplog: pytest.LogCaptureFixture) -> None:
    librdkafka.create(live.address, "t.dlq", cleanup_policy="compact")  # which wants keys
    librdkafka.create(live.address, "t", lc_filters="only-json")
    assert send(live.address, "t", [b"no", b"1"], linger_ms=50) == [0, 1]
    writer = live.broker.dead_letters
    assert writer.lost == {"t.dlq": 1}
    assert "without key" in writer.trouble["t.dlq"]
    assert "1 dead letters of t-0, from offset 0 on, cannot be written to t.dlq and are lost" in caplog.text
    send(live.address, "t", [b"no"], key=b"k")
    assert (writer.lost, writer.written, writer.trouble) == ({"t.dlq": 1}, {"t.dlq": 1}, {})


@pytest.mark.one_in(3)
@pytest.mark.parametrize("version", [7, 8, 9, 11, 12])
def test_a_validator_tells_the_producer_which_record(live: LiveBroker, version: int) -> None:
    librdkafka.create(live.address, "t", lc_validators="short", lc_filters="drop-odd")
    records = [Stored(n, NOW, None, value) for n, value in enumerate((b"1", b"12345", b"2", b"67890"))]
    with WireClient(live.address) as wire:
        answer = wire.produce("t", encode_batch(records), version=version)
    assert (answer.error_code, answer.base_offset) == (87, -1)
    if version >= 8:
        assert [(e.batch_index, e.batch_index_error_message) for e in answer.record_errors] == [
            (1, "the value is longer than 3 bytes"),
            (3, "the value is longer than 3 bytes"),
        ]
        assert "due to 2 record errors in total" in (answer.error_message or "")
    assert librdkafka.watermarks(live.address, "t") == (0, 0)


def test_a_filter_that_fails_refuses_the_batch(live: LiveBroker) -> None:
    librdkafka.create(live.address, "t", lc_filters="fail")
    with WireClient(live.address) as wire:
        for _ in range(5):
            answer = wire.produce("t", encode_batch([Stored(0, NOW, None, b"1")]))
            assert (answer.error_code, answer.error_message) == (
                -1,
                "The record filter fail of topic t failed",
            )
    assert live.broker.chains.tallies["t", "lc.filters", "fail"].failures == 5
    assert librdkafka.watermarks(live.address, "t") == (0, 0)


def test_transactions(live: LiveBroker) -> None:
    from confluent_kafka import Producer

    librdkafka.create(live.address, "t", lc_filters="drop-odd,only-json")
    producer = Producer({"bootstrap.servers": live.address, "transactional.id": "one", "linger.ms": 50})
    producer.init_transactions(60)
    for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
        producer.begin_transaction()
        for n in range(4):
            producer.produce("t", b"%d" % n, timestamp=NOW)
        producer.flush(60)
        for n in range(1, 4, 2):
            producer.produce("t", b"%d" % n, timestamp=NOW)  # a batch of which nothing stays
        producer.flush(60)
        end(60)
    producer.begin_transaction()
    producer.produce("t", b"8", timestamp=NOW)
    producer.commit_transaction(60)
    # Three times 4 + 2 records and a marker, then one record and a marker.
    assert librdkafka.watermarks(live.address, "t") == (0, 23)
    assert values(live, "t", 5, isolation_level="read_committed") == [
        (0, b"0"), (2, b"2"), (14, b"0"), (16, b"2"), (21, b"8")
    ]  # fmt: skip


def test_a_duplicate_is_filtered_once(live: LiveBroker) -> None:
    librdkafka.create(live.address, "t", lc_filters="only-json")
    batch = encode_batch(
        [Stored(0, NOW, None, b"no"), Stored(1, NOW, None, b"1")],
        producer_id=4000,
        producer_epoch=0,
        base_sequence=0,
    )
    with WireClient(live.address) as wire:
        for _ in range(3):
            answer = wire.produce("t", batch)
            assert (answer.error_code, answer.base_offset) == (0, 0)
    assert live.broker.dead_letters.written == {"t.dlq": 1}
    assert live.broker.chains.tallies["t", "lc.filters", "only-json"].taken == 2


def test_large_batches_are_filtered_by_a_worker(live: LiveBroker) -> None:
    librdkafka.create(live.address, "t", lc_filters="drop-odd", compression_type="zstd")
    count = 20_000
    sent = send(live.address, "t", [b"%05d" % n for n in range(count)], linger_ms=200)
    assert sent == list(range(count))
    assert values(live, "t", count // 2) == [(n, b"%05d" % n) for n in range(0, count, 2)]


def test_every_client_reads_over_gaps_and_batches_without_records(live: LiveBroker) -> None:
    """One batch of which some stay, some of which none does, one that stays, and at the end one without records."""
    librdkafka.create(live.address, "t", lc_filters="drop-odd")
    rows = [[0, 1, 2, 3], [1, 1], [5], [6], [7, 7, 7], [8, 9], [9]]
    at, expected = 0, []
    with WireClient(live.address) as wire:
        for row in rows:
            batch = encode_batch([Stored(n, NOW, b"k", b"%d" % value) for n, value in enumerate(row)])
            assert wire.produce("t", batch).base_offset == at
            expected += [(at + n, b"%d" % value) for n, value in enumerate(row) if value % 2 == 0]
            at += len(row)
    assert values(live, "t", len(expected)) == expected
    assert _kafka_python(live.address, at) == (expected, at)
    assert asyncio.run(_aiokafka(live.address, at)) == (expected, at)


def _kafka_python(address: str, end: int) -> tuple[list[tuple[int, bytes]], int]:
    from kafka import KafkaConsumer
    from kafka import TopicPartition as Partition

    consumer = KafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
    try:
        partition = Partition("t", 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        got: list[tuple[int, bytes]] = []

        def at_end() -> bool:
            for records in consumer.poll(200).values():
                got.extend((record.offset, record.value) for record in records)
            return bool(consumer.position(partition) >= end)

        until(at_end, "kafka-python at the end")
        return got, consumer.position(partition)
    finally:
        consumer.close()


async def _aiokafka(address: str, end: int) -> tuple[list[tuple[int, bytes]], int]:
    from aiokafka import AIOKafkaConsumer
    from aiokafka import TopicPartition as Partition

    consumer = AIOKafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
    await consumer.start()
    try:
        partition = Partition("t", 0)
        consumer.assign([partition])
        consumer.seek(partition, 0)
        got: list[tuple[int, bytes]] = []
        async with asyncio.timeout(60):
            while await consumer.position(partition) < end:
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    got.extend((record.offset, record.value) for record in records)
        return got, await consumer.position(partition)
    finally:
        await consumer.stop()


def test_all_is_as_it_was_after_a_restart(tmp_path: Path) -> None:
    with live_broker(tmp_path) as first:
        first.call(first.broker.chains.equip, tables())
        librdkafka.create(first.address, "t", lc_filters="drop-odd,only-json")
        send(first.address, "t", [b"0", b"1", b"2", b"5"], linger_ms=50)
        before = first.stored("t")
    with live_broker(tmp_path) as again:
        assert again.stored("t") == before
        assert again.log("t").log_end_offset == 4
        with WireClient(
            again.address
        ) as wire:  # nobody has said what stands behind the names: no record gets past
            answer = wire.produce("t", encode_batch([Stored(0, NOW, None, b"2")]))
        assert answer.error_code == -1
        again.call(again.broker.chains.equip, Tables())
        assert list(again.broker.chains.warnings()) == [
            "topic t takes no records: there is no record filter drop-odd; no plugin that is on has a record filter"
        ]
        again.call(again.broker.chains.equip, tables())
        assert send(again.address, "t", [b"6", b"7"], linger_ms=50) == [4, 5]
        assert values(again, "t", 3) == [(0, b"0"), (2, b"2"), (4, b"6")]
