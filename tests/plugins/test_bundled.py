"""Every plugin that comes with LeafCuttr keeps its contracts: `leafcuttr plugins check` of each, as for anybody's."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from leafcuttr.cli.root import cli
from support.bundled import BUNDLED


@pytest.mark.parametrize("name", BUNDLED)
def test_it_keeps_its_contracts(name: str) -> None:
    done = CliRunner().invoke(cli, ["plugins", "check", name, "--json"])
    assert done.exit_code == 0, done.output
    reports = json.loads(done.stdout)
    assert {"plugin", "broker"} <= {report["kind"] for report in reports}
