"""The least client that can produce: for timing a start, when a library's own start-up would drown the figure.

Metadata v4 (creates the topic), Produce v7 of one batch of one record, both built with struct alone. Needs crc32c.
"""

import contextlib
import socket
import struct
import time

from crc32c import crc32c

_METADATA, _PRODUCE = 3, 0


def batch(value: bytes) -> bytes:
    """One uncompressed batch of one record without key."""
    now = int(time.time() * 1000)
    assert len(value) < 50
    record = b"\0\0\0\1" + bytes([2 * len(value)]) + value + b"\0"
    body = struct.pack(">hiqqqhii", 0, 0, now, now, -1, -1, -1, 1) + bytes([2 * len(record)]) + record
    return struct.pack(">qiibI", 0, len(body) + 9, 0, 2, crc32c(body)) + body


class RawClient:
    """A blocking connection. Every call is one request and its answer."""

    def __init__(self, port: int, timeout: float = 10.0) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        self._socket.close()

    def call(self, key: int, version: int, body: bytes) -> bytes:
        request = struct.pack(">hhih", key, version, 7, 3) + b"raw" + body
        self._socket.sendall(struct.pack(">i", len(request)) + request)
        size = struct.unpack(">i", self._read(4))[0]
        return self._read(size)[4:]

    def create_topic(self, topic: str) -> None:
        """Ask for the topic, which creates it where the broker does that."""
        name = topic.encode()
        self.call(_METADATA, 4, struct.pack(">ih", 1, len(name)) + name + b"\1")

    def produce(self, topic: str, value: bytes = b"x", partition: int = 0) -> int:
        """Produce one record with acks=all; returns the error code."""
        name, records = topic.encode(), batch(value)
        body = struct.pack(">hhiih", -1, -1, 10000, 1, len(name)) + name
        body += struct.pack(">iii", 1, partition, len(records)) + records
        answer = self.call(_PRODUCE, 7, body)
        return int(struct.unpack_from(">h", answer, 4 + 2 + len(name) + 4 + 4)[0])

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
