"""The admin endpoint put together: its paths, and how long it answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing

from leafcuttr.state.broker import Broker
from support.http_client import ON, Client, ask

Serve = Callable[..., Awaitable[Broker]]


async def test_the_index_names_every_path(serve: Serve) -> None:
    broker = await serve(ON)
    status, _, body = await ask(broker, "/")
    paths = json.loads(body)["paths"]
    assert status == 200
    assert list(paths) == ["/", "/metrics", "/health", "/health/live", "/health/ready"]
    for path in paths:
        assert (await ask(broker, path))[0] == 200


async def test_the_admin_endpoint_outlives_the_listeners(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While requests in flight are answered at a stop, it says that the broker is not ready."""
    from support.peer import connect as connect_peer
    from support.peer import join_request, metadata_request

    monkeypatch.setattr("leafcuttr.server.run._GRACE_S", 60.0)
    stop, ended = trio.Event(), trio.Event()
    broker = await serve(ON, stop=stop, ended=ended)
    assert broker.admin is not None
    client = Client(await trio.open_tcp_stream(broker.admin.host, broker.admin.port))
    assert (await client.get("/health/ready"))[0] == 200
    peer = await connect_peer(broker)
    await peer.ask(metadata_request("t"), 12)
    asked: Any = join_request("g")
    await peer.send(asked, 3)  # waits for the group's initial delay, and so holds the stop up
    stop.set()
    with trio.fail_after(60):
        status = 200
        while status == 200:
            status, _, body = await client.get("/health/ready")
    assert status == 503
    assert json.loads(body) == {"status": "not ready", "failing": ["serving"]}
    await peer.stream.aclose()
    await ended.wait()
