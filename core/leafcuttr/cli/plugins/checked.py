"""What is checked of one plugin: itself, then everything that its hooks return, each against its contract.

The contracts are checked by `leafcuttr_sdk.testing`; this module checks only the plugin itself.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, Final

from leafcuttr.cli.plugins.light import heavy_imports
from leafcuttr.config.load import settings_of
from leafcuttr.errors import PluginError
from leafcuttr_sdk.filters import TopicContext
from leafcuttr_sdk.testing.broker import text_of
from leafcuttr_sdk.testing.command_checks import command_report
from leafcuttr_sdk.testing.context import HandClock
from leafcuttr_sdk.testing.format_checks import format_report
from leafcuttr_sdk.testing.installed import settings_for
from leafcuttr_sdk.testing.record_checks import filter_report, validator_report
from leafcuttr_sdk.testing.report import Check, Report
from leafcuttr_sdk.testing.schema_format_checks import schema_format_report
from leafcuttr_sdk.testing.service_checks import service_report

_FOUND: Final = "it is a plugin for this version, and its hooks and settings are right"

_TEXTS: Final = ("string", "list")


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
        alone = {key: text_of(value) for key, value in settings_for([module], broker).items()} | self._texts
        finder = Finder([module])
        self._settings, _ = settings_of([(key, Given(text, "-o")) for key, text in alone.items()], finder)
        finder.plugins.settle(self._settings)
        self._topic = topic_config(self._settings, topic)
        loaded = finder.plugins.get(name)
        assert loaded is not None
        self._loaded = loaded

    @property
    def switch_is_text(self) -> bool:
        """Whether what enables it is no boolean, so that nobody but its author knows a value."""
        name = self._loaded.plugin.enabled_by if self._loaded.plugin is not None else None
        return any(one.name == name and one.type.value in _TEXTS for one in self._loaded.settings)

    def reports(self) -> Iterator[Report]:
        """Of the plugin itself, and if that is fine of everything that its hooks return, and of all of it at once."""
        itself = self._itself()
        yield itself
        hooks = self._loaded.hooks
        if hooks is None or itself.checks[0].problems:
            return
        from leafcuttr.plugins import registration as hook
        from leafcuttr.plugins.implied import record_filters_of

        try:
            for filter in record_filters_of(self._loaded, self._settings):
                yield filter_report(filter, self._context())
            for validator in hooks.call(hook.PRODUCE_VALIDATORS):
                yield validator_report(validator, self._context())
            for format in hooks.call(hook.RECORD_FORMATS):
                yield format_report(format)
            for schemas in hooks.call(hook.SCHEMA_FORMATS):
                yield schema_format_report(schemas)
            for command in hooks.call(hook.CLI_COMMANDS):
                yield command_report(command, plugin=self._module, brokers=self._broker_for_commands)
            for service in hooks.call(hook.SERVICES):
                yield service_report(service, self._module, self._texts)
        except PluginError as error:
            yield report_of_failure(self._loaded.name, str(error))
            return
        yield from self._in_a_broker()

    def _context(self) -> TopicContext:
        """As the broker makes it, with a clock that stands still."""
        import logging

        from leafcuttr.plugins.settings_views import plugin_settings, topic_settings
        from leafcuttr_sdk.testing.read_only import FixedBroker

        name, clock = self._loaded.name, HandClock()
        settings, logger = (
            plugin_settings(self._settings, name),
            logging.getLogger(f"leafcuttr.plugin.{name}"),
        )
        of_topic = topic_settings(self._settings, name, self._topic)
        broker = FixedBroker("test", settings, clock, logger, name)
        return TopicContext("test", of_topic, settings, clock, logger, broker)

    def _itself(self) -> Report:
        state = self._loaded.state.value
        sound = (self._loaded.why,) if state in ("failed", "unavailable", "disabled") else ()
        checks = [Check("found", _FOUND, sound)]
        if self._loaded.plugin is not None:
            checks.append(
                Check(
                    "light",
                    "its module imports the SDK, the standard library and trio only",
                    heavy_imports(self._module, self._path),
                )
            )
            checks.append(
                Check("switch", "what enables it is a boolean or a text setting of its own", self._switch())
            )
        return Report("plugin", self._loaded.name, tuple(checks))

    def _switch(self) -> tuple[str, ...]:
        assert self._loaded.plugin is not None
        name = self._loaded.plugin.enabled_by
        kinds = ("boolean", *_TEXTS)
        if name is None or any(one.name == name and one.type.value in kinds for one in self._loaded.settings):
            return ()
        return (
            f"enabled_by is {name}, which leafcuttr_register_settings does not declare as a boolean or a text",
        )

    def _in_a_broker(self) -> Iterator[Report]:
        """With all that it brings at once."""
        from leafcuttr.cli.plugins.in_broker import reports_in_a_broker

        return reports_in_a_broker(self._loaded.name, self._module, self._settings_of_a_broker)

    def _broker_for_commands(self) -> AbstractContextManager[Mapping[str, str] | None]:
        from leafcuttr.cli.plugins.in_broker import broker_for_commands

        return broker_for_commands(self._module, self._settings_of_a_broker)

    @property
    def _settings_of_a_broker(self) -> dict[str, Any]:
        assert self._loaded.plugin is not None
        from leafcuttr.plugins.switch import is_family

        switch = self._loaded.plugin.enabled_by
        return {
            "lc.plugins.strict": True,
            **({switch: True} if switch and not is_family(switch) else {}),
            **self._texts,
        }
