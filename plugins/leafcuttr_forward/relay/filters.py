"""Filters of kaf-relay's configuration as record filters: `[filters.NAME]` becomes the setting
`lc.record.filter.NAME`, by which the plugin `filters` makes them. Go plugins are refused with a line."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from leafcuttr_sdk.errors import PluginError

if TYPE_CHECKING:
    from leafcuttr_forward.flows.making import MakeChain
    from leafcuttr_forward.relay.plan import FilterPlan
    from leafcuttr_sdk.cli import CommandContext
    from leafcuttr_sdk.filters import FilterChain

FilterPlans: TypeAlias = "Sequence[FilterPlan]"
_SETTING: Final = "lc.record.filter."
_MACHINE_CODE: Final = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")
_GO_ENDINGS: Final = (".so", ".bin", ".filter", ".go")


def names_of(filters: FilterPlans) -> tuple[str, ...]:
    """Of those that are on, in their order."""
    return tuple(each.name for each in filters if each.enabled)


def filters_of(context: "CommandContext", filters: FilterPlans) -> "MakeChain | None":
    """None where no filter is on. Raises PluginError for one that cannot be."""
    on = [each for each in filters if each.enabled]
    for each in on:
        _refuse_go(each)
    if not on:
        return None
    settings = {f"{_SETTING}{each.name}": text for each in on if (text := _setting(each)) is not None}

    async def make(names: "Sequence[str]", topic: str) -> "FilterChain":
        return context.record_filters(names, topic, settings)

    return make


def _refuse_go(one: "FilterPlan") -> None:
    """Raises PluginError."""
    path = Path(one.path)
    code = path.suffix in _GO_ENDINGS
    if not code and path.is_file():
        with path.open("rb") as file:
            code = file.read(4).startswith(_MACHINE_CODE)
    if code:
        raise PluginError(
            f"the filter {one.name} ({one.path}) is a Go plugin, which cannot be loaded here: write its IsAllowed as a "
            f"Python function, and give its file or module:function as path"
        )


def _setting(one: "FilterPlan") -> str | None:
    """None for one that is named already, by a setting or by a plugin."""
    if not one.path.endswith(".py") and ":" not in one.path:
        return None
    return f"python {one.path}"
