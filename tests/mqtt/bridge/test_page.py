"""The page about bridges has their options as they are, and its sample works."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from leafcuttr_mqtt.bridge.counts import NotOver
from leafcuttr_mqtt.bridge.options import OPTIONS, read_bridges
from leafcuttr_mqtt.bridge.settings import settings
from leafcuttr_mqtt.session.types import DropReason
from leafcuttr_sdk.testing import fixed_settings
from support.pages import run_page

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "mqtt-bridges.md").read_text()


def shown(value: object) -> str:
    if value is None:
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def test_the_options() -> None:
    rows = [line for line in PAGE.partition("\n## Options\n")[2].splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{name}` | {shown(row.default)} | {row.help.replace('|', chr(92) + '|')} |"
        for name, row in OPTIONS.items()
    ]


def test_the_sample() -> None:
    sample, _ = re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL)
    given = dict(line.split("=", 1) for line in sample.splitlines() if line.startswith("mqtt.bridge."))
    (bridge,) = read_bridges(fixed_settings(settings(), given))
    assert bridge.name == "cloud"
    assert bridge.tls
    assert bridge.routes().out("sensors/1/temperature") == "site/7/sensors/1/temperature"
    assert bridge.routes().into("site/7/commands/restart") == "commands/restart"


def test_the_sample_with_all_options(tmp_path: Path) -> None:
    _, sample = re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL)
    given = dict(line.split("=", 1) for line in sample.splitlines())
    assert [name.removeprefix("mqtt.bridge.plant.") for name in given] == list(OPTIONS)
    (bridge,) = read_bridges(fixed_settings(settings(), given))
    assert (bridge.name, len(bridge.addresses), len(bridge.rules)) == ("plant", 2, 3)
    assert len(set(bridge)) > 15, "the examples are read into fields of their own"


def test_every_reason_is_named() -> None:
    table = PAGE.partition("\n| reason |")[2].partition("\n\n")[0]
    named = set(re.findall(r"`([a-z-]+)`", table))
    of_sessions = {each.value for each in DropReason if each is not DropReason.SESSION_ENDED}
    assert named == {each.value for each in NotOver} | of_sessions


@pytest.mark.skipif(
    not (shutil.which("bash") and shutil.which("curl")), reason="the commands are for bash and curl"
)
@pytest.mark.long
def test_the_commands_do_what_the_page_shows(tmp_path: Path) -> None:
    assert run_page("how-to/mqtt-bridges.md", tmp_path) == 7
