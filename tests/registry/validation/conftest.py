"""One broker with the registry for all tests of a module: each has topics and subjects of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leafcuttr_sdk.testing import running_broker
from support.checked_topics import Shop
from support.registry import SETTINGS


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with running_broker(tmp_path_factory.mktemp("shop"), SETTINGS, ["registry"]) as broker:
        yield Shop(broker)
