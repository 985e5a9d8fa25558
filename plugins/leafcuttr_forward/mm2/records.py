"""Heartbeats, checkpoints and offset syncs, as the bytes of records that MirrorMaker 2 writes and reads. No I/O.

All of them are structs in the primitive types of Kafka's protocol, big-endian: a text is its length in 16 bits and its
UTF-8. The value of a heartbeat and of a checkpoint begins with a version in 16 bits, of which there is one, 0. Source:
the classes Heartbeat, Checkpoint and OffsetSync of org.apache.kafka.connect.mirror.

Bytes that are none of these raise ValueError with one line: any client of the cluster can write such topics.
"""

import struct
from typing import Final, NamedTuple

from leafcuttr_sdk.types import TopicPartition

_VERSION: Final = 0
_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_TWO_LONGS: Final = struct.Struct(">qq")
_LONGEST_TEXT: Final = 0x7FFF


class Heartbeat(NamedTuple):
    """Written at `target` for the pair of clusters, at a time in ms."""

    source: str
    target: str
    timestamp: int

    def key(self) -> bytes:
        return _text(self.source) + _text(self.target)

    def value(self) -> bytes:
        return _SHORT.pack(_VERSION) + _LONG.pack(self.timestamp)

    @classmethod
    def parse(cls, key: bytes | None, value: bytes | None) -> "Heartbeat":
        """Raises ValueError."""
        keys, values = _Fields("heartbeat", key), _Fields("heartbeat", value)
        values.version()
        return cls(keys.text(), keys.text(), values.long())


class Checkpoint(NamedTuple):
    """How far a group is: `upstream` at the source, which is `downstream` in `partition` of the target."""

    group: str
    partition: TopicPartition
    """As it is called at the target."""
    upstream: int
    downstream: int
    metadata: str = ""

    def key(self) -> bytes:
        return _text(self.group) + _partition(self.partition)

    def value(self) -> bytes:
        """A metadata that is longer than a text can be is left out; that of a commit may be."""
        metadata = _text(self.metadata) if len(self.metadata.encode()) <= _LONGEST_TEXT else _text("")
        return _SHORT.pack(_VERSION) + _TWO_LONGS.pack(self.upstream, self.downstream) + metadata

    @classmethod
    def parse(cls, key: bytes | None, value: bytes | None) -> "Checkpoint":
        """Raises ValueError."""
        keys, values = _Fields("checkpoint", key), _Fields("checkpoint", value)
        values.version()
        return cls(keys.text(), keys.partition(), values.long(), values.long(), values.text())


class OffsetSync(NamedTuple):
    """The record at `upstream` of the source's partition is at `downstream` of the target's."""

    partition: TopicPartition
    """As it is called at the source."""
    upstream: int
    downstream: int

    def key(self) -> bytes:
        return _partition(self.partition)

    def value(self) -> bytes:
        return _TWO_LONGS.pack(self.upstream, self.downstream)

    @classmethod
    def parse(cls, key: bytes | None, value: bytes | None) -> "OffsetSync":
        """Raises ValueError."""
        keys, values = _Fields("offset sync", key), _Fields("offset sync", value)
        return cls(keys.partition(), values.long(), values.long())


def _text(text: str) -> bytes:
    encoded = text.encode()
    if len(encoded) > _LONGEST_TEXT:
        raise ValueError(f"a text of {len(encoded)} bytes; allowed are {_LONGEST_TEXT}")
    return _SHORT.pack(len(encoded)) + encoded


def _partition(partition: TopicPartition) -> bytes:
    return _text(partition.topic) + _INT.pack(partition.partition)


class _Fields:
    """The fields of one struct, read from its begin. What follows the last one is ignored, as Kafka ignores it."""

    def __init__(self, what: str, data: bytes | None) -> None:
        if data is None:
            raise ValueError(f"no {what}: key or value is null")
        self._what, self._data, self._at = what, bytes(data), 0

    def version(self) -> None:
        (version,) = _SHORT.unpack(self._take(_SHORT.size))
        if version != _VERSION:
            raise ValueError(f"a {self._what} of version {version}; known is {_VERSION}")

    def text(self) -> str:
        (length,) = _SHORT.unpack(self._take(_SHORT.size))
        if length < 0:
            raise ValueError(f"no {self._what}: a text is {length} bytes long")
        try:
            return self._take(length).decode()
        except UnicodeDecodeError:
            raise ValueError(f"no {self._what}: a text is no UTF-8") from None

    def partition(self) -> TopicPartition:
        topic = self.text()
        (number,) = _INT.unpack(self._take(_INT.size))
        return TopicPartition(topic, number)

    def long(self) -> int:
        (number,) = _LONG.unpack(self._take(_LONG.size))
        return int(number)

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise ValueError(f"no {self._what}: it ends after {len(self._data)} bytes")
        taken, self._at = self._data[self._at : end], end
        return taken
