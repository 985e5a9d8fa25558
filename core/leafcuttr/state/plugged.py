"""What plugins have added to a running broker, for those parts of it that show or use it. `leafcuttr.plugins`
fills it; nothing is called from here."""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from leafcuttr.runtime.plugin_parts import Failures, Part

if TYPE_CHECKING:
    import trio

    from leafcuttr.config.listeners import Listener
    from leafcuttr.metrics.added import AddedMetrics
    from leafcuttr_sdk.admin import AdminRoute, HealthCheck
    from leafcuttr_sdk.authentication import AuthenticationExchange, AuthenticatorSpec
    from leafcuttr_sdk.broker import Broker as SdkBroker
    from leafcuttr_sdk.filters import FilterChain
    from leafcuttr_sdk.schemas import SchemaFormat, SchemaProvider
    from leafcuttr_sdk.security import AuthorizerSpec


logger = logging.getLogger("leafcuttr.plugins")

SASL_MECHANISMS: Final = "lc.sasl.mechanisms"
"""The setting that names the SASL mechanisms of plugins."""
OWN_AUTHENTICATOR: Final = "broker"
"""The name of the authenticator that the broker brings itself (`plugins.log_ins`)."""


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
    def waits_for(self) -> str:
        """What it lacks for now although it is up, in one line; empty if nothing."""
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


class LoopHolder(NamedTuple):
    """A part of a plugin that holds the event loop, and where it is."""

    part: str
    place: str


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

    @property
    def left_out(self) -> bool:
        """Whether the broker lacks it that should have it."""
        ...

    @property
    def why(self) -> str:
        """One line, for any state but enabled."""
        ...


class ServedListener(Protocol):
    """A listener that `Broker.serve` serves."""

    @property
    def ends(self) -> Mapping[str, int]:
        """How many connections have ended in each way."""
        ...

    @property
    def failures(self) -> Sequence[str]:
        """What its handler has raised last, a line each."""
        ...

    @property
    def accepted(self) -> int:
        """How many connections there have been."""
        ...

    @property
    def connections(self) -> int:
        """How many are open."""
        ...


class ServedCounts:
    """What was counted of a listener that `Broker.serve` serves, however often its service was started again: the
    connections that were accepted, those that are open, and in `ends` by kind (`plugins.serving.ends`) those that have
    ended not as they should; there also how many were refused, and how often accepting paused."""

    def __init__(self, plugin: str) -> None:
        self.plugin: Final = plugin
        self.accepted = 0
        self.open = 0
        self.ends: Final[Counter[str]] = Counter()

    def ended(self) -> Iterator[tuple[str, int]]:
        """Connections that have ended, by kind; `closed` are those that ended as they should."""
        kinds = {kind: count for kind, count in self.ends.items() if kind not in ("refused", "pause")}
        yield "closed", self.accepted - self.open - sum(kinds.values())
        yield from kinds.items()


class Workers(Protocol):
    """The worker processes in which functions of plugins run."""

    @property
    def pids(self) -> Sequence[int]:
        """Of the processes that there are."""
        ...

    async def run(
        self,
        plugin: str,
        function: Callable[..., Any],
        arguments: tuple[object, ...],
        *,
        deadline_s: float,
        memory_bytes: int,
    ) -> Any:
        """See `leafcuttr_sdk.Broker.run_in_worker`."""
        ...


class ChildState(Protocol):
    """How a program that a plugin runs fares: see `leafcuttr_sdk.children.Child`."""

    @property
    def name(self) -> str: ...
    @property
    def plugin(self) -> str: ...
    @property
    def up(self) -> bool: ...
    @property
    def is_done(self) -> bool:
        """It has ended well, and is not started again."""
        ...

    @property
    def trouble(self) -> str: ...
    @property
    def restarts(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def stop_s(self) -> float:
        """How long it may take to end."""
        ...


class Plugged:
    """`found` are all plugins, whatever became of them. `listeners` are those that plugins have bound, by the prefix of
    their settings, `served` those of them that the broker serves, `counts` of every one that it has served, and
    `connections` the number of theirs that are open. `warned` are the prefixes of listeners that a warning was given
    of; `checks`, `routes` and `authenticators` (by name) have the name of their plugin beside them, and so has the
    `schema_provider`; `schema_formats` are there by name.
    `mechanisms` are those of SASL that `lc.sasl.mechanisms` names, each with what begins an exchange of it.
    `authorizers` are those that there are, with their plugins and the views of these; `log_ins` those of clients of
    plugins (`plugins.log_ins`), from their first use on.
    `record_filters` makes filters outside of topics' chains, by their names, for a topic; any thread.
    `failures` logs what parts of plugins raise. Within `starting()` they may hold the loop for as long as before the
    broker serves: `plugins check` makes services there for the first time. `workers` are there from their first use on,
    in `background`, which is open from before the first service runs until after the last. `children` are the programs
    that plugins run, by plugin and name."""

    def __init__(self) -> None:
        self.failures = Failures()
        self.found: Sequence[FoundPlugin] = ()
        self.services: Sequence[ServiceState] = ()
        self.listeners: dict[str, Listener] = {}
        self.served: dict[str, ServedListener] = {}
        self.counts: dict[str, ServedCounts] = {}
        self.connections = 0
        self.warned: set[str] = set()
        self.checks: list[tuple[str, HealthCheck]] = []
        self.routes: list[tuple[str, AdminRoute]] = []
        self.find_holder: Callable[[], LoopHolder | None] | None = None
        self.starting: Callable[[], AbstractContextManager[None]] = nullcontext
        self.authenticators: dict[str, tuple[str, AuthenticatorSpec]] = {}
        self.mechanisms: Mapping[str, Callable[[], AuthenticationExchange]] = {}
        self.authorizers: list[tuple[str, AuthorizerSpec, SdkBroker]] = []
        self.log_ins: Any = None
        self.schema_formats: Mapping[str, SchemaFormat] = {}
        self.schema_provider: tuple[str, SchemaProvider] | None = None
        self.record_filters: Callable[[Sequence[str], str], FilterChain] | None = None
        self.background: trio.Nursery | None = None
        self.workers: Workers | None = None
        self.children: dict[tuple[str, str], ChildState] = {}
        self._left = False

    @cached_property
    def metrics(self) -> "AddedMetrics":
        """Made when a plugin is on, or metrics are read."""
        from leafcuttr.metrics.added import AddedMetrics

        return AddedMetrics()

    def counts_of(self, plugin: str, prefix: str) -> ServedCounts:
        """Those of the listener with this prefix."""
        return self.counts.setdefault(prefix, ServedCounts(plugin))

    def children_of(self, plugin: str) -> list[ChildState]:
        """The programs that a plugin runs."""
        return [child for child in list(self.children.values()) if child.plugin == plugin]

    def holder(self) -> LoopHolder | None:
        """Which part of a plugin holds the event loop, if one does. Any thread."""
        return None if self.find_holder is None else self.find_holder()

    def leave(self, parts: Sequence[Part]) -> None:
        """Tasks of these have not ended when the broker stopped, and it does not wait for them."""
        self._left = True
        for part in parts:
            logger.error("the %s has not ended when the broker stopped: it is left behind", part)

    @property
    def left_behind(self) -> bool:
        """Whether a service, or another task of a plugin, has not ended. trio would wait for it."""
        return self._left or any(service.left for service in self.services)
