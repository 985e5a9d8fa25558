"""The broker under test, as tests use it, and LeafCuttr as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

from mqtt.conformance.raw import Raw

Values: TypeAlias = Mapping[str, str | int | float | bool]


class Broker(NamedTuple):
    """Where it is. `strict`: it is LeafCuttr, which promises more than the specification asks for."""

    address: tuple[str, int]
    websocket: tuple[str, int] | None
    strict: bool

    def open(self, version: int = 5) -> Raw:
        """A connection on which nothing was sent yet."""
        return Raw(*self.address, version, strict=self.strict)

    def client(self, version: int = 5, client_id: str | bytes | None = None, **options: Any) -> Raw:
        """A connection with an accepted CONNECT."""
        raw = self.open(version)
        try:
            raw.connect(client_id, **options)
        except BaseException:
            raw.close()
            raise
        return raw


def address(given: str) -> tuple[str, int]:
    host, _, port = given.rpartition(":")
    return host, int(port)


@contextmanager
def serving(folder: Path, settings: Values, plugins: Sequence[ModuleType] = ()) -> Iterator[Broker]:
    """LeafCuttr with these settings, in a thread of this process."""
    from leafcuttr.embedded import run_broker

    given: dict[str, str | int | float | bool] = {
        "log.dirs": str(folder),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "lc.metrics.enable": False,
        "lc.mqtt.broker.enable": True,
        "mqtt.host": "127.0.0.1",
        "mqtt.port": 0,
        "mqtt.ws.host": "127.0.0.1",
        "mqtt.ws.port": 0,
        # What only ends by a time-out, and should at once, fails its test.
        "mqtt.handshake.timeout.ms": 60_000,
        "mqtt.ws.handshake.timeout.ms": 60_000,
        **settings,
    }
    with run_broker(given, plugins=plugins) as running:
        yield Broker(address(running.listeners["mqtt"]), address(running.listeners["mqtt.ws"]), strict=True)


class Opened(NamedTuple):
    """The broker under test; what is opened by it is closed at the end of the test."""

    broker: Broker
    stack: ExitStack

    @property
    def strict(self) -> bool:
        return self.broker.strict

    def open(self, version: int = 5) -> Raw:
        return self.stack.enter_context(self.broker.open(version))

    def client(self, version: int = 5, client_id: str | bytes | None = None, **options: Any) -> Raw:
        return self.stack.enter_context(self.broker.client(version, client_id, **options))


Started: TypeAlias = Callable[..., AbstractContextManager[Opened]]
"""`start(settings, plugins=())`."""
