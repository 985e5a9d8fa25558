"""The settings a broker starts with: file, environment, command line, in that order, later wins.

`load_settings` is the only door: it reads, checks across settings, and says in warnings what it accepted
without being able to do. Opening directories and sockets is not its business.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from leafcuttr.config.catalog import ALIASES, BROKER
from leafcuttr.config.environment import settings_in_environment
from leafcuttr.config.listeners import advertised_by_host_name, host_name, parse_listeners
from leafcuttr.config.properties import parse_properties
from leafcuttr.config.setting import render
from leafcuttr.config.settings import Given, Settings
from leafcuttr.errors import ConfigError

# Settings of bundled plugins, which come in later versions: the name or the beginning of one.
_PLUGIN_PREFIXES: Final = (
    "lc.mqtt.",
    "mqtt.",
    "lc.schema.registry.",
    "lc.http.proxy.",
    "lc.topic.forward.",
    "lc.plugin.",
)
_ENABLING: Final = ("lc.mqtt.broker.enable", "lc.schema.registry.enable", "lc.http.proxy.enable")
_REPLICATION_FACTORS: Final = (
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
    "share.coordinator.state.topic.replication.factor",
)


def load_settings(
    file: Path | None, environ: Mapping[str, str], overrides: Sequence[str] = ()
) -> tuple[Settings, list[str]]:
    """The settings of a server.properties file, of KAFKA_* variables and of `key=value` texts; and warnings.

    Raises ConfigError, one line: a file that cannot be read, a bad value, settings that contradict each
    other.
    """
    given: dict[str, Given] = {}
    if file is not None:
        for key, text, line in parse_properties(_read(file)):
            _put(given, key, Given(text, f"{file.name}:{line}"))
    for key, text, variable in settings_in_environment(environ):
        _put(given, key, Given(text, variable))
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"-o {override}: allowed is key=value")
        _put(given, key.strip(), Given(text, "-o"))
    settings = Settings(given)
    _check(settings)
    parse_listeners(settings)
    return settings, [*_unknown(settings), *_without_effect(settings)]


def data_directory(settings: Settings) -> Path:
    """The one directory for data: `log.dirs`, or `log.dir`. `_check` has made sure that there is just one."""
    return Path(settings.list("log.dirs")[0])


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: not a text in UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror or error}") from None


def _put(given: dict[str, Given], key: str, value: Given) -> None:
    given[ALIASES.get(key, key)] = value


def _check(settings: Settings) -> None:
    directories = settings.list("log.dirs")
    if len(directories) != 1 or not directories[0]:
        key = "log.dirs" if settings.given("log.dirs") else "log.dir"
        raise _refused(settings, key, "allowed is one directory")
    if "broker" not in settings.list("process.roles"):
        raise _refused(
            settings, "process.roles", "this process is a broker, so allowed is broker or broker,controller"
        )
    node, broker = settings.given("node.id"), settings.given("broker.id")
    if node and broker and settings.int("node.id") != settings.int("broker.id"):
        raise _refused(settings, "broker.id", f"node.id is {node.text}; they have to be the same")
    if settings.resolve("log.retention.ms") == 0:
        key = next(k for k in _RETENTION if settings.value(k) is not None)
        raise _refused(settings, key, "allowed is -1 (without limit) or at least 1")
    _check_order(settings, "log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms")
    _check_order(settings, "group.min.session.timeout.ms", "group.max.session.timeout.ms")


_RETENTION: Final = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")


def _check_order(settings: Settings, low: str, high: str) -> None:
    if settings.int(low) > settings.int(high):
        key, other = (low, high) if settings.given(low) else (high, low)
        limit = "at most" if key == low else "at least"
        raise _refused(settings, key, f"allowed is {limit} the value of {other}, {settings.int(other)}")


def _refused(settings: Settings, key: str, why: str) -> ConfigError:
    return ConfigError(f"{key}={render(settings.value(key)) or ''} ({settings.where(key)}): {why}")


def _unknown(settings: Settings) -> list[str]:
    warnings = []
    for key, given in settings.extra.items():
        if (key == "lc.topic.forward.config" and given.text.strip()) or (
            key in _ENABLING and _is_true(given.text)
        ):
            warnings.append(
                f"{key}={given.text} ({given.source}) needs a plugin that this version does not have"
            )
        elif not key.startswith(_PLUGIN_PREFIXES):
            warnings.append(f"{key} ({given.source}) is not a known setting and has no effect{_nearest(key)}")
    return warnings


def _nearest(key: str) -> str:
    import difflib  # 7 ms that only a mistyped name has to pay

    names = difflib.get_close_matches(key, [*BROKER, *ALIASES], n=1, cutoff=0.75)
    return f"; did you mean {names[0]}?" if names else ""


def _without_effect(settings: Settings) -> list[str]:
    warnings = []
    factors = [k for k in _REPLICATION_FACTORS if settings.given(k) and settings.int(k) > 1]
    if factors:
        verb = "is" if len(factors) == 1 else "are"
        warnings.append(f"{', '.join(factors)} {verb} above 1; there is no replication, 1 is used")
    if not settings.bool("lc.isolated"):
        warnings.append(
            f"lc.isolated=false ({settings.where('lc.isolated')}): without replication nothing changes"
        )
    guessed = advertised_by_host_name(settings)
    if guessed:
        warnings.append(
            f"listener {', '.join(guessed)} binds every interface and has no advertised address; "
            f"clients are told {host_name()}"
        )
    return warnings


def _is_true(text: str) -> bool:
    return text.strip().lower() == "true"
