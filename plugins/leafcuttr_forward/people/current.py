"""The flows that run in a broker: the service that runs them puts them here, health, metrics and the admin port find
them here."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from leafcuttr_forward.flows.report import FlowReport
    from leafcuttr_sdk.broker import Broker


@dataclass(slots=True)
class RunningFlows:
    """What runs. All of it is of the loop's thread."""

    reports: "dict[str, FlowReport]" = field(default_factory=dict[str, "FlowReport"])
    """By the flow's name."""
    notes: Sequence[str] = ()
    """What the configuration says that has no effect, in lines."""

    def all(self) -> "Iterable[FlowReport]":
        """In the order in which they were made."""
        return tuple(self.reports.values())


_RUNNING: "WeakKeyDictionary[Broker, RunningFlows]" = WeakKeyDictionary()


def running_of(broker: "Broker") -> RunningFlows:
    """Of this broker; without flows until its service has made some."""
    found = _RUNNING.get(broker)
    if found is None:
        found = _RUNNING[broker] = RunningFlows()
    return found
