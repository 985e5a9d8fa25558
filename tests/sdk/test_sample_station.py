"""The station of tests/sample_plugin at its port, at a Unix socket and by WebSockets; what else its `PLUGIN` and its
settings say. `web/test_sample_page.py` has its page."""

from __future__ import annotations

import logging
from pathlib import Path
from types import ModuleType

import pytest
import trio
from trio_websocket import open_websocket_url

from leafcuttr.embedded import open_broker
from leafcuttr.errors import ConfigError
from leafcuttr_sdk import API_MINOR, Operation, Principal, ResourceType, hooks
from support.installed import SAMPLE
from support.waiting import eventually

PREFIX = "lc.plugin.greenhouse"


@pytest.fixture
def greenhouse(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SAMPLE / "src"))
    import leafcuttr_greenhouse  # type: ignore[import-not-found]

    found: ModuleType = leafcuttr_greenhouse
    return found


@pytest.fixture
def given(tmp_path: Path) -> dict[str, str]:
    return {
        "log.dirs": str(tmp_path / "data"),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "lc.metrics.port": "0",
        "lc.plugins.strict": "true",
        f"{PREFIX}.unix.path": str(tmp_path / "station.sock"),
        f"{PREFIX}.ws.port": "0",
        f"{PREFIX}.zone.7": "east",
    }


async def test_it_is_served_at_three_listeners(
    greenhouse: ModuleType, given: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    async with open_broker(given, plugins=[greenhouse]) as broker:
        assert set(broker.listeners) >= {PREFIX, f"{PREFIX}.unix", f"{PREFIX}.ws"}
        async with await trio.open_unix_socket(given[f"{PREFIX}.unix.path"]) as stream:
            await stream.send_all(b"7 21.5\n")
            assert await stream.receive_some() == b"0-0\n"
        ws = broker.listeners[f"{PREFIX}.ws"].rpartition("/")[2]
        async with open_websocket_url(f"ws://{ws}/stations") as client:
            await client.send_message(b"8 22")
            await client.send_message(b".5\n")
            assert await client.get_message() == b"0-1\n"
        host, _, port = broker.listeners[PREFIX].rpartition("/")[2].rpartition(":")
        async with await trio.open_tcp_stream(host, int(port)) as stream:
            await stream.send_all(b"nonsense\n")
            assert (await stream.receive_some()).startswith(b"error: ")
    assert caplog.text == ""


async def test_its_program_runs_beside_the_broker(
    greenhouse: ModuleType, given: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "leafcuttr.plugin.greenhouse")
    async with open_broker({**given, f"{PREFIX}.lamp": "true"}, plugins=[greenhouse]):
        await eventually(lambda: "lamp: the lamp north is on" in caplog.messages, "the lamp")
    assert caplog.messages[-1] == "lamp: the lamp is off"


async def test_a_member_of_its_family_is_checked(greenhouse: ModuleType, given: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"zone\.bed=east .*'bed' is no sensor: they have numbers"):
        async with open_broker({**given, f"{PREFIX}.zone.bed": "east"}, plugins=[greenhouse]):
            pass


async def test_its_authorizer_decides(greenhouse: ModuleType, given: dict[str, str]) -> None:
    topic = ResourceType.TOPIC, "greenhouse"
    settings = {
        **given,
        "lc.authorizer": "gardeners",
        f"{PREFIX}.gardeners": "alice",
        "super.users": "User:root",
    }
    async with open_broker(settings, plugins=[greenhouse]) as broker:
        allowed, alice, bob = broker.security.allowed, Principal("User", "alice"), Principal("User", "bob")
        assert allowed(alice, Operation.READ, *topic)
        assert not allowed(bob, Operation.READ, *topic)
        assert not allowed(alice, Operation.WRITE, *topic)
        assert allowed(Principal("User", "root"), Operation.WRITE, *topic)


def test_it_can_do_without_a_hook_that_this_broker_does_not_know(greenhouse: ModuleType) -> None:
    """The other tests show that it runs."""
    (name,) = greenhouse.PLUGIN.optional_hooks
    assert hasattr(greenhouse, name) and not hasattr(hooks, name)
    assert greenhouse.PLUGIN.api_minor == API_MINOR
