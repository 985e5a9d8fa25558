"""What an instance is made with, outside a broker: its topic's context, with settings and a clock that do not
change."""

import logging
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import cast

from leafcuttr_sdk.filters import TopicContext
from leafcuttr_sdk.schemas import SchemaProvider
from leafcuttr_sdk.settings import FindingLevel, Setting, Settings, Type, Value, Values
from leafcuttr_sdk.testing.read_only import FixedBroker
from leafcuttr_sdk.testing.samples import NOW_MS

_PYTHON: Mapping[Type, tuple[type, ...]] = {
    Type.BOOLEAN: (bool,),
    Type.STRING: (str,),
    Type.INT: (int,),
    Type.LONG: (int,),
    Type.DOUBLE: (float, int),
    Type.LIST: (tuple,),
    Type.PASSWORD: (str,),
}


class HandClock:
    """A clock that stands until it is moved: `clock.ms += 1000`."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000


class UndeclaredSettingError(KeyError):
    """A setting was requested, or given, that no hook declares."""

    def __init__(self, name: str, declared: Iterable[str]) -> None:
        super().__init__(name)
        self.name = name
        self.declared = sorted(declared)

    def __str__(self) -> str:
        known = ", ".join(self.declared) or "none"
        return f"the setting {self.name} is not declared (declared: {known})"


class _ByName(dict[str, Value]):
    """Values by name. A name without one is not declared, or that of a family."""

    def __init__(self, declared: Iterable[str]) -> None:
        super().__init__()
        self._declared = declared

    def __missing__(self, name: str) -> Value:
        raise UndeclaredSettingError(name, self._declared)


class FixedSettings(Values):
    """A `Settings` of the given declarations and values, typed as the broker's own."""

    def __init__(self, declared: Iterable[Setting], values: Mapping[str, Value]) -> None:
        self._declared = {setting.name: setting for setting in declared}
        self._values = self._by_name = _ByName(self._declared)
        self._families: dict[str, dict[str, Value]] = {
            name: {} for name in self._declared if name.endswith(">")
        }
        self._calls: list[Callable[[frozenset[str]], None]] = []
        for name in self._declared.keys() - self._families.keys():
            self._by_name[name] = _typed(self._declared[name], self._declared[name].default)
        taken = [(name, self._take(name, value)) for name, value in values.items()]
        for name, setting in taken:
            wrong = setting.check_with_others(name, self) if setting.check_with_others is not None else None
            if wrong:
                raise ValueError(f"{name}: {wrong}")
            for finding in setting.check_file(name, self) if setting.check_file is not None else ():
                if finding.level is FindingLevel.ERROR:
                    raise ValueError(finding.line)

    def _take(self, name: str, value: Value) -> Setting:
        setting = None if name in self._families else self._declared.get(name)
        if setting is None:
            family = next((one for one in self._families if name.startswith(one.partition("<")[0])), None)
            if family is None:
                raise UndeclaredSettingError(name, self._declared)
            place = name.removeprefix(family.partition("<")[0])
            setting = self._declared[family]
            if not place:
                raise ValueError(f"{name}: there has to be something in the place of {family[len(name) :]}")
            _check(setting, value, place)
            self._families[family][place] = value
        else:
            _check(setting, value)
            self._by_name[name] = _typed(setting, value)
        return setting

    def change(self, values: Mapping[str, Value]) -> None:
        """Give other values, and call what was given to `on_change`."""
        for name, value in values.items():
            self._take(name, value)
        for call in self._calls:
            call(frozenset(values))

    def family(self, name: str) -> Mapping[str, Value]:
        if name not in self._families:
            raise UndeclaredSettingError(name, self._families)
        return self._families[name]

    def on_change(self, call: Callable[[frozenset[str]], None]) -> Callable[[], None]:
        self._calls.append(call)

        def end() -> None:
            self._calls = [one for one in self._calls if one is not call]

        return end


def _typed(setting: Setting, value: Value) -> Value:
    return float(value) if setting.type is Type.DOUBLE and type(value) is int else value


def _check(setting: Setting, value: Value, member: str = "") -> None:
    """Raises ValueError where a broker would refuse the value, for a `member` of a family."""
    if value is None and setting.default is None:
        return
    kinds = _PYTHON[setting.type]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise ValueError(f"{setting.name} is of type {setting.type.value}: {value!r} is none")
    if isinstance(value, int | float):
        if setting.minimum is not None and value < setting.minimum:
            raise ValueError(f"{setting.name}: {value} is less than {setting.minimum}")
        if setting.maximum is not None and value > setting.maximum:
            raise ValueError(f"{setting.name}: {value} is more than {setting.maximum}")
    if setting.choices and value not in setting.choices:
        raise ValueError(f"{setting.name}: {value!r} is none of {', '.join(setting.choices)}")
    reason = setting.check(value) if setting.check is not None else None
    if not reason and setting.check_member is not None:
        reason = setting.check_member(member, value)
    if reason:
        raise ValueError(f"{setting.name}: {reason}")


def fixed_settings(
    declared: Iterable[Setting] = (), values: Mapping[str, Value] | None = None
) -> FixedSettings:
    """Settings as a plugin reads them: the defaults of `declared`, and `values` by name, as Python has them (`True`,
    `5`, `("a", "b")`). Raises KeyError for a name that is not declared, ValueError for a value that a broker would
    refuse."""
    return FixedSettings(declared, values or {})


def topic_context(
    topic: str = "test",
    *,
    plugin: ModuleType | None = None,
    settings: Mapping[str, Value] | None = None,
    topic_settings: Mapping[str, Value] | None = None,
    clock: HandClock | None = None,
    schemas: SchemaProvider | None = None,
) -> TopicContext:
    """The context that a filter or a validator is made with. `plugin` is the plugin's module: its hooks say which
    settings there are, and its `PLUGIN` whose metrics it makes. Its broker has this topic only, with one partition, and
    the schema provider that is given. Errors as `fixed_settings`."""
    clock = clock or HandClock()
    own = settings_of(plugin, "leafcuttr_register_settings", settings)
    logger = logging.getLogger("leafcuttr.plugin.test")
    name = getattr(getattr(plugin, "PLUGIN", None), "name", "test")
    return TopicContext(
        topic,
        settings_of(plugin, "leafcuttr_register_topic_settings", topic_settings),
        own,
        clock,
        logger,
        FixedBroker(topic, own, clock, logger, name, schemas),
        schemas,
    )


def settings_of(plugin: ModuleType | None, hook: str, values: Mapping[str, Value] | None) -> Settings:
    """The settings that a hook of the plugin declares, with these values."""
    declare = cast("Callable[[], Iterable[Setting]] | None", getattr(plugin, hook, None))
    return fixed_settings(declare() if declare is not None else (), values)
