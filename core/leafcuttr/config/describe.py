"""Settings as DescribeConfigs tells them: value, source, synonyms, type. Pure: without the classes of messages."""

from collections.abc import Mapping
from typing import NamedTuple

from leafcuttr.config.catalog import GROUP, LISTENER_PREFIX, TOPIC
from leafcuttr.config.setting import ConfigKey, render
from leafcuttr.config.settings import Settings, Source, Synonym
from leafcuttr.config.topic import TopicConfig


class Described(NamedTuple):
    """One setting of one resource. The value of a secret is None; `type` 0 is Kafka's UNKNOWN."""

    name: str
    value: str | None
    source: Source
    read_only: bool = False
    sensitive: bool = False
    synonyms: tuple[Synonym, ...] = ()
    type: int = 0
    help: str = ""


def describe_broker(settings: Settings) -> list[Described]:
    """Every setting of this broker with its effective value."""
    found = []
    catalog = settings.catalog
    made = {name: setting for name in settings.made_names if (setting := catalog.broker_setting(name))}
    for name, setting in {**catalog.broker, **made}.items():
        synonyms = settings.synonyms([name, *(other for other, _ in setting.synonyms)])
        text = render(settings.value(name))
        found.append(_described(setting, text, synonyms, read_only=_is_fixed(setting)))
    return found


def describe_cluster_default(settings: Settings) -> list[Described]:
    """What was changed for all brokers, and nothing else."""
    found = []
    for name, value in settings.dynamic(cluster=True).items():
        setting = settings.catalog.broker_setting(name)
        assert setting is not None
        text = None if setting.sensitive else render(value)
        own = Synonym(name, text, Source.DYNAMIC_DEFAULT_BROKER_CONFIG)
        found.append(_described(setting, text, (own,), read_only=_is_fixed(setting)))
    return found


def describe_kept(settings: Settings, own: Mapping[str, str], of_all: Mapping[str, str]) -> list[Described]:
    """What was changed while running, for this broker or for all of them, under names that are unknown now."""
    layers = ((own, Source.DYNAMIC_BROKER_CONFIG), (of_all, Source.DYNAMIC_DEFAULT_BROKER_CONFIG))
    return [
        _unknown(name, *(source for layer, source in layers if name in layer))
        for name in {**own, **of_all}
        if settings.catalog.broker_setting(name) is None
    ]


def describe_topic(
    settings: Settings, topic: str, overrides: Mapping[str, str], config: TopicConfig
) -> list[Described]:
    """Every setting of a topic: what it overrides, else what the broker gives it."""
    catalog = settings.catalog
    given = settings.given_to_topic(topic)
    made = {n: s for n in config.extra if n not in catalog.topic and (s := catalog.topic_setting(n))}
    found = []
    for name, setting in {**catalog.topic, **made}.items():
        value = getattr(config, name.replace(".", "_")) if name in TOPIC else config.extra[name]
        text = render(value)
        synonyms = settings.synonyms([given[name]]) if name in given else _broker_synonyms(settings, setting)
        if name in overrides:
            shown = None if setting.sensitive else text
            synonyms = (Synonym(name, shown, Source.DYNAMIC_TOPIC_CONFIG), *synonyms)
        found.append(_described(setting, text, synonyms))
    return found + [
        _unknown(name, Source.DYNAMIC_TOPIC_CONFIG)
        for name in overrides
        if catalog.topic_setting(name) is None
    ]


def without_secrets(settings: Settings, overrides: Mapping[str, str]) -> dict[str, str]:
    """The overrides of a topic that may be shown; one with an unknown name may be a secret too."""
    of = settings.catalog.topic_setting
    return {name: text for name, text in overrides.items() if (setting := of(name)) and not setting.sensitive}


def describe_group(settings: Settings) -> list[Described]:
    """Every setting of a group, at the broker's value: overrides come with the newer group protocols."""
    found = []
    for name, setting in GROUP.items():
        if setting.synonyms:
            text = render(settings.value(setting.synonyms[0][0]))
            synonyms = _broker_synonyms(settings, setting)
        else:
            text = render(setting.default)
            synonyms = (Synonym(name, text, Source.DEFAULT_CONFIG),)
        found.append(_described(setting, text, synonyms))
    return found


def _is_fixed(setting: ConfigKey) -> bool:
    """Kafka says so of every setting of one listener too, though it can be changed."""
    return not setting.dynamic or setting.name.startswith(LISTENER_PREFIX)


def _unknown(name: str, *sources: Source) -> Described:
    """What was given while a plugin was installed that now is not. Without the plugin it may be a secret: as
    Kafka does with names that it does not know, it is treated as one.
    """
    return Described(
        name,
        None,
        sources[0],
        read_only=sources[0] is not Source.DYNAMIC_TOPIC_CONFIG,
        sensitive=True,
        synonyms=tuple(Synonym(name, None, source) for source in sources),
        help="Kept, but without effect: no installed plugin has a setting of this name.",
    )


def _broker_synonyms(settings: Settings, setting: ConfigKey) -> tuple[Synonym, ...]:
    return settings.synonyms([name for name, _ in setting.synonyms]) if setting.synonyms else ()


def _described(
    setting: ConfigKey, text: str | None, synonyms: tuple[Synonym, ...], *, read_only: bool = False
) -> Described:
    return Described(
        name=setting.name,
        value=None if setting.sensitive else text,
        source=synonyms[0].source if synonyms else Source.DEFAULT_CONFIG,
        read_only=read_only,
        sensitive=setting.sensitive,
        synonyms=synonyms,
        type=int(setting.type),
        help=setting.help,
    )
