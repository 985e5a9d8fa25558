"""Filters of kaf-relay's configuration as record filters: `[filters.NAME]` becomes the setting
`lc.record.filter.NAME`, by which the plugin `filters` makes them. Go plugins are refused with a line."""

import re
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
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]")
_MACHINE_CODE: Final = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")
_GO_ENDINGS: Final = (".so", ".bin", ".filter", ".go")


def names_of(filters: FilterPlans) -> tuple[str, ...]:
    """Of the record filters of those that are on, in their order."""
    return tuple(_name(each) for each in filters if each.enabled)


def filters_of(context: "CommandContext", filters: FilterPlans) -> "MakeChain | None":
    """None where no filter is on. Raises PluginError for one that cannot be."""
    on = [each for each in filters if each.enabled]
    for each in on:
        _refuse_go(each)
    if not on:
        return None
    settings = {f"{_SETTING}{_name(each)}": _definition(each) for each in on if _is_python(each)}

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


def _is_python(one: "FilterPlan") -> bool:
    """Else it is the name of a record filter, which a setting or a plugin brings."""
    return ".py" in one.path or ":" in one.path


def _name(one: "FilterPlan") -> str:
    return _NOT_IN_NAMES.sub("-", one.name) if _is_python(one) else one.path


def _definition(one: "FilterPlan") -> str:
    config = f" config={_quoted(one.config)}" if one.config.strip() else ""
    return f"python path={_quoted(one.path)}{config}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
