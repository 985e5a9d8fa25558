"""The hooks that the SDK documents are those that the host calls."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import leafcuttr
import leafcuttr_sdk
from leafcuttr.plugins import registration
from leafcuttr_sdk import hooks
from support.broker_process import clean_environ, running_broker
from support.forked_start import run_leafcuttr


def test_every_hook_of_the_sdk_is_called_and_no_other() -> None:
    documented = {name for name, _ in inspect.getmembers(hooks, inspect.isfunction)}
    assert documented == set(registration.RETURNS)


@pytest.mark.parametrize(("hook", "name"), registration.RETURNS.items())
def test_what_a_hook_is_said_to_return_is_what_is_checked(hook: str, name: str) -> None:
    assert inspect.signature(getattr(hooks, hook)).return_annotation == f"Iterable[{name}]"
    assert inspect.isclass(getattr(leafcuttr_sdk, name))


EVERY = """
import pathlib
from leafcuttr_sdk import Plugin, hooks

PLUGIN = Plugin(name="every", api_version=1, summary="Has every hook, and notes each call.")


def _noting(name, *arguments):
    text = ", ".join(arguments)
    program = f"def {name}({text}):\\n    with LOG.open('a') as log:\\n        log.write('{name}\\\\n')\\n    return ()"
    exec(program, globals())


LOG = pathlib.Path(__file__).with_name("calls")
for _name in [name for name in dir(hooks) if name.startswith("leafcuttr_register_")]:
    _noting(_name, *getattr(hooks, _name).__code__.co_varnames)
"""


def test_each_hook_is_called_once_where_its_page_says(tmp_path: Path) -> None:
    (tmp_path / "every.py").write_text(EVERY)
    calls = tmp_path / "calls"
    with running_broker(tmp_path / "broker", {"lc.plugins.path": str(tmp_path)}):
        pass
    by_serve = calls.read_text().split()
    on_the_command_line = {registration.CLI_COMMANDS, registration.RECORD_FORMATS}
    assert sorted(by_serve) == sorted(set(registration.RETURNS) - on_the_command_line)
    assert by_serve[:2] == [registration.SETTINGS, registration.TOPIC_SETTINGS]

    for words, expected in (
        (["--help"], registration.CLI_COMMANDS),
        (["produce", "--help"], registration.RECORD_FORMATS),
    ):
        calls.unlink()
        environ = clean_environ({"KAFKA_LC_PLUGINS_PATH": str(tmp_path)})
        assert run_leafcuttr(words, environ=environ).returncode == 0
        called = calls.read_text().split()
        assert [name for name in called if name in on_the_command_line] == [expected]


def test_one_package_knows_pluggy() -> None:
    core = Path(leafcuttr.__file__).parent
    knowing = [
        file.relative_to(core)
        for file in core.rglob("*.py")
        if re.search(r"^\s*(import|from) pluggy\b", file.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert knowing == [Path("plugins", "registration.py")]


FORMATS = """
from leafcuttr_sdk import Plugin
PLUGIN = Plugin({name!r}, 1, "a format of schemas")

class Columns:
    name, summary, rules = "COLUMNS", "heads", ()

    def parse(self, text, references):
        pass

def leafcuttr_register_schema_formats():
    return [Columns()]
"""


def test_a_second_schema_format_of_one_name_is_refused_by_name(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(FORMATS.format(name=name))
    with running_broker(tmp_path / "broker", {"lc.plugins.path": str(tmp_path)}) as broker:
        pass
    (line,) = [line for line in broker.log.splitlines() if "COLUMNS" in line]
    assert "plugin second" in line and "plugin first has a schema format COLUMNS too" in line


PROVIDERS = """
from leafcuttr_sdk import Plugin
PLUGIN = Plugin({name!r}, 1, "a schema provider")

class Shelf:
    waits_for = None

    def get(self, key, subject=None):
        return None

    async def by_id(self, key, subject=None):
        raise LookupError

    async def register(self, subject, format, text, references=()):
        raise LookupError

def leafcuttr_register_schema_provider(broker):
    return [Shelf()] * {count}
"""


def test_a_second_schema_provider_is_refused_by_name(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / f"{name}.py").write_text(PROVIDERS.format(name=name, count=1))
    with running_broker(tmp_path / "broker", {"lc.plugins.path": str(tmp_path)}) as broker:
        pass
    (line,) = [line for line in broker.log.splitlines() if "schema provider" in line]
    assert "plugin second" in line and "there is a schema provider already, of plugin first" in line


def test_two_schema_providers_of_one_plugin_are_refused(tmp_path: Path) -> None:
    (tmp_path / "both.py").write_text(PROVIDERS.format(name="both", count=2))
    with running_broker(tmp_path / "broker", {"lc.plugins.path": str(tmp_path)}) as broker:
        pass
    (line,) = [line for line in broker.log.splitlines() if "two schema providers" in line]
    assert "plugin both" in line
