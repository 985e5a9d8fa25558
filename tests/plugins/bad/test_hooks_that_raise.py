"""Every hook with every way to do badly, all in one start of a real `leafcuttr serve`: one line for each, and the
broker starts with the plugin that does well."""

from __future__ import annotations

import inspect
import json
import urllib.request
from collections.abc import Iterator
from typing import Final

import pytest

from leafcuttr.plugins.registration import CLI_COMMANDS, RECORD_FORMATS, RETURNS
from leafcuttr_sdk import hooks
from support.bad_plugins import FAULTS, HOOK, Fault, write
from support.broker_process import BrokerProcess, running_broker

HOOKS: Final = sorted(set(RETURNS) - {CLI_COMMANDS, RECORD_FORMATS})
"""Those that a broker calls."""
WELL: Final = """
from leafcuttr_sdk import *

PLUGIN = Plugin("well", 1, "Does well.")

def leafcuttr_register_health_checks(broker):
    return [HealthCheck("look", "is well", lambda: Finding(True))]
"""


def name_of(hook: str, fault: str) -> str:
    return f"{hook.removeprefix('leafcuttr_register_').replace('_', '-')}-{fault}"


LIMIT_S: Final = 0.2
HANG: Final = Fault("import threading; threading.Event().wait()", "")

ODD: Final = {
    "needs": (
        "def leafcuttr_register_services(): return [ServiceSpec('odd', print, 'store')]",
        "leafcuttr_register_services: a ServiceSpec has 'store' as its needs; it has to be a tuple of names",
    ),
    "metric": (
        "def leafcuttr_register_metrics(broker): return [MetricReading('size', list)]",
        "leafcuttr_register_metrics: a MetricReading has 'size' as its metric; `counter` and `gauge` make one",
    ),
    "type-of-a-setting": (
        "def leafcuttr_register_settings(): return [Setting('lc.plugin.type-of-a-setting.x', 'int', 1, 'X.')]",
        "its setting lc.plugin.type-of-a-setting.x: the type is a str; it has to be a leafcuttr_sdk.Type",
    ),
    "help-of-a-setting": (
        "def leafcuttr_register_settings(): return [Setting('lc.plugin.help-of-a-setting.x', Type.INT, 1, None)]",
        "its setting lc.plugin.help-of-a-setting.x: the help, or the unit, is None; it has to be a text",
    ),
    "choices-of-a-setting": (
        "def leafcuttr_register_settings():\n"
        "    return [Setting('lc.plugin.choices-of-a-setting.x', Type.INT, 1, 'X.', choices=5)]",
        "its setting lc.plugin.choices-of-a-setting.x: the choices are an int; they have to be a tuple of texts",
    ),
}
"""Objects with a field of another type, and the line."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    folder = tmp_path_factory.mktemp("hooks")
    for hook in HOOKS:
        argument = ", ".join(inspect.signature(getattr(hooks, hook)).parameters)
        for fault in FAULTS:
            write(folder / "plugins", name_of(hook, fault), fault, HOOK.format(hook=hook, argument=argument))
        write(folder / "plugins", name_of(hook, "import"), "exit", "bad()")
        source = (
            f"PLUGIN = PLUGIN._replace(hook_limit_s={LIMIT_S})\n{HOOK.format(hook=hook, argument=argument)}"
        )
        write(folder / "plugins", name_of(hook, "hang"), HANG, source)
    for name, (source, _) in ODD.items():
        write(folder / "plugins", name, "type", source)
    (folder / "plugins" / "well.py").write_text(WELL)
    with running_broker(folder, {"lc.plugins.path": str(folder / "plugins")}) as broker:
        yield broker


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("hook", HOOKS)
def test_a_bad_hook_is_one_line_and_leaves_its_plugin_out(
    broker: BrokerProcess, hook: str, fault: str
) -> None:
    name = name_of(hook, fault)
    (line,) = [line for line in broker.log.splitlines() if f"plugin {name} (" in line]
    assert hook in line and FAULTS[fault].said in line and len(line) < 2000


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_that_hangs_is_named_and_leaves_its_plugin_out(broker: BrokerProcess, hook: str) -> None:
    name = name_of(hook, "hang")
    (line,) = [line for line in broker.log.splitlines() if f"plugin {name} (" in line]
    assert f"{hook} has taken longer than {LIMIT_S} s: it is at " in line
    assert f"{name}.py, line 10, in " in line and len(line) < 2000


@pytest.mark.parametrize("name", ODD)
def test_an_object_with_a_field_of_another_type_leaves_its_plugin_out(
    broker: BrokerProcess, name: str
) -> None:
    (line,) = [line for line in broker.log.splitlines() if f"plugin {name} (" in line]
    assert ODD[name][1] in line


def test_the_others_are_there(broker: BrokerProcess) -> None:
    with urllib.request.urlopen(f"http://{broker.about['metrics']}/health", timeout=60) as answer:
        checks = json.loads(answer.read())["checks"]
    assert checks["well:look"]["ok"]
    assert broker.log.count("cannot be imported: SystemExit: 3 (") == len(HOOKS)
    assert "Traceback" not in broker.log
