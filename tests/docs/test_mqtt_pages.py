"""docs/tutorial/mqtt.md and docs/how-to/mqtt.md as they are typed, and docs/reference/mqtt.md beside the code."""

from __future__ import annotations

import re
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from leafcuttr.log.manager import _most_open_files
from leafcuttr.runtime.connection_budget import most_of_plugins, share_of_plugins
from leafcuttr_mqtt.mapping import records
from leafcuttr_mqtt.people.admin import routes
from leafcuttr_mqtt.people.command import mqtt as command
from leafcuttr_mqtt.people.metrics import readings
from leafcuttr_mqtt.people.sys_topics import PREFIX
from leafcuttr_mqtt.server.running import Running
from support.mqtt import running_mqtt
from support.pages import DOCS, run_page

REFERENCE = DOCS / "reference/mqtt.md"
needs_mosquitto = pytest.mark.skipif(
    not (shutil.which("bash") and shutil.which("mosquitto_sub")),
    reason="the commands are for bash and mosquitto's clients",
)


class NoBroker:
    """The key of a broker whose MQTT does not run."""


@pytest.mark.long
@needs_mosquitto
def test_the_tutorial(tmp_path: Path) -> None:
    assert run_page("tutorial/mqtt.md", tmp_path) >= 11


@pytest.mark.skipif(
    not (shutil.which("bash") and shutil.which("curl")), reason="the commands are for bash and curl"
)
@pytest.mark.long
def test_the_commands_do_what_the_page_shows(tmp_path: Path) -> None:
    assert run_page("how-to/mqtt.md", tmp_path) >= 8


def section(title: str) -> str:
    found = REFERENCE.read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    assert found, title
    return found


def rows(title: str) -> list[str]:
    return re.findall(r"^\| `(.+?)` \|", section(title), re.MULTILINE)


def test_every_header_has_its_line() -> None:
    names = {value for name, value in vars(records).items() if name.isupper() and isinstance(value, str)}
    headers = {name for name in names if name.startswith("mqtt.") and not name.endswith(".")}
    refused = {name for name in headers if name.startswith("mqtt.refused.")}
    assert set(rows("Records")) == headers - refused
    assert all(f"`{name}`" in section("Records") for name in refused)


def test_every_path_has_its_line() -> None:
    written = {
        path: bool(delete.strip())
        for path, delete in re.findall(
            r"^\| `(.+?)` \| .* \|(.*) \|$|^$", section("Paths of the admin port"), re.MULTILINE
        )
        if path
    }
    assert written == {
        f"/plugins/mqtt{route.path}".rstrip("/"): "DELETE" in route.methods
        for route in routes(NoBroker())  # type: ignore[arg-type]
    }


def test_every_metric_has_its_line() -> None:
    lines = re.findall(r"^\| `(\w+)` \| (\w+) \| ?(.*) ?\|$", section("Metrics"), re.MULTILINE)
    written = {(name, kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in lines}
    known = {
        (one.metric.name, one.metric.kind.value, one.metric.labels)
        for one in readings(NoBroker())  # type: ignore[arg-type]
    }
    assert written == known | {("leafcuttr_mqtt_acknowledgement_seconds", "histogram", ())}


async def test_every_topic_of_sys_is_named(tmp_path: Path) -> None:
    from leafcuttr_mqtt.people import current

    async with running_mqtt(tmp_path):
        (running,) = current._RUNNING.values()
        assert isinstance(running, Running)
        names = {name.removeprefix(PREFIX) for name in running.sys_topics.names()}
    text = section("`$SYS`")
    plain = {name for name in names if not name.startswith("load/")}
    loads = {name.removeprefix("load/").rpartition("/")[0] for name in names - plain}
    values, _, averages = text.partition("`load/<of>")
    assert set(re.findall(r"`([a-z][a-z/ ]*)`", values.partition("QoS 0.")[2])) == plain
    assert set(re.findall(r"`([a-z]+(?:/[a-z]+)?)`", averages)) == loads


def test_every_command_is_named() -> None:
    def names(group: click.Group, before: str = "") -> set[str]:
        found: set[str] = set()
        for name, each in group.commands.items():
            found.add(f"{before}{name}")
            if isinstance(each, click.Group):
                found |= names(each, f"{before}{name} ")
        return found

    written = set(re.findall(r"`([a-z ]+)`", section("Commands").partition("; `--help`")[0]))
    assert written == names(command) | {"leafcuttr mqtt"}


def test_numbers_of_the_table() -> None:
    from leafcuttr_mqtt.session.limits import Limits
    from leafcuttr_mqtt.settings import settings

    defaults = {setting.name: setting.default for setting in settings()}
    limits, text = Limits(), section("Protocol")
    assert f"`mqtt.max.inflight` ({defaults['mqtt.max.inflight']})" in text
    assert defaults["mqtt.max.packet.bytes"] == 1024 * 1024
    assert f"up to {limits.topic_alias_maximum} from a client, up to {limits.aliases_to_client} to it" in text


@pytest.mark.parametrize("page", ["tutorial/mqtt.md", "how-to/mqtt.md"])
def test_settings_that_are_named_exist(page: str) -> None:
    from leafcuttr_mqtt import leafcuttr_register_settings

    known = {setting.name for setting in leafcuttr_register_settings()}
    family: Callable[[str], bool] = lambda name: any(  # noqa: E731
        name.startswith(one.partition("<")[0]) for one in known if "<" in one
    )
    text = (DOCS / page).read_text()
    text = re.sub(r"```text\n.*?```", "", text, flags=re.DOTALL)  # what commands print has headers too
    named = set(re.findall(r"(?<![\w.])((?:lc\.)?mqtt\.[a-z0-9.]*[a-z0-9])(?==)", text))
    assert len(named) >= 2
    assert {name for name in named if name not in known and not family(name)} == set()


def settings_table() -> dict[str, tuple[str, str]]:
    """By name: default and example."""
    lines = re.findall(
        r"^\| `([^`]+)` \| ?(?:`([^`]*)` )?\| `([^`]+)` \|$", section("Settings"), re.MULTILINE
    )
    assert len(lines) == section("Settings").count("\n| `"), "each line is of this form"
    return {name: (default, example) for name, default, example in lines}


def shown_default(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_every_setting_has_its_line() -> None:
    from leafcuttr_mqtt import leafcuttr_register_settings
    from leafcuttr_mqtt.settings import LISTENERS

    table, of_listener = settings_table(), set[str]()
    for setting in leafcuttr_register_settings():
        listener = next((each for each in LISTENERS[1:] if setting.name.startswith(f"{each}.")), None)
        if listener is None:
            assert table.pop(setting.name)[0] == shown_default(setting.default), setting.name
        else:
            of_listener.add("mqtt" + setting.name.removeprefix(listener))
    assert table == {}
    names = list(settings_table())
    first, last = names.index("mqtt.host"), names.index("mqtt.send.timeout.ms")
    assert of_listener == {*names[first : last + 1], "mqtt.allowed.origins"}, (
        "those that the page says the other listeners have too"
    )
    assert "`mqtt.ws` and `mqtt.wss` have `allowed.origins` too" in section("Settings")


def examples() -> dict[str, str]:
    """As they are given: those of families have the names of members."""
    given: dict[str, str] = {}
    for name, (_, example) in settings_table().items():
        member, equals, value = example.partition("=")
        if "<" in name:
            assert equals and member.startswith(name.partition("<")[0]), name
            given[member] = value
        else:
            given[name] = example
    return given


def test_the_examples_of_settings_are_accepted() -> None:
    from leafcuttr.config.findings import Level
    from leafcuttr.plugins.catalogue import examine_all

    given = {**examples(), "mqtt.bridge.cloud.topics": "a/#"}
    assert len(given) > 35
    for without in ("mqtt.kafka.bootstrap.servers", "mqtt.replay.enable"):  # which exclude each other
        words = [f"{name}={value}" for name, value in given.items() if name != without]
        found = [each.line for each in examine_all(None, {}, words)[1] if each.level is not Level.NOTE]
        assert found == []


async def test_a_broker_starts_with_the_examples(tmp_path: Path) -> None:
    """But those of another cluster, and of a plugin that is off."""
    import ssl

    import trio
    import trustme
    from cryptography.hazmat.primitives import serialization

    authority = trustme.CA()
    server = authority.issue_cert("127.0.0.1")
    key = serialization.load_pem_private_key(server.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(examples()["mqtt.ssl.key.password"].encode()),
    )
    (tmp_path / "broker.pem").write_bytes(encrypted + server.cert_chain_pems[0].bytes())
    authority.cert_pem.write_to_path(tmp_path / "devices.pem")
    given = {
        name: re.sub("/(etc|run)/leafcuttr", str(tmp_path), value)
        for name, value in examples().items()
        if not name.startswith(("mqtt.kafka.", "mqtt.auth", "mqtt.bridge."))
    }
    given["mqtt.port"] = "0"
    async with running_mqtt(tmp_path / "data", given) as mqtt:
        assert (tmp_path / "mqtt.sock").stat().st_mode & 0o777 == 0o600
        context = ssl.create_default_context()
        authority.configure_trust(context)
        authority.issue_cert("device@example.org").configure_cert(context)
        stream = await trio.open_ssl_over_tcp_stream("127.0.0.1", mqtt.port, ssl_context=context)
        from leafcuttr_mqtt.packets.types import ConnAck, Connect
        from support.mqtt import V5, MqttClient

        client = MqttClient(stream, V5)
        await client.send(Connect(V5, "device", True, 0))
        assert (await client.expect(ConnAck)).properties.receive_maximum == 20
        await client.publish("sensors/roof/t", b"1", 1)
        assert [(key, value) for key, value, _ in await mqtt.records("sensors-roof")] == [(b"roof", b"1")]


def test_the_numbers_of_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "how-to/mqtt.md").read_text().replace(",", "")
    found = re.findall(r"^\| (\d+) \| (\d+) \| (\d+) \|$", page, re.MULTILINE)
    assert len(found) == 6
    for limit, by_default, most in found:
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=int(limit): (limit, limit))
        for_logs = _most_open_files()
        assert (int(by_default), int(most)) == (share_of_plugins(for_logs), most_of_plugins(for_logs)), limit
