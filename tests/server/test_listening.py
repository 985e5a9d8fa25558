"""Listeners are opened and closed while the broker runs."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import pytest

from leafcuttr.config.listeners import Listener
from leafcuttr.server.listener import Connections
from leafcuttr.server.listening import OpenListeners
from leafcuttr.state.broker import Broker
from support.no_threads import SAID, no_threads

Serve = Callable[..., Awaitable[Broker]]


async def test_a_listener_that_is_to_be_opened(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = await serve()
    listening = OpenListeners(broker, Connections(broker), ())
    with no_threads(monkeypatch), caplog.at_level(logging.ERROR):
        await listening._replace(None, Listener("NEW", "127.0.0.1", 0, "127.0.0.1", 0))
    assert [record.getMessage() for record in caplog.records] == [f"listener NEW cannot be opened: {SAID}"]
