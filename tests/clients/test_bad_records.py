"""One bad producer does not stop the consumers: a batch whose records no client could step over is refused, and each
client library reads on after every such attempt.

The attempts are those of `parity.scenarios.records`, where a real Kafka is asked the same.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from parity.batches import batch
from parity.scenarios.records import ENDS, INSIDE, LENIENT
from support import jars
from support.librdkafka import create
from support.wire_client import WireClient

Fresh = Callable[[str], str]
Next = Callable[[], bytes]
NEW = "4.3.1"
SECONDS = 60


@contextmanager
def confluent(bootstrap: str, topic: str) -> Iterator[Next]:
    from confluent_kafka import Consumer

    reader = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"{topic}-c", "auto.offset.reset": "earliest"}
    )
    reader.subscribe([topic])

    def read() -> bytes:
        message = reader.poll(SECONDS)
        assert message is not None and message.error() is None, message and message.error()
        return bytes(message.value())

    yield read
    reader.close()


@contextmanager
def kafka_python(bootstrap: str, topic: str) -> Iterator[Next]:
    from kafka import KafkaConsumer

    reader = KafkaConsumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest", consumer_timeout_ms=SECONDS * 1000
    )
    yield lambda: bytes(next(reader).value)
    reader.close()


@contextmanager
def aiokafka(bootstrap: str, topic: str) -> Iterator[Next]:
    from aiokafka import AIOKafkaConsumer

    with asyncio.Runner() as runner:

        async def begin() -> Any:
            reader = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
            await reader.start()
            return reader

        reader = runner.run(begin())
        yield lambda: bytes(runner.run(asyncio.wait_for(reader.getone(), SECONDS)).value)
        runner.run(reader.stop())


@contextmanager
def java(bootstrap: str, topic: str) -> Iterator[Next]:
    reason = jars.missing()
    if reason:
        pytest.skip(reason)
    words = ("--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning", "--timeout-ms", "240000")
    command = jars.java(NEW, "org.apache.kafka.tools.consumer.ConsoleConsumer", *words)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as reader:
        assert reader.stdout is not None
        out = reader.stdout
        yield lambda: out.readline().rstrip(b"\n")
        reader.terminate()


READERS = {
    "confluent-kafka": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "Kafka's Java tools": java,
}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("check", ["ends", "full"])
@pytest.mark.parametrize(
    "reader", [pytest.param(make, id=name, marks=pytest.mark.client(name)) for name, make in READERS.items()]
)
def test_readers_go_on_after_what_is_refused(bootstrap: str, fresh: Fresh, reader: Any, check: str) -> None:
    topic = fresh("topic")
    create(bootstrap, topic, lc_records_check=check)
    wrong = ENDS if check == "ends" else {**ENDS, **INSIDE}
    wrong = {case: parts for case, parts in wrong.items() if case not in LENIENT}
    with WireClient(bootstrap) as client, reader(bootstrap, topic) as read:
        assert client.produce(topic, batch(["first"])).error_code == 0
        assert read() == b"first"
        for case, parts in wrong.items():
            assert client.produce(topic, batch(["x"], **parts)).error_code in (-1, 32, 87), case
            # On the same connection: it stays open.
            assert client.produce(topic, batch([f"after {case}"])).error_code == 0
            assert read() == f"after {case}".encode()
