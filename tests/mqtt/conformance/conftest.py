"""Fixtures of the broker under test. By default it is LeafCuttr, in this process; `--mqtt-broker HOST:PORT` names
another one, which has to accept clients without credentials."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from mqtt.conformance.under_test import Broker, Opened, Started, Values, address, serving


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--mqtt-broker", metavar="HOST:PORT", help="test this MQTT broker and not LeafCuttr")
    parser.addoption("--mqtt-websocket", metavar="HOST:PORT", help="where that broker speaks WebSocket")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "normative(version, *identifiers): the test checks these statements of statements.tsv"
    )


@pytest.fixture(scope="module")
def shared_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    given = request.config.getoption("--mqtt-broker")
    if given:
        websocket = request.config.getoption("--mqtt-websocket")
        yield Broker(address(given), address(websocket) if websocket else None, strict=False)
        return
    with serving(tmp_path_factory.mktemp("mqtt") / "data", {}) as broker:
        yield broker


@pytest.fixture
def broker(shared_broker: Broker) -> Iterator[Opened]:
    with ExitStack() as stack:
        yield Opened(shared_broker, stack)


@pytest.fixture
def leafcuttr(request: pytest.FixtureRequest, tmp_path: Path) -> Started:
    """Start LeafCuttr with settings of its own: what is tested so, other brokers are not asked for."""
    if request.config.getoption("--mqtt-broker"):
        pytest.skip("needs settings of LeafCuttr")

    @contextmanager
    def start(settings: Values, plugins: Sequence[ModuleType] = ()) -> Iterator[Opened]:
        with serving(tmp_path / "data", settings, plugins) as found, ExitStack() as stack:
            yield Opened(found, stack)

    return start


@pytest.fixture(autouse=True)
def nothing_failed(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A connection that ends because the broker's own code has failed is no refusal, though it looks like one from the
    other side of a socket."""
    yield
    said = [record.getMessage() for record in caplog.get_records("call") if record.levelno >= logging.ERROR]
    assert not [text for text in said if " failed: " in text]
