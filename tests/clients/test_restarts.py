"""Clients that are up while the broker is stopped or killed and started again on the same port."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support import jars
from support.broker_process import Restarting
from support.librdkafka import create, read, watermarks
from support.waiting import until

pytestmark = pytest.mark.long
SECONDS = 60.0
HOWS = [signal.SIGTERM, signal.SIGKILL]
RETRY = {"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 200}
how = pytest.mark.parametrize("how", HOWS, ids=lambda one: one.name)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Restarting]:
    one = Restarting(tmp_path)
    yield one
    one.end()


def values_of(address: str, topic: str, count: int) -> list[int]:
    """The numbers in a topic of one partition; fails when there are more or fewer than `count`."""
    assert watermarks(address, topic) == (0, count)
    return [int(one.value()) for one in read(address, topic, count)]


@pytest.mark.client("confluent-kafka")
@how
def test_idempotent_producer_of_librdkafka(broker: Restarting, how: signal.Signals) -> None:
    """Restarts between and below batches in flight: each record is there once, in order."""
    from confluent_kafka import Producer

    create(broker.address, "t")
    errors: list[Any] = []
    acknowledged: list[int] = []

    def told(error: Any, message: Any) -> None:
        if error:
            errors.append(error)
        else:
            acknowledged.append(message.offset())

    producer = Producer(
        {
            "bootstrap.servers": broker.address,
            "enable.idempotence": True,
            "linger.ms": 1,
            "batch.num.messages": 50,
        }
        | RETRY
    )
    count = 0
    for _ in range(3):
        for _ in range(3000):
            producer.produce("t", str(count), on_delivery=told)
            count += 1
        seen = len(acknowledged)
        while len(acknowledged) == seen:  # under way: some are acknowledged, many are not
            producer.poll(1)
        broker.restart(how)
    assert producer.flush(SECONDS) == 0
    assert not errors
    assert acknowledged == list(range(count))
    assert values_of(broker.address, "t", count) == list(range(count))


@pytest.mark.client("confluent-kafka")
@how
def test_group_of_librdkafka(broker: Restarting, how: signal.Signals) -> None:
    """A member through restarts misses nothing and gets nothing again that it has committed."""
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    create(broker.address, "t")
    with sending(broker.address, 600):
        consumer = Consumer(
            {
                "bootstrap.servers": broker.address,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
            | RETRY
        )
        consumer.subscribe(["t"])
        done = seen = 0  # records committed; records processed

        def commit() -> bool:
            try:
                consumer.commit(offsets=[TopicPartition("t", 0, seen)], asynchronous=False)
            except KafkaException as error:  # refused or lost while the broker is away
                assert not error.args[0].fatal()
                return False
            return True

        def next_record() -> Any:
            message = consumer.poll(0.2)
            if message is None:
                return None
            if message.error():
                assert not message.error().fatal(), message.error()
                return None
            return message

        try:
            restarts = [200, 400]
            while done < 600:
                number = int(until(next_record, f"a record after {seen}", seconds=SECONDS).value())
                assert done <= number <= seen, f"{number} came, {done} were committed and {seen} seen"
                seen = max(seen, number + 1)
                if seen >= done + 20:
                    until(commit, "a commit", seconds=SECONDS)
                    done = seen
                if restarts and seen >= restarts[0] + 10:  # ten records that no commit covers
                    restarts.pop(0)
                    broker.restart(how)
        finally:
            consumer.close()
    assert committed(broker.address, "g") == 600


@pytest.mark.client("confluent-kafka")
@how
def test_a_new_member_goes_on_where_the_last_one_committed(broker: Restarting, how: signal.Signals) -> None:
    from confluent_kafka import Consumer

    create(broker.address, "t")
    with sending(broker.address, 100):
        pass
    settings = {"bootstrap.servers": broker.address, "group.id": "g", "auto.offset.reset": "earliest"}
    got: list[int] = []
    for _ in range(4):
        consumer = Consumer(settings | {"enable.auto.commit": False})
        consumer.subscribe(["t"])
        some: list[Any] = []
        while len(some) < 25:
            message = consumer.poll(SECONDS)
            assert message is not None and message.error() is None
            some.append(message)
        got += [int(one.value()) for one in some]
        consumer.commit(some[-1], asynchronous=False)
        consumer.close()
        broker.restart(how)
    assert got == list(range(100))
    assert committed(broker.address, "g") == 100


@pytest.mark.client("kafka-python")
@how
def test_kafka_python(broker: Restarting, how: signal.Signals) -> None:
    """Its idempotent producer and a group of one through a restart."""
    from kafka import KafkaConsumer, KafkaProducer

    create(broker.address, "t")
    producer = KafkaProducer(
        bootstrap_servers=broker.address, enable_idempotence=True, acks="all", delivery_timeout_ms=60_000
    )
    reader = KafkaConsumer(
        "t",
        bootstrap_servers=broker.address,
        group_id="g",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    got: list[int] = []

    def polled(until_count: int) -> Callable[[], bool]:
        def poll() -> bool:
            for some in reader.poll(100).values():
                got.extend(int(one.value) for one in some)
            return len(got) >= until_count

        return poll

    sent = [producer.send("t", str(at).encode(), partition=0) for at in range(200)]
    until(polled(1), "the first record", seconds=SECONDS)
    broker.restart(how)
    sent += [producer.send("t", str(at).encode(), partition=0) for at in range(200, 400)]
    assert [one.get(SECONDS).offset for one in sent] == list(range(400))
    until(polled(400), "all records", seconds=SECONDS)
    assert got == list(range(400))
    producer.close()
    reader.close()


@pytest.mark.client("aiokafka")
@how
def test_aiokafka(broker: Restarting, how: signal.Signals) -> None:
    """Its idempotent producer and a group of one through a restart."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    create(broker.address, "t")

    async def run() -> list[int]:
        producer = AIOKafkaProducer(bootstrap_servers=broker.address, enable_idempotence=True)
        reader = AIOKafkaConsumer(
            "t",
            bootstrap_servers=broker.address,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await producer.start()
        await reader.start()
        sent = [await producer.send("t", str(at).encode(), partition=0) for at in range(200)]
        got = [int((await reader.getone()).value)]
        await asyncio.to_thread(broker.restart, how)
        sent += [await producer.send("t", str(at).encode(), partition=0) for at in range(200, 400)]
        offsets = [one.offset for one in await asyncio.gather(*sent)]
        assert offsets == list(range(400))
        while len(got) < 400:
            got.append(int((await reader.getone()).value))
        await producer.stop()
        await reader.stop()
        return got

    assert asyncio.run(asyncio.wait_for(run(), 2 * SECONDS)) == list(range(400))


@pytest.mark.client("Kafka's Java tools")
@how
@pytest.mark.parametrize("version", ["4.3.1", "3.9.1"])
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
def test_java(broker: Restarting, how: signal.Signals, version: str, tmp_path: Path) -> None:
    """VerifiableProducer (idempotent) and VerifiableConsumer through a restart: each record once."""
    create(broker.address, "t")
    file = tmp_path / "producer.properties"
    file.write_text("retries=1000000\nreconnect.backoff.max.ms=200\n")  # the tool's own setting is no retry
    config = ("--throughput", "2000", "--producer.config", str(file))
    with (
        java_tool(tmp_path, version, "VerifiableConsumer", broker, "--group-id", "g") as reading,
        java_tool(tmp_path, version, "VerifiableProducer", broker, *config) as writing,
    ):
        for many in (500, 4000):
            until(
                lambda wanted=many: acked(writing()) >= wanted,
                f"{many} acknowledged records",
                seconds=SECONDS,
            )
            if many == 500:
                broker.restart(how)
        until(lambda: consumed(reading()) >= 4000, "the records that were read", seconds=SECONDS)
    assert not [one for one in writing() if one["name"] == "producer_send_error"]
    _, end = watermarks(broker.address, "t")
    assert values_of(broker.address, "t", end) == list(range(end))
    assert end >= acked(writing())


def acked(events: list[dict[str, Any]]) -> int:
    return sum(one["name"] == "producer_send_success" for one in events)


def consumed(events: list[dict[str, Any]]) -> int:
    return sum(one["count"] for one in events if one["name"] == "records_consumed")


@contextmanager
def java_tool(
    folder: Path, version: str, name: str, broker: Restarting, *arguments: str
) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """A tool that runs until the block ends; yields a function that returns the events it has printed so far."""
    out = folder / f"{name}.out"
    command = jars.java(version, f"org.apache.kafka.tools.{name}", "--bootstrap-server", broker.address)
    with out.open("wb") as printed:
        process = subprocess.Popen(
            [*command, "--topic", "t", *arguments], stdout=printed, stderr=subprocess.DEVNULL
        )

    def events() -> list[dict[str, Any]]:
        lines = out.read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines if line.startswith(b"{")]

    try:
        yield events
        process.terminate()
        process.wait(SECONDS)
    finally:
        process.kill()
        process.wait()


@contextmanager
def sending(address: str, count: int) -> Iterator[None]:
    """Sends numbers from 0 up to the topic `t` from a thread of its own, idempotently, and waits for the last."""
    from confluent_kafka import Producer

    failures: list[Any] = []

    def run() -> None:
        producer = Producer(
            {"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 0} | RETRY
        )
        for at in range(count):
            producer.produce("t", str(at), on_delivery=lambda error, _: error and failures.append(error))
            producer.poll(0)
        if producer.flush(SECONDS):
            failures.append("not all records were acknowledged")

    thread = threading.Thread(target=run, name="sender")
    thread.start()
    try:
        yield
    finally:
        thread.join()
    assert not failures


def committed(address: str, group: str) -> int:
    """What the group has committed of the only partition of `t`."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": group})
    try:
        return int(consumer.committed([TopicPartition("t", 0)], SECONDS)[0].offset)
    finally:
        consumer.close()
