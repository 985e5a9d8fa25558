"""The hooks that the SDK documents are those that the host calls."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import leafcuttr
import leafcuttr_sdk
from leafcuttr.plugins import registration
from leafcuttr_sdk import hooks
from support.broker_process import clean_environ, running_broker


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
        command = [sys.executable, "-m", "leafcuttr", *words]
        subprocess.run(command, env=environ, check=True, capture_output=True, timeout=120)
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
