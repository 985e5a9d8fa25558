"""The fixtures. pytest loads this module wherever leafcuttr is installed, so it imports nothing that no test has
requested: what a broker needs is imported when a fixture starts one."""

from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from leafcuttr_sdk.testing.broker import RunningBroker

_MARKER = "leafcuttr"
_TAKES = frozenset({"settings", "plugins"})
_REGISTRY = "lc.schema.registry"
_REGISTRY_ON = {f"{_REGISTRY}.enable": True}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{_MARKER}(settings={{...}}, plugins=[...]): settings of the test's leafcuttr_broker by name, and the plugins "
        "that it runs: modules, or names of installed ones",
    )


@pytest.fixture(scope="session")
def leafcuttr_settings() -> Mapping[str, Any]:
    """Settings of every broker of the fixtures, by name. Override it in a conftest.py."""
    return {}


@pytest.fixture(scope="session")
def leafcuttr_plugins(pytestconfig: pytest.Config) -> "Sequence[ModuleType | str]":
    """The plugins that run in every broker of the fixtures: modules, or names of installed ones. By default those of
    the project that is tested, if they are installed. Override it in a conftest.py."""
    return _of_the_project(pytestconfig.rootpath)


@pytest.fixture
def leafcuttr_broker(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    leafcuttr_settings: Mapping[str, Any],
    leafcuttr_plugins: "Sequence[ModuleType | str]",
) -> "Iterator[RunningBroker]":
    """A real broker of this test alone, on free ports, with empty data. Its settings and plugins come from
    `@pytest.mark.leafcuttr(settings={...}, plugins=[...])` of the test, its class and its module."""
    from leafcuttr_sdk.testing.broker import running_broker

    settings, plugins = _marked(request)
    folder = tmp_path_factory.mktemp("leafcuttr")
    chosen = [*leafcuttr_plugins, *plugins]
    with_registry = _REGISTRY_ON if "leafcuttr_registry" in request.fixturenames else {}
    with running_broker(folder, {**with_registry, **leafcuttr_settings, **settings}, chosen) as broker:
        yield broker


@pytest.fixture
def leafcuttr_registry(leafcuttr_broker: "RunningBroker") -> str:
    """The address of a schema registry in `leafcuttr_broker`, as clients of Confluent's take it: `http://host:port`. It
    is empty, and needs `leafcuttr[registry]`."""
    return f"http://{leafcuttr_broker.listeners[_REGISTRY]}"


@pytest.fixture(scope="session")
def leafcuttr_broker_session(
    tmp_path_factory: pytest.TempPathFactory,
    leafcuttr_settings: Mapping[str, Any],
    leafcuttr_plugins: "Sequence[ModuleType | str]",
) -> "Iterator[RunningBroker]":
    """A real broker that all tests share: quicker, but each has to use topics and groups of its own."""
    from leafcuttr_sdk.testing.broker import running_broker

    folder = tmp_path_factory.mktemp("leafcuttr-session")
    with running_broker(folder, leafcuttr_settings, leafcuttr_plugins) as broker:
        yield broker


def _of_the_project(root: "Path") -> list[str]:
    """The names of its plugins, as its pyproject.toml has them, of those that are installed."""
    import tomllib

    from leafcuttr.plugins.entry_points import GROUP, candidates

    try:
        project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8")).get("project", {})
    except (OSError, ValueError):
        return []
    installed = {one.name for one in candidates()}
    return [name for name in project.get("entry-points", {}).get(GROUP, {}) if name in installed]


def _marked(request: pytest.FixtureRequest) -> "tuple[dict[str, Any], Sequence[ModuleType | str]]":
    """What the markers say; one that is nearer to the test wins."""
    settings: dict[str, Any] = {}
    plugins: list[ModuleType | str] = []
    for mark in reversed(list(request.node.iter_markers(_MARKER))):
        if mark.args or not mark.kwargs.keys() <= _TAKES:
            raise pytest.UsageError(
                f"{request.node.nodeid}: the marker {_MARKER} takes {' and '.join(sorted(_TAKES))} by name"
            )
        settings |= mark.kwargs.get("settings", {})
        plugins += mark.kwargs.get("plugins", ())
    return settings, plugins
