"""The broker that real clients talk to: a `leafcuttr serve` process of its own, one for all of these tests.

`LEAFCUTTR_CLIENTS_BOOTSTRAP=host:port` takes a broker that already runs, for example a real Kafka: every test here
that does not restart its broker must pass with it too. `LEAFCUTTR_CLIENTS_MQTT=host:port,port` is the same for clients
of MQTT, of TCP and of WebSockets: mosquitto, for example.

Each test says by `@pytest.mark.client(NAME)` whose client it runs; `--write-clients-page` writes from that and from
the outcomes docs/reference/clients.md.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.broker_process import running_broker
from support.clients_page import Page
from support.mqtt_broker import MqttBroker, running_mqtt

_NUMBERS = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--write-clients-page", action="store_true", help="write docs/reference/clients.md from this run"
    )
    parser.addoption(
        "--write-secured-clients",
        action="store_true",
        help="write of docs/reference/clients.md only the section that test_rights.py fills",
    )
    parser.addoption(
        "--clients-outcomes",
        type=Path,
        metavar="FILE",
        help="with one of the two: keep the outcomes in FILE, so that a run in several parts fills one page",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "client(name, version, lacks): whose client a test of tests/clients runs, and what it cannot do",
    )
    config.addinivalue_line(
        "markers", "duty(names...): which duties of support's lists of them (*_duties.py) a test shows"
    )
    only_secured = config.getoption("--write-secured-clients", default=False)
    if only_secured or config.getoption("--write-clients-page", default=False):
        page = config.rootpath / "docs/reference/clients.md"
        outcomes = config.getoption("--clients-outcomes")
        config.pluginmanager.register(Page(page, outcomes, only_secured=only_secured))


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """host:port of the broker; after the last test it must still stop cleanly."""
    running = os.environ.get("LEAFCUTTR_CLIENTS_BOOTSTRAP")
    if running:
        yield running
        return
    with running_broker(tmp_path_factory.mktemp("clients"), {"offsets.topic.num.partitions": "5"}) as broker:
        yield broker.address


@pytest.fixture(scope="session")
def mqtt_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MqttBroker]:
    """A broker of MQTT; after the last test it must still stop cleanly."""
    if running := os.environ.get("LEAFCUTTR_CLIENTS_MQTT"):
        yield MqttBroker.named(running)
        return
    with running_mqtt(tmp_path_factory.mktemp("mqtt")) as broker:
        yield broker


@pytest.fixture
def fresh(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """Names of topics and groups that nobody has used before: `fresh("topic")`."""

    def name(kind: str) -> str:
        return f"{kind}-{os.getpid()}-{next(_NUMBERS)}"

    return name
