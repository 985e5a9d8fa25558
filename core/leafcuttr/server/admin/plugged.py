"""What plugins add to the admin endpoint. A part that raises, or gives what it should not, costs itself only, and a
line in the log a minute."""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from http import HTTPStatus
from typing import Any, Final

import trio

from leafcuttr.metrics.added import AddedSample, encodable
from leafcuttr.metrics.counts import Distribution
from leafcuttr.runtime.described import first_line
from leafcuttr.runtime.plugin_parts import Failures, Part, PartError, call, call_async
from leafcuttr.server.admin.router import Request, Response, Router, problem
from leafcuttr.state.plugged import ChildState, Plugged, ServiceState
from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.admin import AdminRoute, Finding, HealthCheck
from leafcuttr_sdk.metrics import LONGEST_LABEL, MOST_SAMPLES, Metric, MetricReading

PATH: Final = "/plugins/"
ANSWER_S: Final = 30.0
"""How long a plugin's handler may take: the admin port accepts 64 connections."""
_STATUSES: Final = frozenset(int(status) for status in HTTPStatus if status >= HTTPStatus.OK)
_FRAMING: Final = ("content-length", "transfer-encoding", "connection")
_NOT_BYTES: Final = object()


def health_checks(plugged: Plugged) -> Iterator[HealthCheck]:
    """A check for each service, and those that plugins bring, with the plugin's name before theirs."""
    services = {service.name for service in plugged.services}
    for service in plugged.services:
        yield HealthCheck(
            f"service:{service.name}",
            f"the service {service.name} of plugin {service.plugin} runs",
            _check_of(service),
        )
    for plugin, check in plugged.checks:
        if plugin == "service" and check.name in services:
            continue  # a plugin that is called "service"
        part = Part(plugin, f"health check {check.name}")
        look = _looking(part, check.look, plugged.failures)
        yield check._replace(name=f"{plugin}:{check.name}", look=look, required=check.required is True)


def _looking(part: Part, look: Callable[[], object], tell: Failures) -> Callable[[], Finding]:
    def looked() -> Finding:
        try:
            return _finding(part, call(part, look))
        except PartError as failed:
            tell(failed)
            return Finding(False, f"the check failed: {failed.brief}")

    return looked


def _finding(part: Part, found: object) -> Finding:
    """As it can be shown. Raises PartError."""
    if inspect.iscoroutine(found):
        found.close()
    if not isinstance(found, Finding) or not isinstance(found.detail, str):
        detail = f" with a detail that is {kind_of(found.detail)}" if isinstance(found, Finding) else ""
        raise PartError(
            part, f"it returned {kind_of(found)}{detail}, and has to return a Finding with a text"
        )
    return Finding(call(part, bool, found.fine), first_line(found.detail))


def _check_of(service: ServiceState) -> Callable[[], Finding]:
    def check() -> Finding:
        if not service.up:
            return Finding(False, service.trouble or "it is starting")
        waits_for = service.waits_for
        return Finding(False, f"it waits for {waits_for}") if waits_for else Finding(True)

    return check


def child_checks(plugged: Plugged) -> Iterator[HealthCheck]:
    """A check for each program that a plugin runs now."""
    for child in list(plugged.children.values()):
        yield HealthCheck(
            f"child:{child.plugin}:{child.name}",
            f"the program {child.name} of plugin {child.plugin} runs",
            _check_of_child(child),
        )


def _check_of_child(child: ChildState) -> Callable[[], Finding]:
    def check() -> Finding:
        if child.up:
            return Finding(True)
        if child.is_done:
            return Finding(True, "it has ended")
        return Finding(False, child.trouble or "it is starting")

    return check


def add_routes(plugged: Plugged, router: Router) -> None:
    """Below `/plugins/<name>`. A path that ends with a slash is the same as one without."""
    for plugin, route in plugged.routes:
        path = f"{PATH}{plugin}{route.path}".rstrip("/")
        answer = _answering(Part(plugin, f"route {path}"), route, plugged.failures)
        router.add(path, answer, route.summary, tuple(route.methods))


def _answering(part: Part, route: AdminRoute, tell: Failures) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        response = None
        try:
            with trio.move_on_after(ANSWER_S):
                response = call(part, _response, part, await call_async(part, route.handler, request))
        except PartError as failed:
            tell(failed)
            return problem(500, "plugin_failed", f"plugin {part.plugin} failed; the broker's log says more")
        if response is None:
            tell(PartError(part, f"no answer within {ANSWER_S:.0f} s"))
            return problem(504, "too_slow", f"plugin {part.plugin} did not answer within {ANSWER_S:.0f} s")
        if isinstance(response.body, bytes):
            return response
        return response._replace(body=_pieces(part, response.body, tell))

    return answer


def _response(part: Part, response: Any) -> Response:
    """As it can be sent. Raises PartError."""
    if not isinstance(response, Response):
        raise PartError(part, f"it returned {kind_of(response)}, not a Response")
    if not isinstance(response.body, bytes) and not inspect.isasyncgen(response.body):
        raise PartError(part, f"its body is {kind_of(response.body)}, neither bytes nor an async generator")
    if response.status not in _STATUSES:
        raise PartError(part, f"its status is {response.status!r:.20}, which HTTP does not have")
    return response._replace(headers=_headers(response), status=int(response.status))


def _headers(response: Response) -> tuple[tuple[str, str], ...]:
    """Without those that depend on how the body is sent. Raises what a header raises that cannot be sent."""
    from h11 import Response as Head

    headers = tuple((name, value) for name, value in response.headers if name.lower() not in _FRAMING)
    Head(status_code=200, headers=[("Content-Type", response.content_type), *headers])
    return headers


async def _pieces(
    part: Part, body: AsyncGenerator[bytes, None], tell: Failures
) -> AsyncGenerator[bytes, None]:
    """A body that breaks off ends the connection, so that its reader knows; the log gets a line."""
    try:
        while True:
            piece = await call_async(part, _next, body)
            if piece is None:
                return
            if not isinstance(piece, bytes):
                raise PartError(part, f"a piece of its body is {kind_of(piece)}, not bytes")
            yield piece
    except PartError as failed:
        tell(failed)
        raise trio.BrokenResourceError from None  # as if the peer had gone
    finally:
        await _close(part, body, tell)


async def _next(body: AsyncGenerator[Any, None]) -> Any:
    """None at the end."""
    async for piece in body:
        return _NOT_BYTES if piece is None else piece
    return None


async def _close(part: Part, body: AsyncGenerator[bytes, None], tell: Failures) -> None:
    try:
        await call_async(part, body.aclose)
    except PartError as failed:
        tell(failed)


def readings(plugged: Plugged) -> Iterator[tuple[Metric, Callable[[object], Iterable[AddedSample]]]]:
    """The metrics that plugins have at this moment."""
    for plugin, reading in plugged.metrics.readings():
        yield (
            reading.metric,
            _samples(Part(plugin, f"metric {reading.metric.name}"), reading, plugged.failures),
        )


def _samples(part: Part, reading: MetricReading, tell: Failures) -> Callable[[object], Iterator[AddedSample]]:
    """Those that can be shown: one bad sample would make Prometheus refuse all of a scrape. And no more than
    MOST_SAMPLES, of those that a client may have named."""

    def read(_: object) -> Iterator[AddedSample]:
        seen: set[tuple[str, ...]] = set()
        try:
            given = call(part, _iterator, reading)
            for _ in range(MOST_SAMPLES):
                sample = call(part, _sample, given, reading.metric, seen)
                if sample is None:
                    return
                if any(len(label) > LONGEST_LABEL for label in sample[0]):
                    tell(PartError(part, f"it has a label of more than {LONGEST_LABEL} characters"))
                    continue
                seen.add(sample[0])
                yield sample
            if call(part, next, given, None) is not None:
                tell(PartError(part, f"it has more than {MOST_SAMPLES} samples"))
        except PartError as failed:
            tell(failed)

    return read


def _iterator(reading: MetricReading) -> Iterator[AddedSample]:
    return iter(reading.read())


def _sample(given: Iterator[AddedSample], metric: Metric, seen: set[tuple[str, ...]]) -> AddedSample | None:
    """The next one, as it can be shown. None at the end."""
    for values, value in given:
        labels = tuple(encodable(str(one)) for one in values)
        if len(labels) != len(metric.labels):
            raise ValueError(f"{len(labels)} labels, and it has {len(metric.labels)}")
        if labels in seen:
            raise ValueError(f"the labels {labels} twice")
        return labels, value if isinstance(value, Distribution) else float(value)
    return None
