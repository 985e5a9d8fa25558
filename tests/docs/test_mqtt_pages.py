"""docs/tutorial/mqtt.md and docs/how-to/mqtt.md as they are typed, and docs/reference/mqtt.md beside the code."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import click
import pytest

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


@needs_mosquitto
def test_the_tutorial(tmp_path: Path) -> None:
    assert run_page("tutorial/mqtt.md", tmp_path) >= 11


@pytest.mark.skipif(
    not (shutil.which("bash") and shutil.which("curl")), reason="the commands are for bash and curl"
)
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
