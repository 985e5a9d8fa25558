"""The setting that switches a plugin on, `Plugin.enabled_by`: a boolean that is true, a text that is set, or a family
(`lc.x.<name>`) that has a member."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leafcuttr.config.settings import Settings


class _Declared(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def type(self) -> "_Type": ...


class _Type(Protocol):
    @property
    def name(self) -> str: ...


def is_on(settings: "Settings", switch: str | None) -> bool:
    """Whether a plugin with this switch is on. Without one it is."""
    return switch is None or bool(settings.family(switch) if is_family(switch) else settings.value(switch))


def is_family(switch: str) -> bool:
    """Whether any of many settings switches it on."""
    return switch.endswith(">")


def given_name(settings: "Settings", switch: str) -> str:
    """The setting that a person gave, of a switch that is on: of a family its first member."""
    if not is_family(switch):
        return switch
    return switch.partition("<")[0] + next(iter(settings.family(switch)))


def how_to(switch: str, declared: Iterable[_Declared]) -> str:
    """What a person gives to switch it on: `lc.x.enable=true`, or `lc.x.topic=...` where any value does. `declared`
    are the plugin's settings, as it declares them or as rows of the catalogue."""
    is_boolean = any(one.name == switch and one.type.name == "BOOLEAN" for one in declared)
    return f"{switch}=true" if is_boolean else f"{switch}=..."
