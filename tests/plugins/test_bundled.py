"""Every plugin that comes with LeafCuttr keeps its contracts: `leafcuttr plugins check` of each, as for anybody's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from leafcuttr.cli.root import cli
from leafcuttr.config.declared import section
from leafcuttr.config.setting import render
from leafcuttr.plugins.finding import Choice, find_plugins
from support.bundled import BUNDLED

# What switches those on that do nothing without a file: what it says.
FILES = {
    "forward": (
        "lc.topic.forward.config",
        "clusters=here,hub\nhere.bootstrap.servers=localhost:9092\nhub.bootstrap.servers=localhost:19092\n",
    )
}

# What switches on the one that any name does, and the one that needs a folder; Spark need not be here.
GIVEN = {
    "filters": (
        "-o",
        "lc.record.filter.a=flatten",
        "-o",
        "lc.record.filter.b=route regex=test replacement=x",
    ),
    "spark": ("-o", f"lc.spark.pipelines={Path(__file__).parent}", "-o", "lc.spark.program=true"),
}


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", BUNDLED)
def test_it_keeps_its_contracts(name: str, tmp_path: Path) -> None:
    given = list(GIVEN.get(name, ()))
    if name in FILES:
        setting, text = FILES[name]
        file = tmp_path / "config"
        file.write_text(text)
        given = ["-o", f"{setting}={file}"]
    done = CliRunner().invoke(cli, ["plugins", "check", name, "--json", *given])
    assert done.exit_code == 0, done.output
    reports = json.loads(done.stdout)
    assert {"plugin", "broker"} <= {report["kind"] for report in reports}


def test_defaults_are_allowed() -> None:
    """A start takes them as they are."""
    found = [one for one in find_plugins(Choice()).all if one.origin.bundled]
    assert len(found) == len(BUNDLED)
    for one in found:
        assert one.plugin is not None
        rows = section(one.plugin, one.settings, one.topic_settings, bundled=True)
        for row in (*rows.broker, *rows.topic):
            if row.default is not None:
                assert row.parse(render(row.default) or "") == row.default, row.name
