"""Listeners are opened and closed while the broker runs."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from leafcuttr.config.listeners import Listener
from leafcuttr.server.listener import Connections
from leafcuttr.server.listening import OpenListeners
from leafcuttr.state.broker import Broker
from support.no_threads import SAID, no_threads
from support.tls_peer import Certificates

Serve = Callable[..., Awaitable[Broker]]


async def test_a_listener_that_is_to_be_opened(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = await serve()
    listening = OpenListeners(broker, Connections(broker), ())
    with no_threads(monkeypatch), caplog.at_level(logging.ERROR):
        await listening._replace(None, Listener("NEW", "127.0.0.1", 0, "127.0.0.1", 0))
    assert [record.getMessage() for record in caplog.records] == [f"listener NEW cannot be opened: {SAID}"]


async def test_a_connection_over_tls_from_this_machine(serve: Serve, tmp_path: Path) -> None:
    """It has a small receive buffer, as in Kafka."""
    pair = Certificates(tmp_path).issue("127.0.0.1")
    broker = await serve(
        {
            "listeners": "SSL://127.0.0.1:0",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(pair.file),
        }
    )
    listening = broker.tls
    assert isinstance(listening, OpenListeners)
    make_transport = listening._transports_of(listening._open["SSL"].bound)
    with (
        socket.create_server(("127.0.0.1", 0)) as here,
        socket.create_connection(here.getsockname()),
        here.accept()[0] as accepted,
    ):
        make_transport(accepted)
        # The kernel doubles the size that was requested.
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 204_800
