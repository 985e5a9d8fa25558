"""What can be said of settings before a broker starts with them: what stops the start, what it only warns of.

Each finding is one line for a person that names the key, the value, where it came from and what is allowed. No function
reads a file or the environment (`load` does), and nothing opens a directory or a socket.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple

from leafcuttr.config.catalog import ALIASES, BROKER, CORE, GROUP, LISTENER_PREFIX, Catalog
from leafcuttr.config.listeners import advertised_by_host_name, host_name, parse_listeners
from leafcuttr.config.setting import Effect, render
from leafcuttr.config.settings import Given, Settings, parse_given
from leafcuttr.errors import ConfigError

# What the names of bundled plugins' settings begin with, and the plugin. Third parties' begin with the name of theirs.
_BUNDLED: Final = {
    "lc.mqtt.": "mqtt",
    "mqtt.": "mqtt",
    "lc.schema.registry.": "registry",
    "lc.http.proxy.": "http",
    "lc.topic.forward.": "forward",
}
_THIRD_PARTY: Final = "lc.plugin."
_ENABLING: Final = ("lc.mqtt.broker.enable", "lc.schema.registry.enable", "lc.http.proxy.enable")
_REPLICATION_FACTORS: Final = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)
# What Kafka has taken away by 4.0, with ZooKeeper and the old formats of records; files that come from it have them.
_FORMER: Final = frozenset(
    {
        "advertised.host.name",
        "advertised.port",
        "broker.id.generation.enable",
        "control.plane.listener.name",
        "controlled.shutdown.max.retries",
        "controlled.shutdown.retry.backoff.ms",
        "delegation.token.master.key",
        "host.name",
        "inter.broker.protocol.version",
        "leader.imbalance.per.broker.percentage",
        "log.message.downconversion.enable",
        "log.message.format.version",
        "log.message.timestamp.difference.max.ms",
        "offsets.commit.required.acks",
        "port",
        "quota.consumer.default",
        "quota.producer.default",
        "reserved.broker.max.id",
    }
)
_FORMER_PREFIXES: Final = ("zookeeper.", "password.encoder.")
_METRICS_TLS: Final = "lc.metrics.ssl."
_RETENTION: Final = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")


class Level(Enum):
    """What becomes of a start with it."""

    ERROR = "error"  # the broker does not start
    WARNING = "warning"  # it starts, and says so in its log
    NOTE = "note"  # it starts and says nothing


class ConfigFinding(NamedTuple):
    """One thing to say; `line` says all of it. `value` is None for a secret and where no single value is meant."""

    level: Level
    key: str
    value: str | None
    source: str
    line: str


def bad_value(catalog: Catalog, key: str, given: Given) -> ConfigFinding | None:
    """Why a setting does not take this value; None if it does, or if no table knows the key."""
    setting = catalog.given_setting(key)
    if setting is None:
        return None
    try:
        parse_given(setting, given)
    except ConfigError as error:
        shown = None if setting.sensitive else given.shown
        return ConfigFinding(Level.ERROR, key, shown, given.source, str(error))
    return None


def contradictions(settings: Settings) -> Iterator[ConfigFinding]:
    """Values that are allowed alone but not together, and what this broker cannot be. Any of them stops the start."""
    directories = settings.list("log.dirs")
    if len(directories) != 1 or not directories[0]:
        key = "log.dirs" if settings.given("log.dirs") else "log.dir"
        yield _refused(settings, key, "allowed is one directory")
    if "broker" not in settings.list("process.roles"):
        yield _refused(
            settings, "process.roles", "this process is a broker, so allowed is broker or broker,controller"
        )
    node, broker = settings.given("node.id"), settings.given("broker.id")
    if node and broker and settings.int("node.id") != settings.int("broker.id"):
        yield _refused(settings, "broker.id", f"node.id is {node.text}; they have to be the same")
    if settings.resolve("log.retention.ms") == 0:
        key = next(k for k in _RETENTION if settings.value(k) is not None)
        yield _refused(settings, key, "allowed is -1 (without limit) or at least 1")
    yield from _order(settings, "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms")
    yield from _order(settings, "group.min.session.timeout.ms", "group.max.session.timeout.ms")
    yield from _tls_of_metrics(settings)
    try:
        parse_listeners(settings)
    except ConfigError as error:
        key = str(error).partition("=")[0]
        given = settings.given(key)
        yield ConfigFinding(
            Level.ERROR, key, given.text if given else None, given.source if given else "default", str(error)
        )


def _tls_of_metrics(settings: Settings) -> Iterator[ConfigFinding]:
    """The metrics port: what makes sense with TLS only, and what certificates of clients need."""
    auth, keystore, truststore, client_auth = (
        "lc.metrics.auth",
        *(f"{_METRICS_TLS}{each}" for each in ("keystore.location", "truststore.location", "client.auth")),
    )
    if not settings.bool("lc.metrics.enable"):
        return
    shows, mtls = settings.text(client_auth) != "none", "mtls" in settings.list(auth)
    if not settings.optional_text(keystore):
        for key in (truststore, f"{_METRICS_TLS}key.password"):
            if settings.optional_text(key):
                yield _refused(settings, key, f"without {keystore} the metrics port is plaintext")
        if shows or mtls:
            key = client_auth if shows else auth
            yield _refused(settings, key, f"without {keystore} there are no certificates of clients")
    elif shows and not settings.optional_text(truststore):
        yield _refused(
            settings, client_auth, f"it needs {truststore}, which signs the certificates of clients"
        )
    elif mtls and not shows:
        yield _refused(settings, auth, f"clients show no certificates, because {client_auth} is none")


def warnings(settings: Settings) -> Iterator[ConfigFinding]:
    """What is accepted although it does nothing or something else than was meant; the broker's log says it."""
    for key, given in settings.extra.items():
        line = _about_unknown(settings.catalog, key, given)
        if line:
            # The value of an unknown name may be a secret.
            yield ConfigFinding(Level.WARNING, key, None, given.source, line)
    factors = [k for k in _REPLICATION_FACTORS if settings.given(k) and settings.int(k) > 1]
    if factors:
        verb = "is" if len(factors) == 1 else "are"
        line = f"{', '.join(factors)} {verb} above 1; there is no replication, 1 is used"
        yield ConfigFinding(Level.WARNING, factors[0], None, settings.where(factors[0]), line)
    if not settings.bool("lc.isolated"):
        where = settings.where("lc.isolated")
        line = f"lc.isolated=false ({where}): without replication nothing changes"
        yield ConfigFinding(Level.WARNING, "lc.isolated", "false", where, line)
    try:
        guessed = advertised_by_host_name(settings)
    except ConfigError:  # `contradictions` says it
        guessed = []
    if guessed:
        line = (
            f"listener {', '.join(guessed)} binds every interface and has no advertised address; "
            f"clients are told {host_name()}"
        )
        yield ConfigFinding(Level.WARNING, "advertised.listeners", None, settings.where("listeners"), line)


def notes(settings: Settings) -> Iterator[ConfigFinding]:
    """Values other than the default of settings that have no effect here, each with the reason."""
    of_listeners = {key: setting for key in settings.made_names if (setting := CORE.broker_setting(key))}
    for key, setting in (*BROKER.items(), *of_listeners.items()):
        given = settings.given(key)
        if given is None or setting.effect is not Effect.NONE or settings.value(key) == setting.default:
            continue
        if key in _REPLICATION_FACTORS or key == "lc.isolated":
            continue
        shown = "[hidden]" if setting.sensitive else given.shown
        line = f"{key}={shown} ({given.source}) has no effect here: {setting.reason}"
        yield ConfigFinding(Level.NOTE, key, None if setting.sensitive else given.shown, given.source, line)


def nearest(key: str, catalog: Catalog = CORE) -> str | None:
    """The known name that was most likely meant."""
    import difflib  # 7 ms that only a mistyped name has to pay

    known = [*catalog.broker, *ALIASES, *catalog.topic]
    names = difflib.get_close_matches(key, known, n=1, cutoff=0.75)
    return names[0] if names else None


def unknown_to_brokers(name: str, catalog: Catalog = CORE) -> str | None:
    """The message for a person who changes a setting of a broker by an unknown name; None if it is known.

    The broker accepts such a name, as Kafka does, whose plugins have settings of their own.
    """
    if catalog.broker_setting(name) is not None:
        return None
    plugin = _plugin_of(name)
    if plugin and not any(section.plugin == plugin for section in catalog.sections):
        return None  # the broker may have it all the same
    text = f"{name} is not a known setting of brokers"
    if of_topics := catalog.topic_setting(name):
        synonyms = of_topics.synonyms
        return f"{text}, but of topics" + (
            f"; the broker's default for it is {synonyms[0][0]}" if synonyms else ""
        )
    if name in GROUP:
        return f"{text}, but of groups"
    meant = nearest(name, catalog)
    return f"{text}; did you mean {meant}?" if meant else text


def _about_unknown(catalog: Catalog, key: str, given: Given) -> str | None:
    plugin = _plugin_of(key)
    if plugin and not any(section.plugin == plugin for section in catalog.sections):
        return _about_absent(catalog, plugin, key, given)
    text = f"{key} ({given.source}) is not a known setting and has no effect"
    if key in _FORMER or key.startswith(_FORMER_PREFIXES):
        return f"{key} ({given.source}) is a setting of Kafka before 4.0 and has no effect"
    if key.startswith(LISTENER_PREFIX):
        known = [name for name in BROKER if key.endswith(f".{name}")]
        if known:
            reason = BROKER[max(known, key=len)].reason or "it cannot be given for one listener"
            return f"{key} ({given.source}) has no effect: {reason}"
    if of_topics := catalog.topic_setting(key):
        synonyms = of_topics.synonyms
        text = f"{key} ({given.source}) is a setting of topics and has no effect here"
        return f"{text}; the broker's default for it is {synonyms[0][0]}" if synonyms else text
    if key in GROUP:
        return f"{key} ({given.source}) is a setting of groups and has no effect here"
    meant = nearest(key, catalog)
    return f"{text}; did you mean {meant}?" if meant else text


def _about_absent(catalog: Catalog, plugin: str, key: str, given: Given) -> str | None:
    text = f"{key} ({given.source}) has no effect"
    if plugin in catalog.absent:
        return f"{text}: it is a setting of the plugin {plugin}; {catalog.absent[plugin]}"
    if key.startswith(_THIRD_PARTY):
        return f"{text}: no plugin {plugin} is installed"
    if (key == "lc.topic.forward.config" and given.text.strip()) or (
        key in _ENABLING and given.text.strip().lower() == "true"
    ):
        return f"{key}={given.text} ({given.source}) needs a plugin that this version does not have"
    return None


def _plugin_of(key: str) -> str | None:
    """The plugin whose setting this is by its name, whether or not there is one."""
    if key.startswith(_THIRD_PARTY):
        return key.removeprefix(_THIRD_PARTY).partition(".")[0]
    return next((plugin for prefix, plugin in _BUNDLED.items() if key.startswith(prefix)), None)


def _order(settings: Settings, low: str, high: str) -> Iterator[ConfigFinding]:
    if settings.int(low) > settings.int(high):
        key, other = (low, high) if settings.given(low) else (high, low)
        limit = "at most" if key == low else "at least"
        yield _refused(settings, key, f"allowed is {limit} the value of {other}, {settings.int(other)}")


def _refused(settings: Settings, key: str, why: str) -> ConfigFinding:
    where, known = settings.where(key), settings.catalog.broker_setting(key)
    if known is not None and known.sensitive:
        return ConfigFinding(Level.ERROR, key, None, where, f"{key} ({where}): {why}")
    value = render(settings.value(key)) or ""
    return ConfigFinding(Level.ERROR, key, value, where, f"{key}={value} ({where}): {why}")
