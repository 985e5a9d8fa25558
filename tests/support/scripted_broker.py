"""A server of Kafka's protocol whose answers the test writes, on the test's own loop, for what real brokers do rarely.

    broker = ScriptedBroker({ApiKey.METADATA: lambda call: metadata(call.broker)})
    await broker.start(nursery)
    ...
    assert broker.seen == [("ApiVersionsRequest", 4), ("MetadataRequest", 12)]

An answer is a response, `HANG_UP`, or None for none at all; a coroutine may wait for something first.
"""

from __future__ import annotations

import inspect
import ssl
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import trio

from leafcuttr.wire.api import APIS, ApiKey
from leafcuttr.wire.codec import decode, encode
from leafcuttr.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from leafcuttr.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from leafcuttr.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

HANG_UP: Final = object()
_MOST: Final = 100 << 20


@dataclass
class Call:
    """A request, and what the connection has kept of those before."""

    request: Any
    version: int
    correlation_id: int
    client_id: str
    broker: ScriptedBroker
    connection: int
    kept: dict[str, Any]
    stream: trio.abc.Stream


Script = Callable[[Call], Any]


@dataclass
class ScriptedBroker:
    """`answers` by API key; `versions` replaces the versions that it offers, of all that have an answer otherwise."""

    answers: Mapping[int, Script]
    versions: Mapping[int, tuple[int, int]] | None = None
    node: int = 1
    tls: ssl.SSLContext | None = None
    port: int = 0
    seen: list[tuple[str, int]] = field(default_factory=list)
    """The class of each request and its version."""
    clients: list[str] = field(default_factory=list)
    """The client id of each connection."""
    connections: int = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def start(self, nursery: trio.Nursery) -> None:
        listeners = await trio.open_tcp_listeners(self.port, host="127.0.0.1")
        self.port = listeners[0].socket.getsockname()[1]
        serving: list[Any] = (
            listeners if self.tls is None else [trio.SSLListener(each, self.tls) for each in listeners]
        )
        await nursery.start(trio.serve_listeners, self._serve, serving)

    def asked(self, name: str) -> int:
        """How many requests of this class have come."""
        return sum(each == name for each, _ in self.seen)

    async def _serve(self, stream: trio.abc.Stream) -> None:
        self.connections += 1
        number, kept = self.connections, dict[str, Any]()
        received = bytearray()
        try:
            while data := await stream.receive_some():
                received += data
                if int.from_bytes(received[:4], "big") > _MOST:
                    return  # as brokers do with what is no Kafka
                while (frame := _frame(received)) is not None:
                    if not await self._answer(frame, number, kept, stream):
                        return
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            await trio.aclose_forcefully(stream)

    async def _answer(
        self, frame: bytes, connection: int, kept: dict[str, Any], stream: trio.abc.Stream
    ) -> bool:
        key, version, correlation, length = struct.unpack_from(">hhih", frame)
        api = APIS[key]
        begin = 10 + max(length, 0) + (api.request_header_version(version) > 1)
        self.seen.append((api.request.__name__, version))
        if len(self.clients) < connection:
            self.clients.append(frame[10 : 10 + length].decode())
        if key == ApiKey.API_VERSIONS and key not in self.answers:
            answer: Any = self._offered()
            version = min(version, 4)
        else:
            request = decode(api.request, version, frame[begin:])
            call = Call(
                request,
                version,
                correlation,
                frame[10 : 10 + length].decode(),
                self,
                connection,
                kept,
                stream,
            )
            answer = self.answers[key](call)
            if inspect.isawaitable(answer):
                answer = await _wait(answer)
        if answer is HANG_UP:
            return False
        if answer is not None:
            head = b"\0" if api.response_header_version(version) else b""
            await reply(stream, correlation, head + encode(answer, version))
        return True

    def _offered(self) -> ApiVersionsResponse:
        if self.versions is None:
            keys = {
                key: (APIS[key].min_version, APIS[key].max_version)
                for key in (ApiKey.API_VERSIONS, *self.answers)
            }
        else:
            keys = dict(self.versions)
        return ApiVersionsResponse(
            api_keys=[
                ApiVersion(api_key=key, min_version=first, max_version=last)
                for key, (first, last) in keys.items()
            ]
        )


async def reply(stream: trio.abc.Stream, correlation_id: int, body: bytes) -> None:
    await stream.send_all(struct.pack(">ii", len(body) + 4, correlation_id) + body)


def metadata(
    *brokers: ScriptedBroker, topics: Mapping[str, list[int]] | None = None, error: int = 0
) -> MetadataResponse:
    """These brokers; `topics` with the leader of each partition, -1 for none."""
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=each.node, host="127.0.0.1", port=each.port) for each in brokers
        ],
        cluster_id="scripted",
        controller_id=brokers[0].node if brokers else -1,
        topics=[
            MetadataResponseTopic(
                name=name,
                error_code=error,
                partitions=[
                    MetadataResponsePartition(partition_index=number, leader_id=leader)
                    for number, leader in enumerate(leaders)
                ],
            )
            for name, leaders in (topics or {}).items()
        ],
    )


def coordinator(
    call: Call, error: int = 0, *, broker: ScriptedBroker | None = None
) -> FindCoordinatorResponse:
    """That it is this broker, by default the one that was called; with an error that there is none."""
    found = broker or call.broker
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(
                key=call.request.coordinator_keys[0],
                error_code=error,
                node_id=-1 if error else found.node,
                host="" if error else "127.0.0.1",
                port=-1 if error else found.port,
            )
        ]
    )


async def _wait(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def _frame(received: bytearray) -> bytes | None:
    if len(received) < 4 or len(received) < 4 + (size := int.from_bytes(received[:4], "big")):
        return None
    frame = bytes(received[4 : 4 + size])
    del received[: 4 + size]
    return frame
