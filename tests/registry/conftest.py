"""A registry for all tests of a module: each test has subjects of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.registry import Asked, RegistryProcess, running_registry


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    with running_registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture
def ask(registry: RegistryProcess) -> Asked:
    return registry.ask
