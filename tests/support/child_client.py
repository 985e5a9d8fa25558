"""A client of librdkafka in a process of its own, to be stopped and continued by signals. It says what it does, a line
each, on standard output:

    member ADDRESS GROUP TOPIC      `assigned N`, `lost`, `got PARTITION OFFSET` once that offset is committed
    producer ADDRESS TOPIC COUNT    numbers from 0 on, idempotent: `sent` when all are acknowledged
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Child:
    """One of them. `said` is all it has said so far."""

    def __init__(self, process: subprocess.Popen[bytes], out: Path) -> None:
        self.process = process
        self._out = out

    @property
    def said(self) -> list[str]:
        whole, _, _ = self._out.read_text().rpartition("\n")
        return whole.splitlines()


@contextmanager
def child_client(folder: Path, *words: str) -> Iterator[Child]:
    """Run one; killed at the end if it has not ended."""
    out = folder / f"{'-'.join(words[:1] + words[2:])}.{len([*folder.iterdir()])}.out"
    with out.open("wb") as file:
        process = subprocess.Popen([sys.executable, __file__, *words], stdout=file)
    try:
        yield Child(process, out)
    finally:
        process.kill()
        process.wait()


def _say(*words: object) -> None:
    print(*words, flush=True)


def _member(address: str, group: str, topic: str) -> None:
    from confluent_kafka import Consumer, KafkaException

    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "session.timeout.ms": 1500,
            "heartbeat.interval.ms": 300,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(
        [topic],
        on_assign=lambda _, partitions: _say("assigned", len(partitions)),
        on_revoke=lambda *_: _say("lost"),
        on_lost=lambda *_: _say("lost"),
    )
    while True:
        message = consumer.poll(0.2)
        if message is None or message.error():
            continue
        try:
            consumer.commit(message, asynchronous=False)
        except KafkaException:
            continue  # it is not this member's any more, and comes again to whom it belongs
        _say("got", message.partition(), message.offset())


def _producer(address: str, topic: str, count: str) -> None:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": address,
            "enable.idempotence": True,
            "linger.ms": 0,
            "batch.num.messages": 50,
            "request.timeout.ms": 2000,
        }
    )
    for number in range(int(count)):
        while True:
            try:
                producer.produce(topic, str(number).encode(), partition=0)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
        if number % 100 == 0:
            _say("at", number)
    if producer.flush(120) == 0:
        _say("sent")


if __name__ == "__main__":
    {"member": _member, "producer": _producer}[sys.argv[1]](*sys.argv[2:])
