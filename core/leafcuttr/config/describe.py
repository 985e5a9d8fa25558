"""Settings as DescribeConfigs tells them: value, source, synonyms, type. Pure; the wire's classes are not here."""

from collections.abc import Mapping
from typing import NamedTuple

from leafcuttr.config.catalog import BROKER, BROKER_SYNONYMS, GROUP, TOPIC, setting_of
from leafcuttr.config.setting import Setting, render
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
    of_listeners = {name: setting for name in settings.of_listeners if (setting := setting_of(name))}
    for name, setting in (BROKER | of_listeners).items():
        synonyms = settings.synonyms([name, *(other for other, _ in BROKER_SYNONYMS.get(name, ()))])
        text = render(settings.value(name))
        found.append(_described(setting, text, synonyms, read_only=_is_fixed(setting)))
    return found


def describe_cluster_default(settings: Settings) -> list[Described]:
    """What was changed for all brokers, and nothing else."""
    found = []
    for name, value in settings.dynamic(cluster=True).items():
        setting = setting_of(name)
        assert setting is not None
        text = None if setting.sensitive else render(value)
        own = Synonym(name, text, Source.DYNAMIC_DEFAULT_BROKER_CONFIG)
        found.append(_described(setting, text, (own,), read_only=_is_fixed(setting)))
    return found


def describe_topic(settings: Settings, overrides: Mapping[str, str], config: TopicConfig) -> list[Described]:
    """Every setting of a topic: what it overrides, else what the broker gives it."""
    found = []
    for name, setting in TOPIC.items():
        text = render(getattr(config, name.replace(".", "_")))
        synonyms = _broker_synonyms(settings, setting)
        if name in overrides:
            synonyms = (Synonym(name, text, Source.DYNAMIC_TOPIC_CONFIG), *synonyms)
        found.append(_described(setting, text, synonyms))
    return found


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


def _is_fixed(setting: Setting) -> bool:
    """Kafka says so of every setting of one listener too, though it can be changed."""
    return not setting.dynamic or setting.name not in BROKER


def _broker_synonyms(settings: Settings, setting: Setting) -> tuple[Synonym, ...]:
    return settings.synonyms([name for name, _ in setting.synonyms]) if setting.synonyms else ()


def _described(
    setting: Setting, text: str | None, synonyms: tuple[Synonym, ...], *, read_only: bool = False
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
