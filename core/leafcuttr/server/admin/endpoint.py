"""The admin endpoint of one broker, put together: its paths, checks and metrics. `listening` serves it.

What plugins have added to the broker is part of it from the start; metrics also when they come later.
"""

import os
import time
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr.server.admin import plugged
from leafcuttr.server.admin.health import broker_checks
from leafcuttr.server.admin.router import Request, Response, Router, as_json
from leafcuttr.server.listener import Connections
from leafcuttr.server.ready import address
from leafcuttr.state.broker import Broker
from leafcuttr.version import __version__
from leafcuttr_sdk.admin import Finding
from leafcuttr_sdk.trouble import import_late

if TYPE_CHECKING:
    from leafcuttr.server.admin.access import AdminAccess
    from leafcuttr.server.admin.exposition import Scrapes

_FOR_SCRAPES: Final = (
    "prometheus_client.openmetrics.exposition",
    "prometheus_client.process_collector",
    "leafcuttr.server.admin.exposition",
    "leafcuttr.server.admin.readings",
    "leafcuttr.server.admin.gathering",
)


class AdminEndpoint:
    """`router` and `health` may be added to."""

    def __init__(self, broker: Broker, connections: Connections) -> None:
        self._broker = broker
        self._connections = connections
        self._began = broker.began
        self._scrapes: Scrapes | None = None
        self.health = broker_checks(broker, connections)
        self.router = Router()
        self.router.add("/", self._index, "this list")
        self.router.add("/metrics", self._metrics, "metrics for Prometheus")
        self.router.add("/health", self._health, "every health check")
        self.router.add("/health/live", self._live, "200 while the broker's event loop runs")
        self.router.add("/health/ready", self._ready, "200 while the broker serves, else 503")
        for check in plugged.health_checks(broker.plugged):
            self.health.add(check)
        self.health.add_passing(lambda: plugged.child_checks(broker.plugged))
        plugged.add_routes(broker.plugged, self.router)
        self.access = _access(broker)

    async def _index(self, _: Request) -> Response:
        return as_json({"leafcuttr": __version__, "paths": self.router.paths()})

    async def _metrics(self, request: Request) -> Response:
        if self._scrapes is None:
            await trio.to_thread.run_sync(self._import)
        if self._scrapes is None:  # no other scrape was faster
            self._scrapes = self._first_scrape()
        return await self._scrapes(request)

    def _import(self) -> None:
        """In a worker thread: what only scrapes need, prometheus_client above all, takes a tenth of a second. Raises
        OSError."""
        self._broker.runtime.descriptors.opening(lambda: import_late(*_FOR_SCRAPES))

    def _first_scrape(self) -> "Scrapes":
        from leafcuttr.server.admin.exposition import Scrapes
        from leafcuttr.server.admin.gathering import Gatherer
        from leafcuttr.server.admin.readings import broker_families

        families = broker_families(lambda: plugged.readings(self._broker.plugged))
        return Scrapes(families, Gatherer(self._broker, self._connections, self.health))

    async def _live(self, _: Request) -> Response:
        return as_json({"status": "ok"})

    async def _ready(self, _: Request) -> Response:
        missing = self.health.missing()
        if missing:
            return as_json({"status": "not ready", "failing": missing}, 503)
        return as_json({"status": "ok"})

    async def _health(self, _: Request) -> Response:
        found = self.health.findings()
        failing = [check for check, finding in found.items() if not finding.fine]
        ready = not any(check.required for check in failing)
        return as_json(
            {
                "status": "ok" if not failing else "degraded" if ready else "not ready",
                "version": __version__,
                "node_id": self._broker.node_id,
                "cluster_id": self._broker.cluster_id,
                "pid": os.getpid(),
                "uptime_seconds": round(time.monotonic() - self._began, 3),
                "listeners": {listener.name: listener.advertised for listener in self._broker.listeners},
                "plugin_listeners": {
                    name: f"{listener.protocol}://{address(listener.host, listener.port)}"
                    for name, listener in self._broker.plugged.listeners.items()
                },
                "checks": {
                    check.name: _shown(check.required, check.summary, one) for check, one in found.items()
                },
            },
            200 if ready else 503,
        )


def _access(broker: Broker) -> "AdminAccess | None":
    """None where everybody may do everything."""
    if broker.authorizer is None and tuple(broker.settings.list("lc.metrics.auth")) == ("none",):
        return None
    broker.runtime.descriptors.import_late("leafcuttr.server.admin.access")
    from leafcuttr.server.admin.access import AdminAccess

    return AdminAccess(broker)


def _shown(required: bool, summary: str, found: Finding) -> dict[str, object]:
    shown = {"ok": found.fine, "required": required, "looks_at": summary}
    return {**shown, "detail": found.detail} if found.detail else shown
