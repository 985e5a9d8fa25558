"""The rows that `leafcuttr config` prints: settings with their values, and what differs from the defaults.

A value comes from a file or from a broker (by DescribeConfigs); both are compared with the tables of `config`. What is
printed where, and the exit status, is decided in `command`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from leafcuttr.config.catalog import (
    ALIASES,
    BROKER,
    GROUP,
    KAFKA_DEFAULTS,
    THEMES,
    TOPIC,
    Catalog,
)
from leafcuttr.config.setting import BadValueError, ConfigKey, Effect, render
from leafcuttr.config.settings import Settings, Source

_CORE: Final = {
    "broker": [setting for _, table in THEMES for setting in table],
    "topic": list(TOPIC.values()),
    "group": list(GROUP.values()),
}
_HIDDEN: Final = "(hidden)"
# A longer value is cut in a table; one setting alone and --json show all of it.
_WIDEST: Final = 36
_WORDS: Final = {
    Source.DYNAMIC_TOPIC_CONFIG: "topic",
    Source.DYNAMIC_BROKER_CONFIG: "changed for this broker",
    Source.DYNAMIC_DEFAULT_BROKER_CONFIG: "changed for all brokers",
    Source.STATIC_BROKER_CONFIG: "given at start",
    Source.DEFAULT_CONFIG: "default",
    Source.GROUP_CONFIG: "group",
}


class SettingRow(NamedTuple):
    """A setting with its value; `source` is a place in a file, a variable, -o, or `default`. `plugin` is the one whose
    setting it is, None for ours.
    """

    setting: ConfigKey
    value: str | None
    source: str
    plugin: str | None = None

    @property
    def json(self) -> dict[str, object]:
        setting = self.setting
        return {
            "setting": setting.name,
            "plugin": self.plugin,
            "type": setting.type.name.lower(),
            "unit": setting.unit or None,
            "default": render(setting.default),
            "kafka_default": kafka_default(setting),
            "value": None if setting.sensitive else self.value,
            "source": self.source,
            "allowed": setting.allowed() or None,
            "dynamic": setting.dynamic,
            "per_broker": setting.per_broker,
            "synonyms": [name for name, _ in setting.synonyms],
            "effect": setting.effect.value,
            "reason": setting.reason or None,
            "help": setting.help,
        }


class Deviation(NamedTuple):
    """A value that is not LeafCuttr's default or not Kafka's; a default that does not exist is None."""

    setting: str
    value: str | None
    source: str
    leafcuttr_default: str | None
    kafka_default: str | None


class SettingValue(NamedTuple):
    """A value as it was found."""

    value: str | None
    source: str
    sensitive: bool = False


def kafka_default(setting: ConfigKey) -> str | None:
    """Kafka's own default, as text; None where it has none, and for what Kafka does not know."""
    if not _is_kafkas(setting.name):
        return None
    if setting.name in KAFKA_DEFAULTS and BROKER.get(setting.name) is setting:
        return KAFKA_DEFAULTS[setting.name]
    return render(setting.default)


def _is_kafkas(name: str) -> bool:
    return (name in BROKER or name in TOPIC or name in GROUP) and not name.startswith("lc.")


def select(
    settings: Settings, names: Sequence[str], of: str, *, dynamic: bool, honoured: bool
) -> list[SettingRow]:
    """The settings whose names match, in the order of the reference, the plugins' after ours; all if there are no
    names. After a family come its members that are given.
    """
    wanted = [ALIASES.get(name, name) for name in names]
    return [
        _row(settings, setting, of)._replace(plugin=plugin)
        for plugin, setting in _every(settings, of)
        if (not wanted or any(fnmatchcase(setting.name, pattern) for pattern in wanted))
        and (setting.dynamic or not dynamic)
        and (setting.effect is Effect.HONOURED or not honoured)
    ]


def _every(settings: Settings, of: str) -> Iterator[tuple[str | None, ConfigKey]]:
    tables: list[tuple[str | None, Iterable[ConfigKey]]] = [(None, _CORE[of])]
    if of != "group":
        tables += [
            (one.plugin, one.broker if of == "broker" else one.topic) for one in settings.catalog.sections
        ]
    for plugin, table in tables:
        for setting in table:
            yield plugin, setting
            if setting.is_family and of == "broker":
                members = sorted(settings.catalog.members(setting.name, settings.given_names))
                yield from ((plugin, setting._replace(name=name)) for name in members)


def _row(settings: Settings, setting: ConfigKey, of: str) -> SettingRow:
    if setting.is_family:
        return SettingRow(setting, None, "default")
    if of == "broker":
        return _broker_row(settings, setting)
    if of == "topic":
        value = settings.topic_default(setting.name)
    else:
        value = settings.value(setting.synonyms[0][0]) if setting.synonyms else setting.default
    # A topic without settings of its own: whatever gives the broker's value gives this one.
    given = next((name for name, _ in setting.synonyms if settings.value(name) is not None), None)
    where = settings.where(given) if given else "default"
    return SettingRow(setting, render(value), "default" if where == "default" else f"{given} ({where})")


def _broker_row(settings: Settings, setting: ConfigKey) -> SettingRow:
    value, where = settings.value(setting.name), settings.where(setting.name)
    if value is None:
        for name, _ in setting.synonyms:
            if settings.value(name) is not None:
                where = settings.where(name)
                source = name if where == "default" else f"{name} ({where})"
                return SettingRow(setting, render(settings.resolve(setting.name)), source)
    return SettingRow(setting, render(value), where)


def settings_table(rows: Sequence[SettingRow]) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Columns and cells for people."""
    columns = ("SETTING", "TYPE", "DEFAULT", "VALUE", "SOURCE", "CHANGES", "EFFECT")
    return columns, [
        (
            row.setting.name,
            _type(row.setting),
            _short(_text(render(row.setting.default))),
            _HIDDEN if row.setting.sensitive and row.source != "default" else _short(_text(row.value)),
            row.source,
            _changes(row.setting),
            _EFFECTS[row.setting.effect],
        )
        for row in rows
    ]


_EFFECTS: Final = {Effect.HONOURED: "honoured", Effect.NONE: "none", Effect.REFUSED: "refused"}


def details(row: SettingRow, plugin: str = "") -> str:
    """One setting with all that is known of it, over several lines; `plugin` names its plugin and the state of that."""
    setting = row.setting
    effect = setting.effect.value + (f": {setting.reason}" if setting.reason else "")
    value = _HIDDEN if setting.sensitive and row.source != "default" else _text(row.value)
    lines = [
        ("value", f"{value} ({row.source})"),
        ("default", _text(render(setting.default))),
        ("Kafka's default", _text(kafka_default(setting))),
        ("type", _type(setting)),
        ("allowed", setting.allowed()),
        ("changes while running", _changes(setting)),
        ("else taken from", ", ".join(name for name, _ in setting.synonyms)),
        ("plugin", plugin),
        ("effect", effect),
    ]
    if kafka_default(setting) == render(setting.default) or not _is_kafkas(setting.name):
        del lines[2]
    body = "\n".join(f"  {name + ':':<23}{text}" for name, text in lines if text)
    return f"{setting.name}\n  {setting.help}\n{body}"


def _type(setting: ConfigKey) -> str:
    kind = setting.type.name.lower()
    return f"{kind}, {setting.unit}" if setting.unit else kind


def _changes(setting: ConfigKey) -> str:
    if not setting.dynamic:
        return "at start"
    return "this broker" if setting.per_broker else "running"


def _text(value: str | None) -> str:
    return "(none)" if value is None else value or '""'


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


# Differences


def of_settings(settings: Settings) -> Mapping[str, SettingValue]:
    """Every broker setting of a file, environment and command line."""
    return {
        name: SettingValue(render(settings.value(name)), settings.where(name), setting.sensitive)
        for name in settings.values
        if (setting := settings.catalog.broker_setting(name))
        # What is not given itself repeats another one: log.dirs is log.dir, broker.id is node.id.
        if name not in ("log.dirs", "broker.id") or settings.given(name)
    }


def of_broker(
    address: str, properties: Sequence[str], broker: int | None, topic: str | None
) -> Mapping[str, SettingValue]:
    """The settings of a running broker or of one of its topics; ends the command if they cannot be read."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import ConfigResource, ResourceType

    from leafcuttr.cli.common.librdkafka.client import admin, fail
    from leafcuttr.cli.common.target import TIMEOUT_S

    client = admin(address, properties)
    try:
        if topic is not None:
            resource = ConfigResource(ResourceType.TOPIC, topic)
        else:
            ids = sorted(client.list_topics(timeout=TIMEOUT_S).brokers)
            resource = ConfigResource(ResourceType.BROKER, str(ids[0] if broker is None else broker))
        entries: Mapping[str, Any] = client.describe_configs([resource])[resource].result(TIMEOUT_S)
    except (KafkaException, TimeoutError) as error:
        fail(error, address)
    return {
        name: SettingValue(entry.value, _WORDS.get(Source(entry.source), "unknown"), entry.is_sensitive)
        for name, entry in entries.items()
        if entry.source in iter(Source)
    }


def differences(
    catalog: Catalog, values: Mapping[str, SettingValue], *, of_topic: bool
) -> Iterator[Deviation]:
    """What is not LeafCuttr's default or not Kafka's, in the order of the reference; names that the tables do not
    know come last, if they were given at all."""
    table = catalog.topic if of_topic else catalog.broker
    for name, setting in table.items():
        found = values.get(name)
        if found is None:
            continue
        ours, kafkas = render(setting.default), kafka_default(setting)
        if found.sensitive:
            if found.source != "default":
                yield Deviation(name, _HIDDEN, found.source, ours, kafkas)
            continue
        as_kafka = not _is_kafkas(name) or _same(setting, found.value, kafkas)
        if not (as_kafka and _same(setting, found.value, ours)):
            yield Deviation(name, found.value, found.source, ours, kafkas)
    for name, found in values.items():
        if name not in table and found.source != "default":
            yield Deviation(name, _HIDDEN if found.sensitive else found.value, found.source, None, None)


def _same(setting: ConfigKey, one: str | None, other: str | None) -> bool:
    """Whether two texts are one value: `1` and `01`, `a,b` and `a, b`."""
    if one is None or other is None:
        return (one or None) == (other or None)
    try:
        return setting.parse(one) == setting.parse(other)
    except BadValueError:
        return one == other
