"""Which service is started after which: what they need, put in order. No task and no clock is here."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from leafcuttr.errors import StartError
from leafcuttr_sdk.broker import Broker
from leafcuttr_sdk.services import ServiceSpec


class Planned(NamedTuple):
    """A service to be, its plugin, and the broker as that plugin sees it."""

    plugin: str
    spec: ServiceSpec
    broker: Broker

    def __str__(self) -> str:
        return f"service {self.spec.name} of plugin {self.plugin}"


def in_order(planned: Sequence[Planned]) -> list[Planned]:
    """Each behind those it needs, else as given. Raises StartError, one line: a name that comes twice, a need that
    nobody meets, services that need each other in a circle."""
    by_name: dict[str, Planned] = {}
    for one in planned:
        other = by_name.setdefault(one.spec.name, one)
        if other is not one:
            raise StartError(
                f"two services are named {one.spec.name}: of plugins {other.plugin} and {one.plugin}"
            )
    for one in planned:
        for need in one.spec.needs:
            if need not in by_name:
                raise StartError(f"{one} needs the service {need}, and no plugin that is on has it")
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
        raise StartError(f"services need each other in a circle: {circle}")
    if name in placed:
        return
    for need in one.spec.needs:
        _place(by_name[need], by_name, placed, (*above, name))
    placed[name] = one
