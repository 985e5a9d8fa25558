"""The settings of the plugins that were found, joined to the core's: what `config.load` needs between its two steps.

A plugin whose settings cannot be had (a name that is taken, a default that is not allowed) has failed, with its line.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from leafcuttr.config.catalog import CORE, Catalog
from leafcuttr.config.declared import section
from leafcuttr.config.findings import ConfigFinding, Level
from leafcuttr.config.load import examine
from leafcuttr.config.setting import render
from leafcuttr.config.settings import Settings
from leafcuttr.errors import ConfigError
from leafcuttr.plugins.finding import DISABLED, STRICT, Choice, find_plugins
from leafcuttr.plugins.loaded import PluginState
from leafcuttr.plugins.table import Plugins
from leafcuttr.plugins.together import contradictions


class Finder:
    """A `Find` for `load_settings` and `examine`: `plugins` are those that it found when it was last called, and those
    whose modules it was given."""

    def __init__(self, given: Sequence[ModuleType] = ()) -> None:
        self._given = given
        self.plugins = Plugins()

    def __call__(self, settings: Settings) -> Catalog:
        """Raises StartError for a folder that cannot be listed."""
        self.plugins = find_plugins(Choice.of(settings), self._given)
        return catalog_of(self.plugins)


def catalog_of(plugins: Plugins) -> Catalog:
    """The core's settings and those of all plugins that are sound, whether or not they are switched on."""
    catalog = CORE
    for one in plugins.all:
        if one.plugin is not None and one.state is not PluginState.FAILED:
            try:
                rows = section(one.plugin, one.settings, one.topic_settings, bundled=one.origin.bundled)
                catalog = catalog.with_plugin(rows)
                continue
            except ConfigError as error:
                one.state, one.why = PluginState.FAILED, str(error)
        verb = "is left out" if one.state is PluginState.DISABLED else "failed"
        catalog = catalog.without_plugin(one.name, f"it {verb}: {one.why}")
    return catalog


def examine_all(
    file: Path | None, environ: Mapping[str, str], overrides: Sequence[str] = ()
) -> tuple[Settings, list[ConfigFinding], Plugins]:
    """As `config.load.examine`, with what there is to say of plugins, errors first; and the plugins, each in the state
    that it would have in a broker with these settings. Raises ConfigError as that, and StartError as `Finder`.
    """
    finder = Finder()
    settings, findings = examine(file, environ, overrides, finder)
    finder.plugins.settle(settings)
    findings += _about_plugins(finder.plugins, settings)
    wrong = {settings.catalog.owner_of(one.key) for one in findings if one.level is Level.ERROR}
    findings += contradictions(finder.plugins.enabled, settings, wrong)
    return settings, sorted(findings, key=lambda one: list(Level).index(one.level)), finder.plugins


def _about_plugins(plugins: Plugins, settings: Settings) -> Iterator[ConfigFinding]:
    """What `Plugins.start` would stop at or say."""
    for remark in plugins.remarks:
        yield ConfigFinding(Level.WARNING, DISABLED, None, settings.where(DISABLED), remark)
    for trouble in plugins.troubles(settings):
        level = Level.ERROR if trouble.stops else Level.WARNING
        if trouble.switch is not None:
            value = render(settings.value(trouble.switch))
            yield ConfigFinding(level, trouble.switch, value, settings.where(trouble.switch), trouble.line)
        else:
            where = str(trouble.plugin.origin) if trouble.plugin else ""
            yield ConfigFinding(level, STRICT, None, where, trouble.line)
    for one in plugins.all:
        if one.state is not PluginState.OFF or one.plugin is None:
            continue
        owned = (name for name in settings.given_names if settings.catalog.owner_of(name) == one.name)
        idle = [name for name in owned if name != one.plugin.enabled_by]
        if idle:
            verb = "has" if len(idle) == 1 else "have"
            line = f"{', '.join(idle)} {verb} no effect: the plugin {one.name} is off; {one.why}"
            yield ConfigFinding(Level.NOTE, idle[0], None, settings.where(idle[0]), line)
