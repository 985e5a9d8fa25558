"""What plugins have added to a running broker, for those parts of it that show or use it. Who fills it is
`leafcuttr.plugins`; nothing is called from here."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from leafcuttr.config.listeners import Listener
    from leafcuttr.metrics.added import AddedMetrics
    from leafcuttr_sdk.admin import AdminRoute, HealthCheck


class ServiceState(Protocol):
    """How a service fares."""

    @property
    def name(self) -> str: ...
    @property
    def plugin(self) -> str: ...
    @property
    def up(self) -> bool:
        """It serves."""
        ...

    @property
    def trouble(self) -> str:
        """Why it does not, in one line; empty while it is up or on its way."""
        ...

    @property
    def restarts(self) -> int: ...
    @property
    def left(self) -> bool:
        """It did not end when the broker stopped, and may go on until the process ends."""
        ...

    @property
    def blocks(self) -> int:
        """How often it has held the loop for too long."""
        ...


class FoundPlugin(Protocol):
    """A plugin that is installed, whether or not it is on."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str:
        """Of its distribution; empty if it has none."""
        ...

    @property
    def became(self) -> str:
        """`enabled`, `off`, `disabled`, `unavailable` or `failed`."""
        ...


class Plugged:
    """`found` are all plugins, whatever became of them. `listeners` are those that plugins have bound, by the prefix of
    their settings, and `warned` the prefixes of those that a warning was given of; `checks` and `routes` have the name
    of their plugin beside them."""

    def __init__(self) -> None:
        self.found: Sequence[FoundPlugin] = ()
        self.services: Sequence[ServiceState] = ()
        self.listeners: dict[str, Listener] = {}
        self.warned: set[str] = set()
        self.checks: list[tuple[str, HealthCheck]] = []
        self.routes: list[tuple[str, AdminRoute]] = []

    @cached_property
    def metrics(self) -> "AddedMetrics":
        """Made when a plugin is on, or metrics are read."""
        from leafcuttr.metrics.added import AddedMetrics

        return AddedMetrics()

    @property
    def left_behind(self) -> bool:
        """Whether a service has not ended. trio would wait for it."""
        return any(service.left for service in self.services)
