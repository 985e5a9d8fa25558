"""What the page on settings shows is what its commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from leafcuttr.cli.root import cli

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "settings.md"


def test_the_commands_print_what_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (properties,) = re.findall(r"```properties\n(.*?)```", text, re.DOTALL)
    (tmp_path / "server.properties").write_text(properties)
    monkeypatch.chdir(tmp_path)
    shown = re.findall(r"```sh\n(leafcuttr [^\n]*)\n```\n\n```text\n(.*?)```", text, re.DOTALL)
    assert len(shown) == 2
    for command, expected in shown:
        result = CliRunner().invoke(cli, shlex.split(command)[1:], prog_name="leafcuttr", env={})
        # Errors are printed last, and stand first on the page as on a terminal that sorts nothing.
        assert sorted(result.output.splitlines()) == sorted(expected.splitlines())


OF_BROKERS = sorted(set(PAGE.parent.glob("*.properties")) - {PAGE.parent / "mirror.properties"})


@pytest.mark.parametrize("path", OF_BROKERS, ids=lambda path: path.name)
def test_the_files_that_the_pages_offer_are_right(path: Path) -> None:
    result = CliRunner().invoke(cli, ["config", "check", str(path)], env={})
    assert result.exit_code == 0, result.output
    assert "not a known setting" not in result.output
