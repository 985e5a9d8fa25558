"""The least client that can produce: for timing a start, when a library's own start-up would drown the figure.

Metadata v4 (creates the topic), Produce v7 of one batch of one record, both built with struct alone. Needs crc32c.
"""

import contextlib
import socket
import struct
import time

from crc32c import crc32c

_METADATA, _PRODUCE = 3, 0


def varint(value: int) -> bytes:
    """A length of a record, zigzag."""
    value *= 2
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def batch_of(value: bytes) -> bytes:
    """One uncompressed batch of one record without key."""
    now = int(time.time() * 1000)
    record = b"\0\0\0\1" + varint(len(value)) + value + b"\0"
    body = struct.pack(">hiqqqhii", 0, 0, now, now, -1, -1, -1, 1) + varint(len(record)) + record
    return struct.pack(">qiibI", 0, len(body) + 9, 0, 2, crc32c(body)) + body


def framed(key: int, version: int, body: bytes) -> bytes:
    """A request with its size and header."""
    request = struct.pack(">hhih", key, version, 7, 3) + b"raw" + body
    return struct.pack(">i", len(request)) + request


def produce_request(topic: str, records: bytes, *, partition: int = 0) -> bytes:
    """A Produce v7 request of one batch, acks=all."""
    name = topic.encode()
    body = struct.pack(">hhiih", -1, -1, 10000, 1, len(name)) + name
    return framed(_PRODUCE, 7, body + struct.pack(">iii", 1, partition, len(records)) + records)


class RawClient:
    """A blocking connection. Every call is one request and its answer."""

    def __init__(self, port: int, timeout: float = 10.0) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        self._socket.close()

    def call(self, key: int, version: int, body: bytes) -> bytes:
        return self._ask(framed(key, version, body))

    def _ask(self, request: bytes) -> bytes:
        self._socket.sendall(request)
        size = struct.unpack(">i", self._read(4))[0]
        return self._read(size)[4:]

    def create_topic(self, topic: str) -> None:
        """Ask for the topic, which creates it where the broker does that."""
        name = topic.encode()
        self.call(_METADATA, 4, struct.pack(">ih", 1, len(name)) + name + b"\1")

    def produce(self, topic: str, value: bytes = b"x", partition: int = 0) -> int:
        """Produce one record with acks=all; returns the error code."""
        answer = self._ask(produce_request(topic, batch_of(value), partition=partition))
        return int(struct.unpack_from(">h", answer, 4 + 2 + len(topic.encode()) + 4 + 4)[0])

    def _read(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count:
            got = self._socket.recv(count - len(data))
            if not got:
                raise ConnectionError("the broker closed the connection")
            data += got
        return bytes(data)


def seconds_to_first_ack(port: int, topic: str, began: float, limit: float = 60.0) -> float:
    """Knock until a record is acknowledged; seconds since `began` (time.monotonic)."""
    while time.monotonic() - began < limit:
        with contextlib.suppress(OSError, struct.error):
            client = RawClient(port, timeout=5)
            try:
                client.create_topic(topic)
                while time.monotonic() - began < limit:
                    if client.produce(topic) == 0:
                        return time.monotonic() - began
                    client.create_topic(topic)
            finally:
                client.close()
        time.sleep(0.002)
    raise TimeoutError(f"no acknowledgement within {limit} s")
