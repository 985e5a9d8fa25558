"""A real broker on a temporary directory, without sockets, and a way to send it requests as a connection would.

    answer = await send(MetadataRequest(topics=None), 12)

The request goes through the codec in that version and so does the answer: a handler sees the defaults of what
the version lacks, and a test sees what a client of that version would.
"""

import importlib
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
import trio

from leafcuttr.config.listeners import Listener
from leafcuttr.handlers.context import context_of
from leafcuttr.state.broker import Broker
from leafcuttr.wire.codec import decode, encode
from support.live_broker import opening

LISTENER = Listener("PLAINTEXT", "127.0.0.1", 9092, "broker.test", 19092)
EXTERNAL = Listener("EXTERNAL", "127.0.0.1", 9093, "public.test", 29092)


class HandClock:
    """Wall and monotonic time that only `advance` moves."""

    def __init__(self) -> None:
        self._ms = 1_700_000_000_000

    def now_ms(self) -> int:
        return self._ms

    def monotonic(self) -> float:
        return self._ms / 1000

    def advance(self, ms: int) -> None:
        self._ms += ms


class Send(Protocol):
    async def __call__(
        self, request: Any, version: int, *, listener: Listener = ..., client_id: str = ...
    ) -> Any: ...


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def open_test_broker(tmp_path: Path, clock: HandClock) -> Iterator[Callable[..., Broker]]:
    """Open a broker with these settings (a dict of Kafka's names) on the test's directory; closes it at the
    end.

    Calling it again closes the one before, cleanly: a restart.
    """
    with opening(tmp_path / "data", clock) as start:

        def open_with(settings: dict[str, str] | None = None) -> Broker:
            broker = start(settings)
            broker.listeners = (LISTENER, EXTERNAL)
            return broker

        yield open_with


@pytest.fixture
def broker(open_test_broker: Callable[..., Broker]) -> Broker:
    """A broker with default settings and node id 1."""
    return open_test_broker()


@pytest.fixture
def secured(open_test_broker: Callable[..., Broker]) -> Broker:
    """A broker with an authorizer, for which every client of a test is a super user."""
    name = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    return open_test_broker({"authorizer.class.name": name, "super.users": "User:ANONYMOUS"})


@pytest.fixture
async def coordinators(broker: Broker, nursery: trio.Nursery) -> None:
    """Those of `broker` run, as they have to for a transaction to end."""
    await nursery.start(broker.groups.run)
    await nursery.start(broker.transactions.run)
    while broker.groups.loading or broker.transactions.loading:
        await trio.lowlevel.checkpoint()


@pytest.fixture
def send(broker: Broker) -> Send:
    """Send to `broker`."""
    return sender(broker)


@pytest.fixture
def sender_of() -> Callable[[Broker], Send]:
    """Send to another broker than `broker`."""
    return sender


def sender(broker: Broker) -> Send:
    async def send(
        request: Any, version: int, *, listener: Listener = LISTENER, client_id: str = "test"
    ) -> Any:
        module = type(request).__module__.rpartition(".")[2]
        context = context_of(listener, "127.0.0.1", 50_000, 1)
        context.api_version = version
        context.client = context.client._replace(client_id=client_id)
        handle = importlib.import_module(f"leafcuttr.handlers.{module}").handle
        answer = handle(broker, context, decode(type(request), version, encode(request, version)))
        if inspect.isawaitable(answer):
            answer = await answer
        return None if answer is None else decode(type(answer), version, encode(answer, version))

    return send
