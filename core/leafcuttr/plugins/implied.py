"""Which topic settings of installed plugins imply a filter or validator (`implied_by`), whether or not a plugin is on.

A plugin that is off, or has failed, is asked too if it declares topic settings: a topic that has one set must not take
records past what it implies. A bundled one that is off is asked once there is such a topic. What topics make of it is
`state.implied_parts`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from leafcuttr.errors import PluginError
from leafcuttr.plugins.loaded import PluginState

if TYPE_CHECKING:
    from leafcuttr.config.setting import ConfigKey
    from leafcuttr.config.settings import Settings
    from leafcuttr.plugins.loaded import Loaded
    from leafcuttr.state.implied_parts import Implied, Unasked
    from leafcuttr_sdk.filters import ProduceValidatorSpec, RecordFilterSpec

    Spec: TypeAlias = RecordFilterSpec | ProduceValidatorSpec


class SaidImplied(NamedTuple):
    """What plugins say, which of them, and what became of those that are not on."""

    implied: "list[Implied]"
    by: set[str]
    absent: dict[str, str]
    unasked: "list[Unasked]"


def what_is_implied(settings: "Settings", plugins: "Iterable[Loaded]") -> SaidImplied:
    """Of all plugins that can be asked. One whose hook fails is not among those that have said something."""
    said = SaidImplied([], set(), {}, [])
    for one in plugins:
        lacks = ""
        if one.state is not PluginState.ENABLED:
            lacks = said.absent[one.name] = f"which is {one.became}: {one.why}"
            # What is bundled has hooks that are quick: they do not hold the loop when a topic is changed.
            if one.state is PluginState.OFF and one.origin.bundled:
                said.unasked.extend(_later(one, settings, lacks))
                continue
        try:
            found = list(_of(one, settings, lacks))
        except PluginError:
            continue
        if one.hooks is not None:
            said.implied.extend(found)
            said.by.add(one.name)
    return said


def _later(one: "Loaded", settings: "Settings", lacks: str) -> "Iterator[Unasked]":
    """Nothing of a plugin without topic settings."""
    from leafcuttr.state.implied_parts import Implied, Unasked

    def ask() -> "list[Implied]":
        try:
            return list(_of(one, settings, lacks))
        except PluginError:
            return []

    may_imply = [Implied(row, "", "", one.name, lacks) for row in _rows(one, settings).values()]
    if may_imply:
        yield Unasked(one.name, may_imply, ask)


def refuse_undeclared(one: "Loaded", specs: "Iterable[Spec]") -> None:
    """Raises PluginError if one is implied by what is no topic setting of its plugin."""
    names = {setting.name for setting in one.topic_settings}
    for spec in specs:
        for name in spec.implied_by:
            if name not in names:
                raise PluginError(
                    f"{spec.name} is implied by {name}, which leafcuttr_register_topic_settings does not declare"
                )


def _of(one: "Loaded", settings: "Settings", lacks: str) -> "Iterator[Implied]":
    """Raises PluginError."""
    from leafcuttr.state.implied_parts import FILTERS, VALIDATORS, Implied

    filters, validators = _specs(one, settings)
    refuse_undeclared(one, (*filters, *validators))
    rows = _rows(one, settings)
    for kind, specs in ((VALIDATORS, validators), (FILTERS, filters)):
        for spec in specs:
            for name in spec.implied_by:
                if name not in rows:
                    raise PluginError(f"its setting {name} could not be added")
                yield Implied(rows[name], kind, spec.name, one.name, lacks)


def _rows(one: "Loaded", settings: "Settings") -> "dict[str, ConfigKey]":
    """Its topic settings, by name."""
    return {
        row.name: row
        for section in settings.catalog.sections
        if section.plugin == one.name
        for row in section.topic
    }


def _specs(one: "Loaded", settings: "Settings") -> "tuple[Sequence[Spec], Sequence[Spec]]":
    """Its filters and validators. Raises PluginError."""
    if one.state is PluginState.ENABLED:
        return one.record_filters, one.produce_validators
    if one.hooks is None or not one.topic_settings:
        return (), ()
    from leafcuttr.plugins import registration

    return record_filters_of(one, settings), one.hooks.call(registration.PRODUCE_VALIDATORS)


def record_filters_of(one: "Loaded", settings: "Settings") -> "Sequence[RecordFilterSpec]":
    """What its hook returns with these settings of a broker. Raises PluginError."""
    from leafcuttr.plugins import registration
    from leafcuttr.plugins.settings_views import plugin_settings

    if one.hooks is None:
        return ()
    return one.hooks.call(registration.RECORD_FILTERS, settings=plugin_settings(settings, one.name))
