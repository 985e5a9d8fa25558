"""Every handler sees the client of a request: principal, listener, address, client id, software."""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.context import RequestContext
from leafcuttr.handlers.produce import Turn
from leafcuttr.server import routes
from leafcuttr.server.routes import FEW_ELEMENTS
from leafcuttr.state.broker import Broker
from leafcuttr.state.identity import ANONYMOUS, ClientIdentity
from leafcuttr.wire.api import APIS, Api, ApiKey
from leafcuttr.wire.codec import decode
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from leafcuttr.wire.messages.find_coordinator import FindCoordinatorRequest
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from leafcuttr.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from support.logs import batch
from support.peer import Peer, connect, framed, join_request, request_bytes, serves

Serve = Callable[..., Awaitable[Broker]]


TWO_LISTENERS = {
    "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
    "advertised.listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
}


SOFTWARE = ApiVersionsRequest(client_software_name="test-client", client_software_version="1.2.3")


ANSWERED: Mapping[int, Mapping[str, int]] = {
    ApiKey.PRODUCE: {"acks": -1},
}
"""What a request needs to get an answer."""
Shown = list[tuple[int, int, ClientIdentity]]
"""API key, version and client of every call of a handler."""


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """What handlers are shown from now on, by whichever way they are reached."""
    seen: Shown = []

    def note(context: RequestContext) -> None:
        seen.append((context.api_key, context.api_version, context.client))

    monkeypatch.setattr(routes, "_routes", {})
    for api in APIS.values():
        module = importlib.import_module(f"leafcuttr.handlers.{api.module}")

        def handle(
            broker: Broker, context: RequestContext, request: Any, own: Callable[..., Any] = module.handle
        ) -> Any:
            note(context)
            return own(broker, context, request)

        monkeypatch.setattr(module, "handle", handle)
    stage = Turn.stage

    def staged(turn: Turn, broker: Broker, context: RequestContext, request: Any, route: Any) -> None:
        note(context)
        stage(turn, broker, context, request, route)

    monkeypatch.setattr(Turn, "stage", staged)
    return seen


def address_of(peer: Peer) -> tuple[str, int]:
    host, port = peer.stream.socket.getsockname()[:2]
    return host, port


async def send(peer: Peer, request: Any, version: int, client_id: bytes | None) -> None:
    await peer.stream.send_all(framed(request_bytes(request, version, client_id=client_id)))
    await peer.frame()


def client_of(peer: Peer, listener: str, client_id: str | None, *software: str) -> ClientIdentity:
    return ClientIdentity(ANONYMOUS, listener, "PLAINTEXT", *address_of(peer), client_id, *software)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
async def test_every_handler_sees_the_client(api: Api, serve: Serve, shown: Shown) -> None:
    broker = await serve(TWO_LISTENERS)
    request = api.request(**ANSWERED.get(api.key, {}))
    async with await connect(broker, 0) as inside, await connect(broker, 1) as outside:
        await send(outside, SOFTWARE, 3, b"first")
        shown.clear()
        expected: Shown = []
        for version in range(api.min_version, api.max_version + 1):
            await send(inside, request, version, f"inside {version}".encode())
            expected.append((api.key, version, client_of(inside, "INSIDE", f"inside {version}")))
            await send(outside, request, version, b"outside")
            expected.append(
                (api.key, version, client_of(outside, "OUTSIDE", "outside", "test-client", "1.2.3"))
            )
    assert shown == expected


async def test_a_request_without_a_client_id(serve: Serve, shown: Shown) -> None:
    async with await connect(await serve()) as peer:
        for name in (None, b"a", None, b"", b"\xff"):
            await send(peer, ApiVersionsRequest(), 0, name)
    assert [client.client_id for _, _, client in shown] == [None, "a", None, "", "\ufffd"]


async def test_software_that_is_refused_is_not_remembered(serve: Serve, shown: Shown) -> None:
    async with await connect(await serve()) as peer:
        for name, version in (("librdkafka", "2.0"), ("no name\n", "2.0"), ("other", "2 0"), ("x", "1")):
            await send(
                peer,
                ApiVersionsRequest(client_software_name=name, client_software_version=version), 4, b"c",
            )  # fmt: skip
        assert await serves(peer)
    told = [(client.software_name, client.software_version) for _, _, client in shown]
    assert told == [("unknown", "unknown"), *3 * [("librdkafka", "2.0")], ("x", "1")]


async def test_the_handler_of_a_request_that_is_read_in_turns_sees_it_too(serve: Serve, shown: Shown) -> None:
    topics = [MetadataRequestTopic(name=f"t{n}") for n in range(2 * FEW_ELEMENTS)]
    async with await connect(await serve()) as peer:
        await send(peer, MetadataRequest(topics=topics, allow_auto_topic_creation=False), 12, b"long")
        assert [client for _, _, client in shown] == [client_of(peer, "PLAINTEXT", "long")]


async def test_a_produce_that_is_staged_in_pieces_keeps_its_client(serve: Serve) -> None:
    """Kafka's tools may write to internal topics, by their client id: in every piece of a request."""
    broker = await serve({"offsets.topic.num.partitions": "250"})
    async with await connect(broker) as peer:
        await peer.ask(FindCoordinatorRequest(key="g"), 3)
        items = [PartitionProduceData(index=n, records=memoryview(batch(key=b"k"))) for n in range(250)]
        data = TopicProduceData(name="__consumer_offsets", partition_data=items)
        request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data])
        for client_id, error in (
            (b"__admin_client", ErrorCode.NONE),
            (b"x", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ):
            await peer.stream.send_all(framed(request_bytes(request, 9, client_id=client_id)))
            answer = decode(ProduceResponse, 9, (await peer.frame())[5:])
            assert {part.error_code for part in answer.responses[0].partition_responses} == {error}


async def test_the_address_of_a_member_over_ipv6(serve: Serve) -> None:
    broker = await serve({"listeners": "PLAINTEXT://[::1]:0"})
    async with await connect(broker) as peer:
        await peer.ask(join_request("g"), 3)
        (member,) = broker.groups.find("g").members
        assert member.client_host == "/0:0:0:0:0:0:0:1"
