"""Commands and formats of plugins that do badly: one line for the person at the terminal, with plugin and part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from click.testing import CliRunner

from leafcuttr.cli.common.installed import installed
from leafcuttr.cli.common.records.formats import known_formats
from leafcuttr.cli.root import cli
from leafcuttr_sdk.formats import FormatError, Place
from support.bad_plugins import COMMAND_LINE, FAULTS, write

PLACE: Final = Place("t", "value")


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("KAFKA_LC_PLUGINS_PATH", str(tmp_path))
    installed.cache_clear()
    yield tmp_path
    installed.cache_clear()


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in ("interrupt", "type", "exit")])
def test_a_command_that_fails(plugins: Path, fault: str) -> None:
    write(plugins, "acme", fault, COMMAND_LINE)
    done = CliRunner().invoke(cli, ["acme-run"])
    assert done.exit_code == 1
    (line,) = done.output.splitlines()
    assert line.startswith("leafcuttr: plugin acme: command acme-run failed: ") and len(line) < 2000
    assert FAULTS[fault].said in line


def test_a_command_has_its_own_exit_status_and_ctrl_c_ends_it(plugins: Path) -> None:
    write(plugins, "acme", "exit", COMMAND_LINE)
    assert CliRunner().invoke(cli, ["acme-run"]).exit_code == 3
    installed.cache_clear()
    write(plugins, "acme", "interrupt", COMMAND_LINE)
    done = CliRunner().invoke(cli, ["acme-run"])
    assert (done.exit_code, done.output) == (130, "leafcuttr: interrupted\n")


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "interrupt"])
def test_a_command_that_cannot_be_loaded(plugins: Path, fault: str) -> None:
    write(plugins, "acme", fault, COMMAND_LINE)
    done = CliRunner().invoke(cli, ["acme-load"])
    assert done.exit_code == 1
    (line,) = done.output.splitlines()
    assert "the command acme-load of plugin acme cannot be loaded: " in line and len(line) < 2000
    assert FAULTS[fault].said in line


@pytest.mark.one_in(2)
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "interrupt"])
@pytest.mark.parametrize(
    "convert", [lambda codec: codec.encode("x", PLACE), lambda codec: codec.decode(b"x", PLACE)]
)
def test_a_format_that_fails(plugins: Path, fault: str, convert: Callable[..., object]) -> None:
    write(plugins, "acme", fault, COMMAND_LINE)
    codec = known_formats().get("acme-format").open({})
    with pytest.raises(FormatError) as caught:
        convert(codec)
    said = str(caught.value)
    assert said.startswith("plugin acme: format acme-format failed: ") and len(said) < 2000
    assert FAULTS[fault].said in said


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault != "interrupt"])
def test_a_format_that_cannot_be_opened(plugins: Path, fault: str) -> None:
    write(plugins, "acme", fault, COMMAND_LINE)
    with pytest.raises(FormatError) as caught:
        known_formats().get("acme-unopened").open({})
    said = str(caught.value)
    assert said.startswith("acme-unopened of plugin acme cannot be loaded: ") and len(said) < 2000
    assert FAULTS[fault].said in said or fault == "type"


def test_a_format_with_options_of_another_type(plugins: Path) -> None:
    write(plugins, "acme", "type", COMMAND_LINE.replace(", {}\n", ', "several"\n'))
    with pytest.raises(FormatError, match="its options are a str"):
        known_formats().get("acme-format").open({})


def test_a_format_that_cannot_be_closed(plugins: Path) -> None:
    from leafcuttr.cli.common.failures import Failure

    write(plugins, "acme", "exit", COMMAND_LINE.replace("        pass\n", "        bad()\n"))
    with pytest.raises(Failure, match="plugin acme: format acme-format failed: SystemExit: 3"):
        known_formats().get("acme-format").open({}).close()
