"""Which service is started after which: what they need, put in order. Without tasks and clocks."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from leafcuttr.errors import StartError
from leafcuttr_sdk.broker import Broker
from leafcuttr_sdk.plugin import StartFailure
from leafcuttr_sdk.services import ServiceSpec


class Planned(NamedTuple):
    """A service to be, its plugin, and the broker as that plugin sees it."""

    plugin: str
    spec: ServiceSpec
    broker: Broker
    stops_start: frozenset[StartFailure] = frozenset({StartFailure.TAKEN, StartFailure.REFUSED})
    """What ends the start of the broker, if it happens at the first start of the service."""

    def __str__(self) -> str:
        return f"service {self.spec.name} of plugin {self.plugin}"


class CannotStart(StartError):
    """A service cannot be put in order; `plugin` is the one that has it."""

    def __init__(self, plugin: str, why: str) -> None:
        super().__init__(why)
        self.plugin = plugin


def in_order(planned: Sequence[Planned]) -> list[Planned]:
    """Each behind those it needs, else as given. Raises CannotStart, one line: a name that comes twice, a need that
    no plugin meets, services that need each other in a circle."""
    by_name: dict[str, Planned] = {}
    for one in planned:
        other = by_name.setdefault(one.spec.name, one)
        if other is not one:
            raise CannotStart(
                one.plugin,
                f"two services are named {one.spec.name}: of plugins {other.plugin} and {one.plugin}",
            )
    for one in planned:
        for need in one.spec.needs:
            if need not in by_name:
                raise CannotStart(
                    one.plugin,
                    f"its service {one.spec.name} needs the service {need}, and no plugin that is on has it",
                )
    placed: dict[str, Planned] = {}
    for one in planned:
        _place(one, by_name, placed, ())
    return list(placed.values())


def _place(
    one: Planned, by_name: Mapping[str, Planned], placed: dict[str, Planned], above: tuple[str, ...]
) -> None:
    name = one.spec.name
    if name in above:
        circle = " -> ".join((*above[above.index(name) :], name))
        raise CannotStart(one.plugin, f"services need each other in a circle: {circle}")
    if name in placed:
        return
    for need in one.spec.needs:
        _place(by_name[need], by_name, placed, (*above, name))
    placed[name] = one
