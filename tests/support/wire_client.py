"""A client that sends exactly what a test gives it: one connection, one request at a time, in any version."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from typing import Any

from leafcuttr.wire.api import APIS
from leafcuttr.wire.codec import decode, encode
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from leafcuttr.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from leafcuttr.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

PATIENCE_S = 60.0
_BY_MODULE = {api.module: api for api in APIS.values()}


class WireClient:
    """A connection to `address` (host:port). Raises ConnectionError when the peer closes it."""

    def __init__(self, address: str, sock: socket.socket | None = None) -> None:
        """`sock` is one that is connected already."""
        host, _, port = address.rpartition(":")
        self.socket = sock or socket.create_connection((host, int(port)), PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._correlation = 0

    def __enter__(self) -> WireClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, request: Any, version: int) -> Any:
        """Send a request and return the decoded answer."""
        self.send(request, version)
        return self.take(request, version)

    def send(self, request: Any, version: int) -> None:
        api = _BY_MODULE[type(request).__module__.rpartition(".")[2]]
        self._correlation += 1
        head = struct.pack(">hhih", api.key, version, self._correlation, 4) + b"test"
        if api.request_header_version(version) > 1:
            head += b"\0"
        frame = head + encode(request, version)
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def take(self, request: Any, version: int) -> Any:
        """The answer to the oldest request that has none yet; `request` and `version` say how to read it."""
        api = _BY_MODULE[type(request).__module__.rpartition(".")[2]]
        (size,) = struct.unpack(">i", self._exactly(4))
        frame = self._exactly(size)
        return decode(api.response, version, frame[4 + api.response_header_version(version) :])

    def produce(
        self, topic: str, batch: bytes | bytearray, *, partition: int = 0, acks: int = -1, version: int = 11
    ) -> PartitionProduceResponse:
        """Produce one record set to one partition and return its answer."""
        answer = (
            self.ask(produce_request(topic, batch, partition, acks), version)
            .responses[0]
            .partition_responses[0]
        )
        assert isinstance(answer, PartitionProduceResponse)
        return answer

    def send_produce(self, topic: str, batch: bytes | bytearray, *, partition: int = 0) -> None:
        """As `produce`, but does not wait for the answer."""
        self.send(produce_request(topic, batch, partition, -1), 11)

    def fetch(
        self, topic: str, offset: int, *, partition: int = 0, max_bytes: int = 1 << 24, version: int = 11
    ) -> PartitionData:
        """Fetch what there is of one partition from an offset on, without waiting."""
        item = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
        request = FetchRequest(max_bytes=max_bytes, topics=[FetchTopic(topic=topic, partitions=[item])])
        answer = self.ask(request, version).responses[0].partitions[0]
        assert isinstance(answer, PartitionData)
        return answer

    def list_offset(
        self, topic: str, timestamp: int, *, partition: int = 0, version: int = 11
    ) -> ListOffsetsPartitionResponse:
        """The offset for a time, or for one of the special times."""
        item = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[item])])
        answer = self.ask(request, version).topics[0].partitions[0]
        assert isinstance(answer, ListOffsetsPartitionResponse)
        return answer

    def list_both_ends(
        self, places: Iterable[tuple[str, int]], version: int = 11
    ) -> dict[tuple[str, int], tuple[ListOffsetsPartitionResponse, ListOffsetsPartitionResponse]]:
        """Where many partitions begin and end, in one request for each."""
        by_topic: dict[str, list[int]] = {}
        for topic, partition in places:
            by_topic.setdefault(topic, []).append(partition)
        found: list[dict[tuple[str, int], ListOffsetsPartitionResponse]] = []
        for timestamp in (-2, -1):
            topics = [
                ListOffsetsTopic(
                    name=name,
                    partitions=[
                        ListOffsetsPartition(partition_index=number, timestamp=timestamp)
                        for number in numbers
                    ],
                )
                for name, numbers in by_topic.items()
            ]
            answer = self.ask(ListOffsetsRequest(topics=topics), version)
            found.append(
                {
                    (topic.name, part.partition_index): part
                    for topic in answer.topics
                    for part in topic.partitions
                }
            )
        first, last = found
        return {place: (first[place], last[place]) for place in first}

    def _exactly(self, size: int) -> bytes:
        got = bytearray()
        while len(got) < size:
            chunk = self.socket.recv(size - len(got))
            if not chunk:
                raise ConnectionResetError("the broker closed the connection")
            got += chunk
        return bytes(got)


def produce_request(
    topic: str, batch: bytes | bytearray, partition: int, acks: int, *, transactional_id: str | None = None
) -> ProduceRequest:
    data = PartitionProduceData(index=partition, records=memoryview(batch))
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
