"""The reference page of settings, written from the tables, those of plugins among them.

`leafcuttr.plugins.settings_page` finds the plugins and writes the page; no other module imports this.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from leafcuttr.config.catalog import (
    ALIASES,
    GROUP,
    OF_LISTENERS,
    OF_MECHANISMS,
    OF_TOPICS,
    THEMES,
    TOPIC,
    Section,
)
from leafcuttr.config.setting import DOUBLE_MAX, LONG_MAX, ConfigKey, ConfigType, Effect, render

_HEAD: Final = """\
# Settings

<!-- Written by `python -m leafcuttr.plugins.settings_page`; a test fails when this page and the tables differ. -->

The names, types, defaults and ranges are those of Apache Kafka 4.3. They come from a `server.properties` file, from
the environment (`KAFKA_LOG_RETENTION_MS` is `log.retention.ms`: `_` is `.`, `__` is `_`, `___` is `-`) and from
`-o key=value`; the later of these wins. A value that is not allowed stops the start with one line. An unknown
name prints a warning with the nearest known one.

*Changes while running* says where Kafka's own tools can change a setting: `yes` for one broker or for all,
`this broker` for one broker only, `no` at the start only. Such a change wins over what the broker was started with,
one for this broker over one for all, and is kept through a restart. Limits of one listener are
`listener.name.<name in lower case>.` with OF_LISTENERS. Those of one mechanism of it have the mechanism's name before
theirs, `listener.name.<name>.scram-sha-512.connections.max.reauth.ms`: OF_MECHANISMS.

A value may be elsewhere: see [values that are elsewhere](../how-to/settings.md#values-that-are-elsewhere).

*Effect* says what a value does: `honoured`, `accepted without effect`, or `refused`, which means that any value
but the default stops the start (for a topic: is refused).

A name that ends with a word in angle brackets is that of a family: any text may stand in that place. In a variable of
the environment this text may be in mixed case and have any character but `=` (`KAFKA_LC_FILTERS_Orders`); all in upper
case it is taken for lower case.

The plugins that come with LeafCuttr have their settings at the end, whether or not they are switched on; [those of
other plugins](../how-to/plugin-settings.md) are in `leafcuttr config describe`.

Where a default is not Kafka's, the text says so. `leafcuttr config` prints, checks and compares settings: see
[Check and change settings](../how-to/settings.md).
"""


class OfPlugin(NamedTuple):
    """A plugin with its settings, and the command that brings the packages it needs; None where it needs none."""

    section: Section
    summary: str
    remedy: str | None


def page(plugins: Sequence[OfPlugin]) -> str:
    """The whole page, as Markdown."""
    return "\n".join(_lines(plugins)) + "\n"


def _lines(plugins: Sequence[OfPlugin]) -> Iterator[str]:
    head = _HEAD.replace("OF_LISTENERS", " or ".join(f"`{name}`" for name in OF_LISTENERS))
    yield head.replace("OF_MECHANISMS", ", ".join(f"`{name}`" for name in OF_MECHANISMS))
    yield "## Topics\n"
    yield (
        "Every topic may override these; without an override it has the value of the broker setting that is named "
        "with it, the first that has one.\n"
    )
    yield from _table(TOPIC.values(), of_topic=True)
    for theme, settings in THEMES:
        yield f"## {theme}\n"
        yield from _table(settings, of_topic=False)
    yield "## Groups of the newer protocols\n"
    yield "Shown for every group, at the broker's value; they cannot be changed yet.\n"
    yield from _table(GROUP.values(), of_topic=True)
    for plugin in plugins:
        yield from _of_plugin(plugin)
    yield "## Other names\n"
    yield "These names are taken for the ones beside them.\n"
    yield "| name | stands for |"
    yield "|---|---|"
    for alias, name in ALIASES.items():
        yield f"| `{alias}` | `{name}` |"


def _of_plugin(plugin: OfPlugin) -> Iterator[str]:
    section = plugin.section
    yield f"## Plugin {section.plugin}\n"
    is_boolean = any(
        row.name == section.enabled_by and row.type is ConfigType.BOOLEAN for row in section.broker
    )
    switch = f"{section.enabled_by}={'true' if is_boolean else '...'}"
    needs = f"`{plugin.remedy}`" if plugin.remedy else "no other packages"
    yield f"{plugin.summary}. `{switch}` switches it on; it needs {needs}.\n"
    if section.broker:
        yield from _table(section.broker, of_topic=False)
    if section.topic:
        yield "For topics:\n"
        yield from _table(section.topic, of_topic=True)


def _table(settings: Iterable[ConfigKey], *, of_topic: bool) -> Iterator[str]:
    last = "broker setting" if of_topic else "changes while running"
    yield f"| setting | type | default | allowed | {last} | what it does | effect |"
    yield "|---|---|---|---|---|---|---|"
    for setting in settings:
        where = _synonyms(setting) if of_topic else _changes(setting)
        cells = (_name(setting), _type(setting), _default(setting), _allowed(setting), where)
        yield "| " + " | ".join((*cells, _cell(setting.help), _effect(setting))) + " |"
    yield ""


def _name(setting: ConfigKey) -> str:
    return f"`{setting.name}`"


def _type(setting: ConfigKey) -> str:
    kind = setting.type.name.lower()
    return f"{kind}, {setting.unit}" if setting.unit else kind


def _default(setting: ConfigKey) -> str:
    if setting.default is None:
        return "none"
    if setting.default in (LONG_MAX, DOUBLE_MAX) and setting.default is not True:
        return "no limit"
    return f"`{render(setting.default)}`" if setting.default not in ("", ()) else "empty"


def _allowed(setting: ConfigKey) -> str:
    numbers = (ConfigType.INT, ConfigType.SHORT, ConfigType.LONG, ConfigType.DOUBLE)
    if setting.type is ConfigType.BOOLEAN or (setting.type in numbers and setting.minimum is None):
        return ""
    return _cell(setting.allowed())


def _changes(setting: ConfigKey) -> str:
    if not setting.dynamic:
        return "no"
    return "this broker" if setting.per_broker else "yes"


def _synonyms(setting: ConfigKey) -> str:
    names = [name for name, _ in setting.synonyms]
    if setting.name in OF_TOPICS:
        names.append(OF_TOPICS[setting.name])
    return ", ".join(f"`{name}`" for name in names)


def _effect(setting: ConfigKey) -> str:
    if setting.effect is Effect.HONOURED:
        return "honoured"
    return f"{setting.effect.value}: {_cell(setting.reason).rstrip('.')}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
