"""The tables joined: every broker, topic and group setting by name, and the aliases of names.

Order is the order of the reference page: themes first, names within them. A `Catalog` is what one broker knows: the
core's tables, which never change (`CORE`), and those of its plugins. It is part of that broker's `Settings`, so that
two brokers of one process may have different plugins. The code that finds plugins makes it; this module imports none.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from leafcuttr.config import (
    cleaner_settings,
    cluster_settings,
    consumer_group_settings,
    group_resource_settings,
    group_settings,
    leafcuttr_settings,
    log_settings,
    metric_settings,
    network_settings,
    oauth_settings,
    plugin_settings,
    replication_settings,
    sasl_settings,
    security_settings,
    share_group_settings,
    streams_group_settings,
    tiered_settings,
    tls_settings,
    topic_settings,
    transaction_settings,
)
from leafcuttr.config.setting import ConfigKey, Effect
from leafcuttr.errors import ConfigError

THEMES: Final[tuple[tuple[str, tuple[ConfigKey, ...]], ...]] = (
    ("LeafCuttr's own", leafcuttr_settings.SETTINGS),
    ("Plugins", plugin_settings.SETTINGS),
    ("Listeners, connections and requests", network_settings.SETTINGS),
    ("Log", log_settings.SETTINGS),
    ("Groups and offsets", group_settings.SETTINGS),
    ("Producers and transactions", transaction_settings.SETTINGS),
    ("Cluster", cluster_settings.SETTINGS),
    ("Compaction", cleaner_settings.SETTINGS),
    ("Consumer groups", consumer_group_settings.SETTINGS),
    ("Share groups", share_group_settings.SETTINGS),
    ("Streams groups", streams_group_settings.SETTINGS),
    ("Replication", replication_settings.SETTINGS),
    ("Tiered storage", tiered_settings.SETTINGS),
    ("Metrics", metric_settings.SETTINGS),
    ("Security", security_settings.SETTINGS),
    ("TLS", tls_settings.SETTINGS),
    ("SASL", sasl_settings.SETTINGS),
    ("OAuth", oauth_settings.SETTINGS),
)

_ROWS: Final = tuple(setting for _, table in THEMES for setting in table)

BROKER: Final[dict[str, ConfigKey]] = {s.name: s for s in _ROWS if not s.is_family}
FAMILIES: Final[dict[str, ConfigKey]] = {s.prefix: s for s in _ROWS if s.is_family}

TOPIC: Final[dict[str, ConfigKey]] = {s.name: s for s in topic_settings.joined(_ROWS)}
GROUP: Final[dict[str, ConfigKey]] = {s.name: s for s in group_resource_settings.SETTINGS}

# Names that other manuals use for one of ours. The manual of LeafCuttr 0.5 says flush.interval.*.
ALIASES: Final[dict[str, str]] = {
    "flush.interval.messages": "log.flush.interval.messages",
    "flush.interval.ms": "log.flush.interval.ms",
}

# Kafka's own default where ours is another, as text; None where Kafka has none. The help of each says why.
KAFKA_DEFAULTS: Final[dict[str, str | None]] = {
    "controller.listener.names": None,
    "listeners": "PLAINTEXT://:9092",
    "log.dir": "/tmp/kafka-logs",
    "node.id": None,
    "process.roles": None,
}

# The broker's family that gives a topic setting its value for the topics whose name it has in the last place.
OF_TOPICS: Final[dict[str, str]] = {
    s.overridden_by.name: s.name for s in FAMILIES.values() if s.overridden_by
}

KERBEROS_RULES: Final = "sasl.kerberos.principal.to.local.rules"
_KERBEROS: Final = (KERBEROS_RULES, "sasl.kerberos.service.name")
# What can be given for one listener alone, as `listener.name.<listener in lower case>.<setting>`.
OF_LISTENERS: Final = (
    "max.connections",
    "max.connection.creation.rate",
    "connections.max.reauth.ms",
    "lc.sasl.mechanisms",
    "sasl.enabled.mechanisms",
    *_KERBEROS,
    *(row.name for row in tls_settings.SETTINGS),
    *(row.name for row in oauth_settings.SETTINGS if row.effect is Effect.HONOURED),
)
# What can be given for one mechanism of a listener (KIP-86): `listener.name.<listener>.<mechanism>.<setting>`, all in
# lower case.
OF_MECHANISMS: Final = (
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.server.callback.handler.class",
    *_KERBEROS,
    *(row.name for row in oauth_settings.SETTINGS if row.effect is Effect.HONOURED),
)
_MECHANISMS: Final = ("gssapi.", "oauthbearer.", "plain.", "scram-sha-256.", "scram-sha-512.")
LISTENER_PREFIX: Final = "listener.name."


class Section(NamedTuple):
    """The settings of one plugin, and which of them switches it on; without one it is on once it is installed."""

    plugin: str
    broker: tuple[ConfigKey, ...] = ()
    topic: tuple[ConfigKey, ...] = ()
    enabled_by: str | None = None


class Catalog(NamedTuple):
    """Every setting that one broker knows. Tables are by name, families by what their names begin with.

    `absent` says of plugins that were found but are left out why they are: `it is disabled by lc.plugins.disabled`.
    """

    broker: Mapping[str, ConfigKey]
    topic: Mapping[str, ConfigKey]
    families: Mapping[str, ConfigKey] = {}
    topic_families: Mapping[str, ConfigKey] = {}
    sections: tuple[Section, ...] = ()
    absent: Mapping[str, str] = {}

    def broker_setting(self, name: str) -> ConfigKey | None:
        """The broker setting of this name, which may be one listener's or of a family; None if there is none."""
        found = self.broker.get(name)
        if found is not None:
            return found
        return _of_listener(name) if name.startswith(LISTENER_PREFIX) else _member(self.families, name)

    def given_setting(self, name: str) -> ConfigKey | None:
        """As `broker_setting`, for what a broker is started with: the beginning of a family, with nothing behind it, is
        a row that takes no value."""
        found = self.broker_setting(name)
        return self.families[name].no_member() if found is None and name in self.families else found

    def topic_setting(self, name: str) -> ConfigKey | None:
        """The topic setting of this name, which may be of a family; None if there is none."""
        return self.topic.get(name) or _member(self.topic_families, name)

    def base_of(self, name: str) -> str:
        """The broker setting that a setting of one listener is about; any other name is its own."""
        if name in self.broker or not name.startswith(LISTENER_PREFIX):
            return name
        rest = name.removeprefix(LISTENER_PREFIX).partition(".")[2]
        return _of_mechanism(rest) or rest

    def members(self, family: str, names: Iterable[str]) -> Iterator[str]:
        """Those of `names` that are of the broker's family `a.b.<c>` and of none with a longer beginning."""
        prefix = family.partition("<")[0]
        for name in names:
            if name.startswith(prefix) and name not in self.broker and _prefix(self.families, name) == prefix:
                yield name

    def with_plugin(self, section: Section) -> "Catalog":
        """This and the settings of one more plugin. Raises ConfigError, one line, where a name is taken."""
        for kind, table, families, settings in (
            ("setting", self.broker, self.families, section.broker),
            ("topic setting", self.topic, self.topic_families, section.topic),
        ):
            for setting in settings:
                if setting.name in table or (setting.is_family and setting.prefix in families):
                    owner = self.owner_of(setting.name)
                    whose = f"plugin {owner}" if owner else "the broker itself"
                    raise ConfigError(f"its {kind} {setting.name} is one of {whose}")
        return self._replace(
            broker={**self.broker, **_plain(section.broker)},
            topic={**self.topic, **_plain(section.topic)},
            families={**self.families, **_families(section.broker)},
            topic_families={**self.topic_families, **_families(section.topic)},
            sections=(*self.sections, section),
        )

    def without_plugin(self, plugin: str, reason: str) -> "Catalog":
        """This, and why a plugin that was found is left out: a clause such as `it is disabled by ...`."""
        return self._replace(absent={**self.absent, plugin: reason})

    def owner_of(self, name: str) -> str | None:
        """The plugin that declares a setting of this name, or the family that it is of; None for the core's."""
        for section in self.sections:
            for setting in (*section.broker, *section.topic):
                if setting.name == name or (setting.is_family and name.startswith(setting.prefix)):
                    return section.plugin
        return None


CORE: Final = Catalog(BROKER, TOPIC, FAMILIES)


def _plain(settings: Sequence[ConfigKey]) -> dict[str, ConfigKey]:
    return {setting.name: setting for setting in settings if not setting.is_family}


def _families(settings: Sequence[ConfigKey]) -> dict[str, ConfigKey]:
    return {setting.prefix: setting for setting in settings if setting.is_family}


def _prefix(families: Mapping[str, ConfigKey], name: str) -> str:
    """The longest beginning of a family that `name` is of; empty if it is of none."""
    return max((p for p in families if name.startswith(p) and name != p), key=len, default="")


def _member(families: Mapping[str, ConfigKey], name: str) -> ConfigKey | None:
    prefix = _prefix(families, name)
    return families[prefix].member(name) if prefix else None


@lru_cache(64)  # names come from clients too
def _of_listener(name: str) -> ConfigKey | None:
    listener, _, rest = name.removeprefix(LISTENER_PREFIX).partition(".")
    if not listener or listener != listener.lower():
        return None
    base = rest if rest in OF_LISTENERS else _of_mechanism(rest)
    return None if base is None else BROKER[base]._replace(name=name)


def _of_mechanism(rest: str) -> str | None:
    """The setting that one of a mechanism is about; None if it is none of these."""
    for mechanism in _MECHANISMS:
        if rest.startswith(mechanism) and rest.removeprefix(mechanism) in OF_MECHANISMS:
            return rest.removeprefix(mechanism)
    return None
