"""A client that speaks the protocol through our own codec over a real socket, and can misbehave.

async with await connect(broker) as peer:
    answer = await peer.ask(MetadataRequest(topics=None), 12)
"""

from __future__ import annotations

import importlib
import struct
from contextlib import suppress
from typing import Any, Self

import trio

from leafcuttr.state.broker import Broker
from leafcuttr.wire.api import APIS, ApiKey
from leafcuttr.wire.codec import decode, encode
from support.waiting import within


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def request_bytes(
    request: Any, version: int, *, correlation_id: int = 1, client_id: bytes | None = b"peer"
) -> bytes:
    """A whole request with its header, without the size in front."""
    api = api_of(request)
    name = struct.pack(">h", -1) if client_id is None else struct.pack(">h", len(client_id)) + client_id
    tags = b"\0" if api.request_header_version(version) >= 2 else b""
    return struct.pack(">hhi", api.key, version, correlation_id) + name + tags + encode(request, version)


def api_of(request: Any) -> Any:
    module = type(request).__module__.rpartition(".")[2]
    return next(api for api in APIS.values() if api.module == module)


class Peer:
    """One connection. `send` and `answer_to` are the halves of `ask`, for pipelining."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self._pending = bytearray()
        self._next = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stream.aclose()

    async def ask(self, request: Any, version: int) -> Any:
        return await self.answer_to(request, version, await self.send(request, version))

    async def send(self, request: Any, version: int) -> int:
        """Send a request; returns its correlation id."""
        self._next += 1
        await self.stream.send_all(framed(request_bytes(request, version, correlation_id=self._next)))
        return self._next

    async def answer_to(self, request: Any, version: int, correlation_id: int) -> Any:
        """The next answer, which must have this correlation id."""
        api = api_of(request)
        frame = await self.frame()
        assert int.from_bytes(frame[:4], "big") == correlation_id
        at = 4 + (api.response_header_version(version) >= 1)
        response = getattr(
            importlib.import_module(type(request).__module__),
            type(request).__name__.replace("Request", "Response"),
        )
        return decode(response, version, frame[at:])

    async def frame(self) -> bytes:
        """The next answer, without its size. Raises ConnectionError at the end of the stream."""
        size = int.from_bytes(await self._take(4), "big")
        return await self._take(size)

    async def closed(self) -> bytes:
        """Wait until the broker closes the connection; what it sent before."""
        with within(60, "the end of the connection"), suppress(trio.BrokenResourceError):
            while data := await self.stream.receive_some(65536):
                self._pending += data
        return bytes(self._pending)

    async def _take(self, count: int) -> bytes:
        while len(self._pending) < count:
            data = await self.stream.receive_some(65536)
            if not data:
                raise ConnectionError("the broker closed the connection")
            self._pending += data
        taken = bytes(self._pending[:count])
        del self._pending[:count]
        return taken


async def connect(broker: Broker, listener: int = 0) -> Peer:
    """A connection to a broker of this process, to its n-th listener."""
    found = broker.listeners[listener]
    host = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}.get(found.host, found.host)
    return Peer(await trio.open_tcp_stream(host, found.port))


async def serves(peer: Peer) -> bool:
    """Whether the broker answers on this connection: ApiVersions."""
    from leafcuttr.wire.messages.api_versions import ApiVersionsRequest

    answer = await peer.ask(ApiVersionsRequest(), 0)
    return any(each.api_key == ApiKey.PRODUCE for each in answer.api_keys)


def produce_request(topic: str, records: bytes, *, partition: int = 0, acks: int = -1) -> Any:
    from leafcuttr.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

    data = PartitionProduceData(index=partition, records=memoryview(records))
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )


def fetch_request(
    topic: str, offset: int, *, partition: int = 0, max_wait_ms: int = 0, max_bytes: int = 1 << 20
) -> Any:
    from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

    part = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        topics=[FetchTopic(topic=topic, partitions=[part])],
    )


def metadata_request(*topics: str) -> Any:
    """Of these topics, which are created where they do not exist; of all without arguments."""
    from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in topics] or None, allow_auto_topic_creation=True
    )


def join_request(group: str, member: str = "") -> Any:
    from leafcuttr.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol

    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=300_000,
        member_id=member,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m")],
    )
