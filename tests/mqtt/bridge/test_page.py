"""The page about bridges has their options as they are, and its sample works."""

from __future__ import annotations

import re
from pathlib import Path

from leafcuttr_mqtt.bridge.settings import OPTIONS, read_bridges, settings
from leafcuttr_sdk.testing import fixed_settings

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "mqtt-bridges.md").read_text()


def shown(value: object) -> str:
    if value is None:
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def test_the_options() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{name}` | {shown(row.default)} | {row.help.replace('|', chr(92) + '|')} |"
        for name, row in OPTIONS.items()
    ]


def test_the_sample() -> None:
    (sample,) = re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL)
    given = dict(line.split("=", 1) for line in sample.splitlines() if line.startswith("mqtt.bridge."))
    (bridge,) = read_bridges(fixed_settings(settings(), given))
    assert bridge.name == "cloud"
    assert bridge.tls
    assert bridge.routes().out("sensors/1/temperature") == "site/7/sensors/1/temperature"
    assert bridge.routes().into("site/7/commands/restart") == "commands/restart"
