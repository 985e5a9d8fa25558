"""Real requests, taken from between real clients and a broker: what the byte-level fuzzer starts from."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from support.waiting import free_port


class Tap:
    """A TCP relay on `port` that keeps every request frame that passes; at most `most` of one API key and version."""

    def __init__(self, most: int = 12) -> None:
        self.port = free_port()
        self.target = 0
        self.frames: list[bytes] = []
        self._most = most
        self._seen: dict[bytes, int] = {}
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._closing = False
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._closing = True
        self._listener.close()

    def _accept(self) -> None:
        while not self._closing:
            with suppress(OSError):
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target))
                threading.Thread(target=self._relay, args=(client, server, self._keep()), daemon=True).start()
                threading.Thread(
                    target=self._relay, args=(server, client, lambda _: None), daemon=True
                ).start()

    def _relay(self, source: socket.socket, sink: socket.socket, look: Callable[[bytes], None]) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                look(data)
                sink.sendall(data)
        for sock in (source, sink):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _keep(self) -> Callable[[bytes], None]:
        pending = bytearray()

        def look(data: bytes) -> None:
            pending.extend(data)
            while len(pending) >= 4:
                size = int.from_bytes(pending[:4], "big")
                if len(pending) < 4 + size:
                    return
                frame = bytes(pending[4 : 4 + size])
                del pending[: 4 + size]
                if self._seen.setdefault(frame[:4], 0) < self._most and len(frame) < 20_000:
                    self._seen[frame[:4]] += 1
                    self.frames.append(frame)

        return look


@contextmanager
def tapped() -> Iterator[Tap]:
    tap = Tap()
    try:
        yield tap
    finally:
        tap.close()


def use_real_clients(address: str) -> None:
    """Let librdkafka and kafka-python do what clients do, so that many APIs pass the tap."""
    from confluent_kafka import Consumer, Producer, TopicPartition
    from confluent_kafka.admin import (
        AdminClient,
        ConfigResource,
        NewPartitions,
        NewTopic,
        OffsetSpec,
        ResourceType,
    )
    from kafka import KafkaConsumer, KafkaProducer

    admin = AdminClient({"bootstrap.servers": address})
    admin.create_topics([NewTopic("fuzz", 3, 1, config={"retention.ms": "1000000"})])["fuzz"].result(20)
    for extra in ({}, {"enable.idempotence": True, "compression.type": "zstd"}):
        producer = Producer({"bootstrap.servers": address, **extra})
        for number in range(200):
            producer.produce(
                "fuzz", b"value %d" % number, b"key", partition=number % 3, headers=[("h", b"x")]
            )
        producer.flush(20)
    consumer = Consumer({"bootstrap.servers": address, "group.id": "fuzz", "auto.offset.reset": "earliest"})
    consumer.subscribe(["fuzz"])
    got = 0
    while got < 400:
        got += len(consumer.consume(500, 5.0))
    consumer.commit(asynchronous=False)
    consumer.committed([TopicPartition("fuzz", 0)], 10)
    admin.describe_consumer_groups(["fuzz"])["fuzz"].result(20)
    admin.list_consumer_groups().result(20)
    consumer.close()
    part = TopicPartition("fuzz", 0)
    admin.list_offsets({part: OffsetSpec.latest()})[part].result(20)
    admin.describe_configs([ConfigResource(ResourceType.TOPIC, "fuzz")])
    admin.create_partitions([NewPartitions("fuzz", 4)])["fuzz"].result(20)
    admin.describe_cluster().result(20)
    old = KafkaProducer(bootstrap_servers=address)
    old.send("fuzz", b"from kafka-python").get(20)
    old.close()
    reader = KafkaConsumer("fuzz", bootstrap_servers=address, group_id="fuzz2", auto_offset_reset="earliest")
    reader.poll(5000)
    reader.close()
