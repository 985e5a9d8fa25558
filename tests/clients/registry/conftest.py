"""The registry that real clients talk to, with its broker: one for all of these tests, each with subjects and topics of
its own. It has our three formats only: franz-go's `sr` takes no answer with a type of schemas that it does not know."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from support.broker_process import running_broker
from support.registry import SETTINGS, Asked, RegistryProcess


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    """After the last test it must still stop cleanly."""
    folder = tmp_path_factory.mktemp("registry")
    with (
        running_broker(folder, {**SETTINGS, "offsets.topic.num.partitions": "5"}) as broker,
        httpx.Client(timeout=60) as client,
    ):
        address = broker.about["plugin_listeners"]["lc.schema.registry"]
        yield RegistryProcess(Asked(f"http://{address}", client), broker)


@pytest.fixture(scope="session")
def bootstrap(registry: RegistryProcess) -> str:
    """host:port of its broker."""
    return registry.broker.address
