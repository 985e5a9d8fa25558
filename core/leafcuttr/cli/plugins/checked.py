"""What is checked of one plugin: itself, then everything that its hooks return, each against its contract.

The contracts are checked by `leafcuttr_sdk.testing`; this module checks only the plugin itself.
"""

import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import click

from leafcuttr.config.load import settings_of
from leafcuttr.errors import PluginError
from leafcuttr_sdk.filters import TopicContext
from leafcuttr_sdk.testing.context import HandClock
from leafcuttr_sdk.testing.format_checks import format_report
from leafcuttr_sdk.testing.record_checks import filter_report, validator_report
from leafcuttr_sdk.testing.report import Check, Report
from leafcuttr_sdk.testing.service_checks import other_plugins, service_report

_FOUND: Final = "it is a plugin for this version, and its hooks and settings are right"
_LOOK_S: Final = 60.0
_LIGHT: Final = """
import importlib.util, runpy, sys
sys.path[:0] = {path!r}
import leafcuttr_sdk.hooks
before = set(sys.modules)
{statement}
new = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(new - set(sys.stdlib_module_names) - {{"leafcuttr_sdk", {top!r}}}))
"""


def report_of_failure(name: str, why: str) -> Report:
    """Of a plugin that cannot be loaded at all."""
    return Report("plugin", name, (Check("found", _FOUND, (why,)),))


class CheckedPlugin:
    """A plugin as it is checked: with these settings of a broker, and these of a topic; `path` is where its modules are
    if they are not installed. Raises ConfigError, InvalidConfig: a setting is not right."""

    def __init__(
        self,
        module: ModuleType,
        name: str,
        broker: Mapping[str, str],
        topic: Mapping[str, str],
        path: list[str],
    ) -> None:
        from leafcuttr.config.settings import Given
        from leafcuttr.config.topic import topic_config
        from leafcuttr.plugins.catalogue import Finder

        self._module = module
        self._texts = dict(broker)
        self._path = path
        alone = {"lc.plugins.disabled": ",".join(other_plugins(name)), **broker}
        finder = Finder([module])
        self._settings, _ = settings_of([(key, Given(text, "-o")) for key, text in alone.items()], finder)
        finder.plugins.settle(self._settings)
        self._topic = topic_config(self._settings, topic)
        loaded = finder.plugins.get(name)
        assert loaded is not None
        self._loaded = loaded

    def reports(self) -> Iterator[Report]:
        """Of the plugin itself, and if that is fine of everything that its hooks return, and of all of it at once."""
        itself = self._itself()
        yield itself
        hooks = self._loaded.hooks
        if hooks is None or itself.checks[0].problems:
            return
        from leafcuttr.plugins import registration as hook

        try:
            for filter in hooks.call(hook.RECORD_FILTERS):
                yield filter_report(filter, self._context())
            for validator in hooks.call(hook.PRODUCE_VALIDATORS):
                yield validator_report(validator, self._context())
            for format in hooks.call(hook.RECORD_FORMATS):
                yield format_report(format)
            for command in hooks.call(hook.CLI_COMMANDS):
                yield _command(command)
            for service in hooks.call(hook.SERVICES):
                yield service_report(service, self._module, self._texts)
        except PluginError as error:
            yield report_of_failure(self._loaded.name, str(error))
            return
        yield self._in_a_broker()

    def _context(self) -> TopicContext:
        """As the broker makes it, with a clock that stands still."""
        import logging

        from leafcuttr.plugins.settings_views import plugin_settings, topic_settings

        return TopicContext(
            "test",
            topic_settings(self._settings, self._loaded.name, self._topic),
            plugin_settings(self._settings, self._loaded.name),
            HandClock(),
            logging.getLogger(f"leafcuttr.plugin.{self._loaded.name}"),
        )

    def _itself(self) -> Report:
        state = self._loaded.state.value
        sound = (self._loaded.why,) if state in ("failed", "unavailable", "disabled") else ()
        checks = [Check("found", _FOUND, sound)]
        if self._loaded.plugin is not None:
            checks.append(
                Check("light", "its module imports the SDK and the standard library only", self._heavy())
            )
            checks.append(Check("switch", "what enables it is a boolean setting of its own", self._switch()))
        return Report("plugin", self._loaded.name, tuple(checks))

    def _heavy(self) -> tuple[str, ...]:
        name, file = self._module.__name__, self._module.__file__
        in_a_file = name.startswith("leafcuttr_plugin_")
        statement = f"runpy.run_path({file!r})" if in_a_file else f"import {name}"
        program = _LIGHT.format(path=self._path, statement=statement, top=name.partition(".")[0])
        done = subprocess.run(
            [sys.executable, "-c", program], check=False, capture_output=True, text=True, timeout=_LOOK_S
        )
        if done.returncode:
            return (f"it cannot be imported by itself: {done.stderr.strip().splitlines()[-1]}",)
        return tuple(
            f"to import it imports {package}, at every start of a broker, also while the plugin is off: import it in "
            "the function that needs it"
            for package in done.stdout.split()
        )

    def _switch(self) -> tuple[str, ...]:
        assert self._loaded.plugin is not None
        name = self._loaded.plugin.enabled_by
        if name is None or any(
            one.name == name and one.type.value == "boolean" for one in self._loaded.settings
        ):
            return ()
        return (f"enabled_by is {name}, which leafcuttr_register_settings does not declare as a boolean",)

    def _in_a_broker(self) -> Report:
        """With all that it brings at once."""
        from leafcuttr.errors import ConfigError, StartError
        from leafcuttr_sdk.testing.broker import running_broker

        assert self._loaded.plugin is not None
        switch = self._loaded.plugin.enabled_by
        settings: dict[str, Any] = {
            "lc.plugins.strict": True,
            "lc.plugins.disabled": other_plugins(self._loaded.name),
            **({switch: True} if switch else {}),
            **self._texts,
        }
        starts: list[str] = []
        answers: list[str] = []
        try:
            with (
                tempfile.TemporaryDirectory(prefix="leafcuttr-check-") as folder,
                running_broker(Path(folder), settings, [self._module]) as broker,
            ):
                for path in ("/metrics", "/health", *broker.call(self._routes)):
                    answers += _get(broker.admin_url, path)
        except (ConfigError, StartError, ExceptionGroup) as error:
            starts.append(f"the broker does not start with it: {error}")
        return Report(
            "broker",
            self._loaded.name,
            (
                Check("starts", "a broker starts with all of it, and stops", tuple(starts)),
                Check("admin port", "metrics, health and its own paths are answered", tuple(answers)),
            ),
        )

    async def _routes(self, broker: Any) -> list[str]:
        core = broker._core
        return [
            f"/plugins/{plugin}{route.path}"
            for plugin, route in core.plugged.routes
            if plugin == self._loaded.name
        ]


def _get(url: str, path: str) -> list[str]:
    """What is wrong with the answer."""
    try:
        with urllib.request.urlopen(url + path, timeout=_LOOK_S) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        if error.code == 503 and path == "/health":
            return [
                f"/health says that the broker is not ready: {error.read().decode(errors='replace')[:500]}"
            ]
        if error.code >= 500:
            return [f"{path} answers {error.code}: {error.read().decode(errors='replace')[:200]}"]
    except OSError as error:
        return [f"{path} is not answered: {error}"]
    return []


def _command(command: Any) -> Report:
    problems: list[str] = []
    about: list[str] = []
    try:
        made: object = command.load()
    except Exception as error:
        problems.append(f"load() raised {type(error).__name__}: {error}")
    else:
        if not isinstance(made, click.Command):
            problems.append(f"load() returned a {type(made).__name__}, not a click.Command")
        elif not made.help:
            about.append("it has no help: write a docstring; --help shows it")
    if not command.summary or command.summary[0].isupper() or command.summary.endswith("."):
        about.append(f"its summary is {command.summary!r}: a few words in lower case, without a full stop")
    return Report(
        "command",
        command.name,
        (
            Check("loads", "it loads, and is a command of click", tuple(problems)),
            Check("help", "it says what it is for", tuple(about)),
        ),
    )
