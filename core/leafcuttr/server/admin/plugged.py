"""What plugins add to the admin endpoint, each behind a guard: one that raises, or gives what it should not, costs
itself only, and a line in the log a minute."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from typing import Final

import trio

from leafcuttr.metrics.added import encodable
from leafcuttr.runtime.complaints import Complaints
from leafcuttr.server.admin.router import Request, Response, Router, problem
from leafcuttr.state.plugged import Plugged, ServiceState
from leafcuttr_sdk.admin import AdminRoute, Finding, HealthCheck
from leafcuttr_sdk.metrics import LONGEST_LABEL, MOST_SAMPLES, Metric, MetricReading, Sample

logger = logging.getLogger(__name__)

PATH: Final = "/plugins/"
ANSWER_S: Final = 30.0
"""How long a plugin's handler may take: the admin port has room for 64 connections."""

_complain: Final = Complaints(logger)


def health_checks(plugged: Plugged) -> Iterator[HealthCheck]:
    """A check for each service, and those that plugins bring, with the plugin's name before theirs."""
    services = {service.name for service in plugged.services}
    for service in plugged.services:
        yield HealthCheck(
            f"service:{service.name}",
            f"the service {service.name} of plugin {service.plugin} runs",
            _look_at(service),
        )
    for plugin, check in plugged.checks:
        if plugin == "service" and check.name in services:
            continue  # a plugin that is called so, of all names
        yield check._replace(name=f"{plugin}:{check.name}")


def _look_at(service: ServiceState) -> Callable[[], Finding]:
    def look() -> Finding:
        return Finding(True) if service.up else Finding(False, service.trouble or "it is starting")

    return look


def add_routes(plugged: Plugged, router: Router) -> None:
    """Below `/plugins/<name>`. A path that ends with a slash is the same as one without."""
    for plugin, route in plugged.routes:
        path = f"{PATH}{plugin}{route.path}".rstrip("/")
        router.add(path, _guarded(plugin, path, route), route.summary)


def _guarded(plugin: str, path: str, route: AdminRoute) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            with trio.fail_after(ANSWER_S):
                response = await route.handler(request)
            if not isinstance(response, Response):
                raise TypeError(f"it returned a {type(response).__name__}, not a Response")
        except trio.TooSlowError:
            _tell(plugin, path, f"no answer within {ANSWER_S:.0f} s")
            return problem(504, "too_slow", f"plugin {plugin} did not answer within {ANSWER_S:.0f} s")
        except Exception as error:
            _tell(plugin, path, error)
            return problem(500, "plugin_failed", f"plugin {plugin} failed; the broker's log says more")
        if isinstance(response.body, bytes):
            return response
        return response._replace(body=_pieces(plugin, path, response.body))

    return answer


async def _pieces(plugin: str, path: str, body: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """A body that breaks off ends the connection, so that whoever reads it knows; here it gets its line."""
    async with aclosing(body):
        try:
            async for piece in body:
                yield piece
        except Exception as error:
            _tell(plugin, path, error)
            raise trio.BrokenResourceError from None  # as if the peer had gone


def readings(plugged: Plugged) -> Iterator[tuple[Metric, Callable[[object], Iterable[Sample]]]]:
    """The metrics that plugins have at this moment."""
    for plugin, reading in plugged.metrics.readings():
        yield reading.metric, _samples(plugin, reading)


def _samples(plugin: str, reading: MetricReading) -> Callable[[object], Iterator[Sample]]:
    """Those that can be shown: one bad sample would make Prometheus refuse all of a scrape. And no more than
    MOST_SAMPLES, of those that a client may have named."""
    metric = reading.metric

    def read(_: object) -> Iterator[Sample]:
        seen: set[tuple[str, ...]] = set()
        try:
            for values, value in reading.read():
                labels = tuple(encodable(str(one)) for one in values)
                if len(seen) >= MOST_SAMPLES:
                    _tell(plugin, metric.name, f"it has more than {MOST_SAMPLES} samples")
                    return
                if any(len(label) > LONGEST_LABEL for label in labels):
                    _tell(plugin, metric.name, f"it has a label of more than {LONGEST_LABEL} characters")
                    continue
                if len(labels) != len(metric.labels):
                    raise ValueError(f"{len(labels)} labels, and it has {len(metric.labels)}")
                if labels in seen:
                    raise ValueError(f"the labels {labels} twice")
                seen.add(labels)
                yield labels, float(value)
        except Exception as error:
            _tell(plugin, metric.name, error)

    return read


def _tell(plugin: str, what: str, why: object) -> None:
    line = f"{type(why).__name__}: {why}" if isinstance(why, BaseException) else str(why)
    _complain(f"{plugin} {what}", "plugin %s: %s failed: %s", plugin, what, line)
    if isinstance(why, BaseException):
        logger.debug("%s of plugin %s failed", what, plugin, exc_info=why)
