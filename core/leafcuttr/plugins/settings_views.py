"""What a plugin sees of settings: `leafcuttr_sdk.Settings` over its own ones, of the broker and of one topic.

A name that the plugin has not declared is a KeyError, also where the broker or another plugin has it. Where values
come from, and what they are checked with, is `leafcuttr.config`'s business.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from leafcuttr.config.catalog import Section
from leafcuttr.config.setting import ConfigKey, Value
from leafcuttr.config.settings import Changed
from leafcuttr.config.settings import Settings as Core
from leafcuttr.config.topic import TopicConfig
from leafcuttr.runtime import plugin_parts
from leafcuttr.runtime.plugin_parts import Failures, Part, PartError
from leafcuttr_sdk.settings import Values

if TYPE_CHECKING:
    import leafcuttr_sdk

_NOT_HERE: Final = Section("")


def plugin_settings(
    core: Core, plugin: str, ends: list[Callable[[], None]] | None = None
) -> "leafcuttr_sdk.Settings":
    """The settings of the broker that this plugin has declared, as they are at any time. What ends each `on_change` is
    also put into `ends`: for the caller that knows when the one that gave it is no longer there."""
    return PluginSettings(core, _section(core, plugin), ends)


def topic_settings(core: Core, plugin: str, config: TopicConfig) -> "leafcuttr_sdk.Settings":
    """The settings of a topic that this plugin has declared, as they are in `config`, which never changes."""
    return TopicSettings(config, _section(core, plugin))


def _section(core: Core, plugin: str) -> Section:
    return next((one for one in core.catalog.sections if one.plugin == plugin), _NOT_HERE)


class _Own(Mapping[str, Value]):
    """The values, as they are at any time, of what one plugin has declared. KeyError for everything else."""

    def __init__(
        self, plugin: str, declared: Iterable[ConfigKey], values: Callable[[], Mapping[str, Value]]
    ) -> None:
        self._plugin = plugin
        self._names = frozenset(setting.name for setting in declared if not setting.is_family)
        self._current = values

    def __getitem__(self, name: str) -> Value:
        if name not in self._names:
            raise KeyError(f"{name} is no setting that the plugin {self._plugin} has declared here")
        return self._current()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _View(Values):
    """What both views share: nothing but what the plugin has declared is there."""

    def __init__(
        self, plugin: str, declared: Iterable[ConfigKey], values: Callable[[], Mapping[str, Value]]
    ) -> None:
        self._plugin = plugin
        self._declared = {setting.name: setting for setting in declared}
        self._values = _Own(plugin, self._declared.values(), values)

    def family(self, name: str) -> Mapping[str, Value]:
        setting = self._declared.get(name)
        if setting is None or not setting.is_family:
            raise KeyError(f"{name} is no family that the plugin {self._plugin} has declared here")
        return self._members(setting)

    def _members(self, family: ConfigKey) -> Mapping[str, Value]:
        raise NotImplementedError


class PluginSettings(_View):
    """A plugin's settings of the broker."""

    def __init__(self, core: Core, section: Section, ends: list[Callable[[], None]] | None = None) -> None:
        super().__init__(section.plugin, section.broker, lambda: core.values)
        self._core = core
        self._ends = ends

    def _members(self, family: ConfigKey) -> Mapping[str, Value]:
        return self._core.family(family.name)

    def on_change(self, call: Changed) -> Callable[[], None]:
        """See `leafcuttr_sdk.Settings`. One that raises is logged; neither the change nor others are harmed."""
        catalog, own = self._core.catalog, self._declared
        part, tell = Part(self._plugin, "callback on changed settings"), Failures()

        def told(names: frozenset[str]) -> None:
            known = (n for n in names if catalog.broker_setting(n) is not None)
            concerned = frozenset(n for n in known if n in own or catalog.owner_of(n) == self._plugin)
            if not concerned:
                return
            try:
                plugin_parts.call(part, call, concerned)
            except PartError as failed:
                tell(failed if self._tells_nothing(failed.words) else PartError(part, failed.kind))

        end = self._core.on_change(told)
        if self._ends is not None:
            self._ends.append(end)
        return end

    def _tells_nothing(self, words: str) -> bool:
        """Whether the words of an exception quote no secret: those of `int("open sesame")` would."""
        values = self._core.values
        secrets = (
            values.get(name)
            for name in values
            if (setting := self._core.catalog.broker_setting(name)) and setting.sensitive
        )
        return not any(one and str(one) in words for one in secrets)


class TopicSettings(_View):
    """A plugin's settings of one topic at one time."""

    def __init__(self, config: TopicConfig, section: Section) -> None:
        super().__init__(section.plugin, section.topic, lambda: config.extra)
        self._config = config

    def _members(self, family: ConfigKey) -> Mapping[str, Value]:
        prefix, others = family.prefix, [s.prefix for s in self._declared.values() if s.is_family]
        return {
            name.removeprefix(prefix): value
            for name, value in self._config.extra.items()
            if name.startswith(prefix)
            and name not in self._declared
            and max((p for p in others if name.startswith(p)), key=len) == prefix
        }

    def on_change(self, call: Changed) -> Callable[[], None]:
        """These never change: what works for a topic is made again when its settings change."""
        return _nothing


def _nothing() -> None:
    pass
