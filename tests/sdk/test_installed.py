"""Which installed plugins run in the broker of a test, and that their listeners take free ports."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest

from leafcuttr_sdk.testing import RunningBroker, running_broker
from leafcuttr_sdk.testing.installed import settings_for
from support.plugin_folders import install

SOURCE = """
from leafcuttr_sdk import Plugin, ServiceSpec, Setting, Type, listener_settings
PLUGIN = Plugin({name!r}, 1, "for tests")
PREFIX = "lc.plugin.{name}"

def leafcuttr_register_settings():
    yield from listener_settings(PREFIX, {port})
    yield Setting(PREFIX + ".peer.host", Type.STRING, "there", "A peer.")
    yield Setting(PREFIX + ".peer.port", Type.INT, 25, "Of the peer.")

def leafcuttr_register_services():
    return [ServiceSpec({name!r}, Listens)]

class Listens:
    def __init__(self, broker):
        self.broker = broker

    async def run(self, *, task_status):
        import trio
        async with self.broker.listen(PREFIX):
            task_status.started()
            await trio.sleep_forever()
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two plugins are installed, `first` and `second`, both on, both with a port that only one can have."""
    folder = tmp_path / "site"
    for name in ("first", "second"):
        install(folder, name, SOURCE.format(name=name, port=1))
    monkeypatch.syspath_prepend(str(folder))
    return folder


def services(broker: RunningBroker) -> set[str]:
    with urllib.request.urlopen(f"{broker.admin_url}/health", timeout=60) as answer:
        checks = json.load(answer)["checks"]
    assert all(check["ok"] for name, check in checks.items() if name.startswith("service:"))
    return {name.removeprefix("service:") for name in checks if name.startswith("service:")}


def test_none_runs_that_is_not_named(site: Path, tmp_path: Path) -> None:
    with running_broker(tmp_path / "data") as broker:
        assert services(broker) == set()


def test_those_run_that_are_named(site: Path, tmp_path: Path) -> None:
    with running_broker(tmp_path / "data", plugins=["first"]) as broker:
        assert services(broker) == {"first"}
        port = broker.listeners["lc.plugin.first"]
        assert not port.endswith(":1")
        broker.restart()
        assert broker.listeners["lc.plugin.first"] == port


def test_one_runs_that_a_setting_is_given_of(site: Path, tmp_path: Path) -> None:
    with running_broker(tmp_path / "data", {"lc.plugin.second.peer.port": 26}) as broker:
        assert services(broker) == {"second"}


def test_all_run_where_the_test_says_so(site: Path, tmp_path: Path) -> None:
    with running_broker(tmp_path / "data", {"lc.plugins.disabled": ""}) as broker:
        assert services(broker) == {"first", "second"}
    with running_broker(tmp_path / "again", {"lc.plugins.disabled": ("first",)}) as broker:
        assert services(broker) == {"second"}


def test_ports_that_are_given_stay_and_peers_keep_theirs(site: Path) -> None:
    """A plugin that is left out needs no port, a bundled one gets one before it is switched on."""
    assert settings_for(["first"], {}) == {
        "lc.plugins.disabled": ("second",),
        "lc.plugin.first.port": 0,
        "lc.http.proxy.port": 0,
        "mqtt.port": 0,
        "lc.schema.registry.port": 0,
    }
    given = {"lc.plugin.first.port": 7007, "lc.http.proxy.port": 8081, "mqtt.port": 1884}
    given["lc.schema.registry.port"] = 8082
    assert settings_for([], given) == {"lc.plugins.disabled": ("second",)}


def test_a_name_that_is_not_installed(site: Path, tmp_path: Path) -> None:
    with (
        pytest.raises(LookupError, match=r"no plugin frist is installed: did you mean first\?"),
        running_broker(tmp_path / "data", plugins=["frist"]),
    ):
        pass


def test_one_that_cannot_be_imported_harms_no_other(site: Path, tmp_path: Path) -> None:
    install(site, "broken", "import nothing_of_this_name")
    with running_broker(tmp_path / "data", {"lc.plugins.disabled": ""}) as broker:
        assert services(broker) == {"first", "second"}
