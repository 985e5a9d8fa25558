"""A broker with real sockets in this process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
import trio

from leafcuttr.state.broker import Broker
from support.live_broker import serve_here

Serve = Callable[..., Awaitable[Broker]]


@pytest.fixture
def serve(tmp_path: Path, nursery: trio.Nursery) -> Serve:
    """Start a broker with these settings (Kafka's names, dots as in Kafka); see `serve_here`."""
    return partial(serve_here, nursery, tmp_path / "data")
