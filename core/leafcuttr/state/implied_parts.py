"""Validators and filters that topic settings of their plugin imply (`implied_by`): which topics have them, and what is
remembered of them while their plugin is off or gone.

Whether a topic has one is found out from its settings alone. A setting implies while it is at another value than its
default; a member of a family, while it is there. What a plugin's hooks say is stored with the metadata, so a topic
whose setting no installed plugin knows any more is known to lack something, and takes no records
(`state.chains`). It is forgotten once the plugin is there and says otherwise, or no topic has the setting.

A plugin may be asked later (`Unasked`): a start without any use of its topic settings then costs nothing.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from leafcuttr.config.catalog import Catalog
from leafcuttr.config.setting import BadValueError, ConfigKey, ConfigType, Value, render
from leafcuttr.config.settings import Settings
from leafcuttr.config.topic import TopicConfig, topic_config
from leafcuttr.errors import InvalidConfig, StorageError
from leafcuttr.state.metadata import MetadataStore, StoredImplied

FILTERS: Final = "lc.filters"
VALIDATORS: Final = "lc.validators"
KINDS: Final = {FILTERS: "record filter", VALIDATORS: "produce validator"}

logger = logging.getLogger(__name__)


class Implied(NamedTuple):
    """A validator or filter that a topic setting implies. `kind` is FILTERS or VALIDATORS; `setting` may be a family.
    `lacks` says what became of its plugin, if it cannot be had: `which is off: ...`."""

    setting: ConfigKey
    kind: str
    name: str
    plugin: str
    lacks: str = ""

    @property
    def needs(self) -> str:
        """What is missing, for a person."""
        return f"it needs the {KINDS[self.kind]} {self.name} of plugin {self.plugin}, {self.lacks}"

    def found_in(
        self, catalog: Catalog, config: TopicConfig, overrides: Mapping[str, str], broker: Mapping[str, str]
    ) -> str | None:
        """The setting by which a topic has it, if it has. `overrides` are what the topic overrides as texts, which may
        be of a setting that is unknown now; `broker` what the broker has under unknown names."""
        if self.setting.is_family:
            names = {**config.extra, **overrides}
            return next((name for name in names if self._is_member(catalog, name)), None)
        name = self.setting.name
        if name in overrides:
            implies = self.is_implied_by(overrides[name])
        elif name in config.extra:
            implies = config.extra[name] != self.setting.default
        else:
            implies = name in broker and self.is_implied_by(broker[name])
        return name if implies else None

    def is_implied_by(self, text: str) -> bool:
        """Whether this text, for the setting or a member of the family, is another value than the default. One that is
        not valid any more is: to be on the safe side."""
        try:
            value: Value = self.setting._replace(choices=(), check=None, minimum=None, maximum=None).parse(
                text
            )
        except BadValueError:
            return True
        return self.setting.is_family or value != self.setting.default

    def _is_member(self, catalog: Catalog, name: str) -> bool:
        """Of this family, and of none with a longer beginning."""
        prefix = self.setting.prefix
        if not name.startswith(prefix) or name == prefix or name in catalog.topic:
            return False
        return not any(
            len(other) > len(prefix) and name.startswith(other) and name != other
            for other in catalog.topic_families
        )


class Unasked(NamedTuple):
    """A plugin that is asked what its topic settings imply once one of them is set: each of `may_imply` stands for what
    a setting of it may imply. `ask` is called on the event loop and does not fail: where its hook does, nothing is
    implied."""

    plugin: str
    may_imply: Sequence[Implied]
    ask: Callable[[], Iterable[Implied]]


class WantedParts(NamedTuple):
    """What a topic has, in order: what its settings imply, then what they name. `lack` says why some of it cannot be
    had."""

    validators: tuple[str, ...]
    filters: tuple[str, ...]
    lack: str = ""

    def __bool__(self) -> bool:
        return bool(self.validators or self.filters or self.lack)


class ImpliedParts:
    """All of them; until `replace` those that are remembered."""

    def __init__(self, metadata: MetadataStore, settings: Settings) -> None:
        self._metadata = metadata
        self._settings = settings
        self._all: tuple[Implied, ...] = tuple(map(_remembered, metadata.implied_parts()))
        self._unasked: tuple[Unasked, ...] = ()

    def replace(
        self,
        said: Sequence[Implied],
        by: Collection[str],
        lacks: Mapping[str, str],
        topics: Iterable[Mapping[str, str]],
        unasked: Iterable[Unasked] = (),
    ) -> None:
        """From now on there are these, which the plugins named by `by` have said, and of other plugins what is
        remembered and still set: `lacks` says what became of them, if they are installed, and `topics` what topics
        override. Of the `unasked` those are asked now whose settings are set. A disk that refuses to remember is a line
        in the log."""
        present, unasked = list(topics), tuple(unasked)
        answered = {*by, *(one.plugin for one in unasked)}
        kept = [
            each._replace(lacks=lacks.get(each.plugin, "which is not installed"))
            for each in self._all
            if each.plugin not in answered and self._is_set(each, present)
        ]
        self._all, self._unasked = (*said, *kept), unasked
        defaults = topic_config(self._settings)
        overridden = ({}, *filter(None, present))  # most topics override nothing
        self._ask_where(lambda one: any(self._is_found_in(defaults, each, one) for each in overridden))
        self._remember()

    def wanted(self, config: TopicConfig, overrides: Mapping[str, str]) -> WantedParts:
        """What a topic with these settings has."""
        self._ask_where(partial(self._is_found_in, config, overrides))
        if not self._all:
            return WantedParts(config.lc_validators, config.lc_filters)
        names: dict[str, list[str]] = {VALIDATORS: [], FILTERS: []}
        lack = ""
        for each, setting in self._found(config, overrides):
            names[each.kind].append(each.name)
            if each.lacks and not lack:
                lack = f"it has {setting}, and for that {each.needs}"
        return WantedParts(
            tuple(dict.fromkeys((*names[VALIDATORS], *config.lc_validators))),
            tuple(dict.fromkeys((*names[FILTERS], *config.lc_filters))),
            lack,
        )

    def vet(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Raise InvalidConfig for a setting, of a topic or its default of the broker, that would imply what cannot be
        had. What there is already is let pass, as for names in `lc.filters`."""
        self._ask_where(lambda one: any(self._set_anew(one, before, after)))
        for each in self._all:
            if not each.lacks:
                continue
            for name in self._set_anew(each, before, after):
                shown = "[hidden]" if each.setting.sensitive else after[name]
                raise InvalidConfig(f"Invalid value {shown} for configuration {name}: {each.needs}")

    # Steps of the above

    def _ask_where(self, is_set: Callable[[Implied], bool]) -> None:
        """Ask the plugins of which a setting is set, and remember what they say."""
        asked = [one for one in self._unasked if any(map(is_set, one.may_imply))]
        if asked:
            self._unasked = tuple(one for one in self._unasked if one not in asked)
            for one in asked:
                self._all = (*self._all, *one.ask())
            self._remember()

    def _remember(self) -> None:
        rows = sorted({*map(_stored, self._all)})  # a plugin may say the same twice
        try:
            if rows != sorted(self._metadata.implied_parts()):
                self._metadata.set_implied_parts(rows)
        except StorageError as error:
            logger.error("which topic settings imply filters and validators is not stored: %s", error)

    def _found(self, config: TopicConfig, overrides: Mapping[str, str]) -> Iterator[tuple[Implied, str]]:
        for each in self._all:
            setting = self._found_in(each, config, overrides)
            if setting is not None:
                yield each, setting

    def _found_in(self, each: Implied, config: TopicConfig, overrides: Mapping[str, str]) -> str | None:
        return each.found_in(self._settings.catalog, config, overrides, self._settings.unknown)

    def _is_found_in(self, config: TopicConfig, overrides: Mapping[str, str], each: Implied) -> bool:
        return self._found_in(each, config, overrides) is not None

    def _set_anew(self, each: Implied, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
        """The names in `after` whose texts were not there before and imply it."""
        for name, text in after.items():
            is_it = (
                each._is_member(self._settings.catalog, name)
                if each.setting.is_family
                else name == each.setting.name
            )
            if is_it and text != before.get(name) and each.is_implied_by(text):
                yield name

    def _is_set(self, each: Implied, topics: Sequence[Mapping[str, str]]) -> bool:
        """By a topic, or by the broker under a name that is unknown now."""
        name, catalog = each.setting.name, self._settings.catalog
        if each.setting.is_family:
            return any(each._is_member(catalog, one) for overrides in topics for one in overrides)
        known = name in catalog.topic
        return known or name in self._settings.unknown or any(name in overrides for overrides in topics)


def _remembered(stored: StoredImplied) -> Implied:
    setting, kind, name, plugin, type_, default = stored
    key = ConfigKey(setting, ConfigType(type_), None, "")
    if default is not None:
        key = key._replace(default=key.parse(default))
    return Implied(key, kind, name, plugin, "whose part has not been made yet")


def _stored(implied: Implied) -> StoredImplied:
    setting = implied.setting
    default = None if setting.is_family else render(setting.default)
    return StoredImplied(setting.name, implied.kind, implied.name, implied.plugin, int(setting.type), default)
