"""The broker's settings as they are now: typed values by name, where each came from, and calls when they change.

A value comes from the first of these that has it: a change for this broker, a change for the whole cluster
(both made over the wire while running), what it was started with, Kafka's default. All are parsed once, when
they come in, so that an accessor is one dictionary look-up. Everything here runs on the event loop's thread;
worker threads may read, because a change replaces whole dictionaries and never edits one that is in use.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from enum import IntEnum
from itertools import dropwhile
from typing import NamedTuple

from leafcuttr.config.catalog import (
    ALIASES,
    BROKER,
    CORE,
    LISTENER_PREFIX,
    OF_TOPICS,
    Catalog,
)
from leafcuttr.config.setting import BadValueError, ConfigKey, Value, render, scaled
from leafcuttr.errors import ConfigError, InvalidRequest
from leafcuttr_sdk.settings import Values


class Source(IntEnum):
    """Where a value comes from, numbered as in DescribeConfigs (KIP-226)."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class Given(NamedTuple):
    """A value as a person gave it: the text, and where (`server.properties:12`, `KAFKA_NODE_ID`, `-o`). `reference` is
    what stood there in its place (`${file:/secrets:key}`): messages show that, because the text may be a secret."""

    text: str
    source: str
    reference: str | None = None

    @property
    def shown(self) -> str:
        return self.text if self.reference is None else self.reference


class Synonym(NamedTuple):
    """One place that has a value for a setting; `value` is its text in the unit of that place."""

    name: str
    value: str | None
    source: Source


Changed = Callable[[frozenset[str]], None]


class Settings(Values):
    """All broker settings. Raises ConfigError when built from a value that its setting refuses."""

    def __init__(self, given: Mapping[str, Given | str] | None = None, catalog: Catalog = CORE) -> None:
        """`given` is what the broker was started with, by Kafka's name; a plain string counts as `-o`.

        `catalog` has the tables, with those of this broker's plugins. Names that it does not know are kept in `extra`.
        """
        self.catalog = catalog
        self.extra: dict[str, Given] = {}
        self._given: dict[str, Given] = {}
        self._static: dict[str, Value] = {}
        self._cluster: dict[str, Value] = {}
        self._broker: dict[str, Value] = {}
        self._unknown_of_cluster: Mapping[str, str] = {}
        self._unknown_of_broker: Mapping[str, str] = {}
        self._callbacks: list[Changed] = []
        self._values: Mapping[str, Value] = {}
        self._topic_defaults: dict[str, Value] = {}
        self._of_topics: dict[str, dict[str, Value]] = {}
        for name, value in (given or {}).items():
            self._take(ALIASES.get(name, name), Given(value, "-o") if isinstance(value, str) else value)
        self._name_broker()
        self._publish()

    # Values. The accessors by type are the SDK's.

    @property
    def values(self) -> Mapping[str, Value]:
        """All of them. The same object until a change."""
        return self._values

    def value(self, name: str) -> Value:
        """The typed value of any setting."""
        return self._values[name]

    def resolve(self, name: str) -> Value:
        """As `value`, but falls back on the setting's synonyms, converted: log.retention.ms from ...hours."""
        setting = self.catalog.broker.get(name)
        return self._resolved(name, setting.synonyms if setting else ())

    def of_listener(self, listener: str, name: str) -> int:
        """A limit of one listener: its own, or the default. What holds for all listeners together is `int(name)`."""
        value = self._values.get(f"{LISTENER_PREFIX}{listener.lower()}.{name}", BROKER[name].default)
        assert isinstance(value, int)
        return value

    def topic_default(self, name: str) -> Value:
        """What a topic has for its setting `name` when it overrides nothing."""
        return self._topic_defaults[name]

    @property
    def topic_defaults(self) -> Mapping[str, Value]:
        """`topic_default` for every topic setting. The same object until a change."""
        return self._topic_defaults

    @property
    def unknown(self) -> Mapping[str, str]:
        """What there is under names that no table knows, as texts: given at the start, or changed while running."""
        started = {name: given.text for name, given in self.extra.items()}
        return {**started, **self._unknown_of_cluster, **self._unknown_of_broker}

    @property
    def made_names(self) -> list[str]:
        """The names that no table has but a person made and gave: those for one listener, and of families."""
        return [name for name in self._values if name not in self.catalog.broker]

    def family(self, name: str) -> dict[str, Value]:
        """The values of a family such as `lc.filters.<topic or pattern>`, by what stands in the brackets' place."""
        start = name.index("<")
        return {
            member[start:]: self._values[member] for member in self.catalog.members(name, self.made_names)
        }

    def given_to_topic(self, topic: str) -> dict[str, str]:
        """By topic setting the member of a family that gives this topic its default, as
        `lc.filters` -> `lc.filters.orders-*`; mostly none.
        """
        if not self._of_topics:
            return {}
        found = {name: _best(patterns, topic) for name, patterns in self._of_topics.items()}
        return {name: OF_TOPICS[name].partition("<")[0] + best for name, best in found.items() if best}

    @property
    def of_topics(self) -> Mapping[str, Mapping[str, Value]]:
        """By topic setting what is given for topics by name or pattern. The same object until that changes."""
        return self._of_topics

    # Where values come from

    def source(self, name: str) -> Source:
        """The place that the effective value comes from."""
        for layer, source in self._layers():
            if name in layer:
                return source
        return Source.DEFAULT_CONFIG

    def given(self, name: str) -> Given | None:
        """What the broker was started with for this name, or None."""
        return self._given.get(name)

    @property
    def given_names(self) -> Collection[str]:
        """The known names that the broker was started with."""
        return self._given.keys()

    def is_given(self, name: str) -> bool:
        """Whether the broker was started with a value of it, for all listeners or for one of them."""
        return any(one == name or one.endswith(f".{name}") for one in self._given)

    def where(self, name: str) -> str:
        """The place a static value was given, for a message; `default` if none was."""
        given = self._given.get(name)
        return given.source if given else "default"

    def synonyms(self, names: Sequence[str]) -> tuple[Synonym, ...]:
        """Every place that has a value for one of `names`, the one that counts first.

        As in Kafka what precedes the first place of `names[0]` is left out, so a retention given in hours does
        not show as a synonym of the one in milliseconds.
        """
        found = [
            Synonym(name, None if self._known(name).sensitive else render(layer[name]), source)
            for layer, source in self._layers()
            for name in names
            if name in layer
        ]
        found += [
            Synonym(self.catalog.base_of(name), self._default_text(name), Source.DEFAULT_CONFIG)
            for name in names
            if self._known(name).default is not None
        ]
        first = names[0], self.catalog.base_of(names[0])
        return tuple(dropwhile(lambda synonym: synonym.name not in first, found))

    # Changing

    def on_change(self, callback: Changed) -> Callable[[], None]:
        """Call `callback` with the names whose values changed, after each change, on that thread; returns what ends
        that.
        """
        self._callbacks = [*self._callbacks, callback]

        def end() -> None:
            self._callbacks = [one for one in self._callbacks if one is not callback]

        return end

    def replace_dynamic(self, texts: Mapping[str, str], *, cluster: bool = False) -> None:
        """Set all changes of one scope at once, as the metadata store holds them. Raises InvalidRequest.

        A name that no table knows has no value here: Kafka takes and keeps those too. See `unknown`.
        """
        unknown = {name: text for name, text in texts.items() if self._for_messages(name) is None}
        self._replace(self.parse_dynamic(texts), unknown, cluster=cluster)

    def parse_dynamic(self, texts: Mapping[str, str]) -> dict[str, Value]:
        """The typed values of changes made over the wire, of those that are known. Raises InvalidRequest."""
        return {
            name: parse_dynamic(setting, text)
            for name, text in texts.items()
            if (setting := self._for_messages(name)) is not None
        }

    def with_changes(self, texts: Mapping[str, str], *, cluster: bool = False) -> "Settings":
        """These settings as they would be after `replace_dynamic`. Raises InvalidRequest."""
        candidate = copy(self)
        candidate._callbacks = []
        candidate.replace_dynamic(texts, cluster=cluster)
        return candidate

    def dynamic(self, *, cluster: bool = False) -> Mapping[str, Value]:
        """The changes in force for this broker or for the cluster."""
        return self._cluster if cluster else self._broker

    def _replace(self, layer: dict[str, Value], unknown: Mapping[str, str], *, cluster: bool) -> None:
        before, topics_before, of_topics_before = self._values, self._topic_defaults, self._of_topics
        unknown_before = self.unknown
        if cluster:
            self._cluster, self._unknown_of_cluster = layer, unknown
        else:
            self._broker, self._unknown_of_broker = layer, unknown
        self._publish()
        changed = {
            name for name in before.keys() | self._values if self._values.get(name) != before.get(name)
        }
        changed |= {name for name, _ in unknown_before.items() ^ self.unknown.items()}
        if self._topic_defaults == topics_before:
            self._topic_defaults = topics_before
        if self._of_topics == of_topics_before:
            self._of_topics = of_topics_before
        if changed:
            for callback in self._callbacks:
                callback(frozenset(changed))

    def _publish(self) -> None:
        values: dict[str, Value] = {name: setting.default for name, setting in self.catalog.broker.items()}
        for layer, _ in reversed(self._layers()):
            values.update(layer)
        # The one value that is the same as another: log.dirs is the directory, by whichever name it was given.
        values["log.dirs"] = values["log.dirs"] or values["log.dir"]
        self._values = values
        self._topic_defaults = {name: self._topic_value(s) for name, s in self.catalog.topic.items()}
        given = {name: self.family(family) for name, family in OF_TOPICS.items()}
        self._of_topics = {name: patterns for name, patterns in given.items() if patterns}

    def _topic_value(self, setting: ConfigKey) -> Value:
        if not setting.synonyms:
            return setting.default
        (first, _), *rest = setting.synonyms
        return self._resolved(first, tuple(rest))

    def _resolved(self, name: str, others: tuple[tuple[str, int], ...]) -> Value:
        value = self._values[name]
        if value is None:
            for other, factor in others:
                value = scaled(self._values[other], factor)
                if value is not None:
                    break
        # Every negative time means without end, and Kafka shows it as -1.
        if name == "log.retention.ms" and type(value) is int and value < 0:
            return -1
        return value

    def _layers(self) -> tuple[tuple[dict[str, Value], Source], ...]:
        return (
            (self._broker, Source.DYNAMIC_BROKER_CONFIG),
            (self._cluster, Source.DYNAMIC_DEFAULT_BROKER_CONFIG),
            (self._static, Source.STATIC_BROKER_CONFIG),
        )

    def _name_broker(self) -> None:
        """node.id and its old name broker.id (-1: none) stand for each other when only one is given."""
        for name, other in (("node.id", "broker.id"), ("broker.id", "node.id")):
            if name not in self._given and self._static.get(other, -1) != -1:
                self._static[name], self._given[name] = self._static[other], self._given[other]

    def _take(self, name: str, given: Given) -> None:
        setting = self.catalog.given_setting(name)
        if setting is None:
            self.extra[name] = given
            return
        self._static[name] = parse_given(setting, given)
        self._given[name] = given

    def _known(self, name: str) -> ConfigKey:
        setting = self.catalog.broker_setting(name)
        assert setting is not None, name
        return setting

    def _default_text(self, name: str) -> str | None:
        setting = self._known(name)
        return None if setting.sensitive else render(setting.default)

    def _for_messages(self, name: str) -> ConfigKey | None:
        """The setting that a refusal names: Kafka's names the common one even where it is one listener's."""
        setting = self.catalog.broker_setting(name)
        return setting and self.catalog.broker.get(self.catalog.base_of(name), setting)


def _best(patterns: Collection[str], topic: str) -> str:
    """The name itself, else of the patterns that match the one with most to match; empty if there is none."""
    if topic in patterns:
        return topic
    if topic.startswith("__"):
        return ""
    from fnmatch import fnmatchcase  # which a start without patterns need not import

    matching = [one for one in patterns if fnmatchcase(topic, one)]
    return max(matching, key=lambda one: (len(one.replace("*", "")), one), default="")


def parse_given(setting: ConfigKey, given: Given) -> Value:
    """The typed value of what a person gave. Raises ConfigError, one line: key, value, source, what is allowed."""
    shown = "[hidden]" if setting.sensitive else given.shown
    try:
        value = setting.parse(given.text)
    except BadValueError as error:
        # Where a check of its own refused the value, a range would not say why.
        allowed = "" if setting.check else setting.allowed(given.text.strip())
        why = f"allowed is {allowed}" if allowed else str(error)
        if given.reference is not None and given.text.strip() in why:
            why = "what is there is not allowed"
        raise ConfigError(f"{setting.name}={shown} ({given.source}): {why}") from None
    if setting.refuses(value) is not None:
        raise ConfigError(f"{setting.name}={shown} ({given.source}): refused, because {setting.reason}")
    return value


def parse_dynamic(setting: ConfigKey, text: str) -> Value:
    """The typed value of a change made over the wire. Raises InvalidRequest, as Kafka does for brokers."""
    try:
        value = setting.parse(text)
    except BadValueError as error:
        raise InvalidRequest(setting.refusal(text, error)) from None
    if setting.name == "config.providers" and value:
        # Kafka would read files of the broker for who may change a setting, and show what is in them.
        raise InvalidRequest(
            f"Invalid value {text} for configuration {setting.name}: it acts at the start only"
        )
    if (refusal := setting.refuses(value)) is not None:
        raise InvalidRequest(refusal)
    return value
