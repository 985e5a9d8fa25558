"""What plugins declare with the SDK, made into rows of the catalogue: checked once, as the core's own tables are by
their tests. Plugins are found, and their hooks called, in `leafcuttr.plugins`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from leafcuttr.config.catalog import Section
from leafcuttr.config.setting import BadValueError, ConfigKey, ConfigType, Value, render
from leafcuttr.errors import ConfigError
from leafcuttr.runtime.described import described, words_of
from leafcuttr.runtime.plugin_parts import Failures, Part, PartError, call, logger
from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.plugin import Plugin
from leafcuttr_sdk.settings import FindingLevel, SettingFinding, Settings, Type
from leafcuttr_sdk.settings import Setting as Declared

_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*(\.<[^<>]+>)?\Z")
_TYPES: Final = {kind.name.lower(): kind for kind in ConfigType}
_PYTHON: Final[dict[ConfigType, type | tuple[type, ...]]] = {
    ConfigType.BOOLEAN: bool,
    ConfigType.STRING: str,
    ConfigType.INT: int,
    ConfigType.LONG: int,
    ConfigType.DOUBLE: float,
    ConfigType.LIST: tuple,
}
_SWITCHES: Final = (ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.LIST)
_LONGEST: Final = 1000
"""Characters of a reason."""
_MAY_BE_NONE: Final = (ConfigType.STRING, ConfigType.PASSWORD)


def section(
    plugin: Plugin,
    broker: Iterable[Declared],
    topic: Iterable[Declared],
    *,
    bundled: bool,
) -> Section:
    """The settings that a plugin's hooks returned, as rows. Raises ConfigError, one line: a name that it may not use
    or uses twice, a default that its own setting would not take, an enabling setting that is none of its own.
    """
    of_broker = tuple(_rows(plugin, broker, bundled=bundled, of_topic=False))
    of_topic = tuple(_rows(plugin, topic, bundled=bundled, of_topic=True))
    of_topic = tuple(_with_default(row, of_broker) for row in of_topic)
    switch = plugin.enabled_by
    switches = [row for row in of_broker if row.name == switch]
    if switch is not None and not any(row.type in _SWITCHES for row in switches):
        raise ConfigError(f"enabled_by is {switch}, which is neither a boolean nor a text setting of its own")
    if any(row.type is not ConfigType.BOOLEAN and row.default for row in switches):
        raise ConfigError(f"enabled_by is {switch}, which has a default: it would always be on")
    if any(row.dynamic for row in switches):
        raise ConfigError(f"enabled_by is {switch}, which acts at the start only: it cannot be dynamic")
    return Section(plugin.name, of_broker, of_topic, switch)


def _rows(
    plugin: Plugin, settings: Iterable[Declared], *, bundled: bool, of_topic: bool
) -> Iterator[ConfigKey]:
    seen: set[str] = set()
    for declared in settings:
        if not isinstance(declared, Declared):
            raise ConfigError(f"{declared!r} is no leafcuttr_sdk.Setting")
        try:
            _check_name(plugin.name, declared.name, bundled=bundled)
            if declared.name in seen:
                raise ValueError("it is declared twice")
            seen.add(declared.name)
            yield _row(plugin.name, declared, bundled=bundled, of_topic=of_topic)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"its setting {declared.name}: {words_of(error)}") from None
        except Exception as error:
            # A field of another type than it should be.
            raise ConfigError(f"its setting {declared.name} cannot be read: {described(error)}") from None


def _with_default(row: ConfigKey, of_broker: Sequence[ConfigKey]) -> ConfigKey:
    """A topic setting gets its value from the broker's of the same name, where there is one."""
    for other in of_broker:
        if other.name == row.name and not row.is_family:
            if other.type is not row.type:
                raise ConfigError(
                    f"its setting {row.name} is of type {other.type.name.lower()} for the broker, but of type "
                    f"{row.type.name.lower()} for topics"
                )
            return row._replace(synonyms=((row.name, 1),))
    return row


def _check_name(plugin: str, name: str, *, bundled: bool) -> None:
    if not isinstance(name, str) or _NAME.match(name) is None:
        raise ValueError(
            "allowed are lower-case letters, digits, - and _ in parts with . between them; the last part may be "
            "<a word> in brackets, for a family"
        )
    if not bundled and not name.startswith(f"lc.plugin.{plugin}."):
        raise ValueError(f"its name has to begin with lc.plugin.{plugin}.")


def _row(plugin: str, declared: Declared, *, bundled: bool, of_topic: bool) -> ConfigKey:
    if not isinstance(declared.type, Type):
        raise TypeError(f"the type is {kind_of(declared.type)}; it has to be a leafcuttr_sdk.Type")
    for text in (declared.help, declared.unit):
        if not isinstance(text, str):
            raise TypeError(f"the help, or the unit, is {kind_of(text)}; it has to be a text")
    choices: object = declared.choices
    if not isinstance(choices, tuple | list):
        raise TypeError(f"the choices are {kind_of(choices)}; they have to be a tuple of texts")
    kind = _TYPES[declared.type.value]
    guard = partial(_guarded, Part(plugin, f"check of {declared.name}"), Failures(), kind)
    if kind is ConfigType.DOUBLE and type(declared.default) is int:
        declared = declared._replace(default=float(declared.default))
    row = ConfigKey(
        declared.name,
        kind,
        declared.default,
        declared.help,
        unit=declared.unit,
        minimum=declared.minimum,
        maximum=declared.maximum,
        choices=declared.choices,
        check=guard(declared.check) if declared.check else None,
        check_member=_guarded_member(guard, declared.check_member) if declared.check_member else None,
        check_with_others=_guarded_with_others(guard, declared.check_with_others)
        if declared.check_with_others
        else None,
        check_file=_guarded_file(guard, declared.check_file) if declared.check_file else None,
        dynamic=declared.dynamic or of_topic,
    )
    for name in ("check_with_others", "check_file"):
        if getattr(row, name) is not None and row.dynamic:
            raise ValueError(
                f"{name} is called at the start: it is not for a dynamic setting, nor for one of topics"
            )
    if row.is_family:
        if declared.default is not None:
            raise ValueError("a family has no default")
        return row
    if declared.check_member is not None:
        raise ValueError("check_member is for a family, whose name ends with <a word>")
    if kind is ConfigType.PASSWORD and declared.default is not None:
        raise ValueError("a password has no default: it would be known to everybody")
    if declared.default is None:
        if kind not in _MAY_BE_NONE:
            raise ValueError(f"the default of type {declared.type.value} cannot be None")
        return row
    if not isinstance(declared.default, _PYTHON[kind]) or (
        isinstance(declared.default, bool) and kind is not ConfigType.BOOLEAN
    ):
        raise ValueError(f"the default {declared.default!r} is not of type {declared.type.value}")
    if bundled:
        return row  # tests see to it that its default is allowed; to read it here would import what checks values
    try:
        row.parse(render(declared.default) or "")
    except BadValueError as error:
        raise ValueError(f"its default is not allowed: {error}") from None
    return row


def _guarded(
    part: Part, tell: Failures, kind: ConfigType, check: Callable[[Value], str | None]
) -> Callable[[Value], str | None]:
    """A plugin's check, called with values that clients send too: it must neither raise nor tell a secret. A command
    that shows the answer keeps no log."""

    def guarded(value: Value) -> str | None:
        try:
            reason = call(part, _reason, check, value)
        except PartError as failed:
            reason = f"its check failed with {failed.brief}"
            if logger.hasHandlers():
                tells = kind is ConfigType.PASSWORD and _tells(failed.words, value)
                tell(PartError(part, failed.kind) if tells else failed)
        if reason is None:
            return None
        words = " ".join(reason[:_LONGEST].split())
        return "it is not allowed" if kind is ConfigType.PASSWORD and _tells(words, value) else words

    return guarded


def _guarded_member(
    guard: Callable[[Callable[[Value], str | None]], Callable[[Value], str | None]],
    check: Callable[[str, Value], str | None],
) -> Callable[[str, Value], str | None]:
    def guarded(member: str, value: Value) -> str | None:
        return guard(partial(check, member))(value)

    return guarded


def _guarded_with_others(
    guard: Callable[[Callable[[Value], str | None]], Callable[[Value], str | None]],
    check: Callable[[str, Settings], str | None],
) -> Callable[[str, Settings, Value], str | None]:
    def guarded(name: str, settings: Settings, value: Value) -> str | None:
        return guard(lambda _: check(name, settings))(value)

    return guarded


def _guarded_file(
    guard: Callable[[Callable[[Value], str | None]], Callable[[Value], str | None]],
    check: Callable[[str, Settings], Iterable[SettingFinding]],
) -> Callable[[str, Settings, Value], Sequence[SettingFinding]]:
    def guarded(name: str, settings: Settings, value: Value) -> Sequence[SettingFinding]:
        found: list[SettingFinding] = []

        def look(_: Value) -> str | None:
            for finding in check(name, settings):
                found.append(
                    SettingFinding(
                        FindingLevel(finding.level), " ".join(str(finding.line)[:_LONGEST].split())
                    )
                )
            return None

        why = guard(look)(value)
        return found if why is None else [SettingFinding(FindingLevel.ERROR, f"{name}: {why}")]

    return guarded


def _reason(check: Callable[[Value], object], value: Value) -> str | None:
    reason = check(value)
    return None if reason is None else str(reason)


def _tells(words: str, secret: Value) -> bool:
    """Whether a text has a secret in it, as it is or as Python quotes it."""
    if not isinstance(secret, str) or not secret:
        return False
    return any(one in words for one in (secret, repr(secret)[1:-1], " ".join(secret.split())))
