"""A registry for all tests, each of which has subjects of its own; or one for a module that needs its ids and lists."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.registry import Asked, RegistryProcess, running_registry


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    with running_registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture(scope="module")
def own_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryProcess]:
    """For a module whose fixture `registry` returns it."""
    with running_registry(tmp_path_factory.mktemp("registry")) as running:
        yield running


@pytest.fixture
def ask(registry: RegistryProcess) -> Asked:
    return registry.ask
