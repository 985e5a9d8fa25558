"""A plugin in a real broker with all that it brings at once: its health checks, authenticators and metrics, what the
admin port answers, and what is left when the broker has stopped."""

import re
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from leafcuttr_sdk.settings import Value
from leafcuttr_sdk.testing import watch
from leafcuttr_sdk.testing.admin_checks import health_check_report, metric_report
from leafcuttr_sdk.testing.authenticator_checks import authenticator_report
from leafcuttr_sdk.testing.authorizer_checks import authorizer_report
from leafcuttr_sdk.testing.broker import RunningBroker, running_broker
from leafcuttr_sdk.testing.report import Check, Report, told
from leafcuttr_sdk.testing.route_checks import admin_route_report
from leafcuttr_sdk.testing.schema_provider_checks import schema_provider_report

_LOOK_S: Final = 60.0
_READY_S: Final = 20.0
"""How long a required health check may keep the broker from being ready."""
_NOT_READY: Final = "/health says that the broker is not ready"
_END_S: Final = 2.0
"""How long after the broker its processes may end."""


def reports_in_a_broker(plugin: str, module: ModuleType, settings: Mapping[str, Value]) -> Iterator[Report]:
    """Of each health check, authenticator, metric and admin route, then of the broker with all of it."""
    found: list[Report] = []
    answers: list[str] = []
    ends: list[str] = []
    left: list[str] = []
    with (
        _left_processes(left),
        _ended_by(ends),
        tempfile.TemporaryDirectory(prefix="leafcuttr-check-") as folder,
        running_broker(Path(folder), settings, [module]) as broker,
    ):
        found += broker.call(lambda inside: _of_the_hooks(inside, plugin))
        for path in ("/metrics", "/health", *broker.call(lambda inside: _routes(inside, plugin))):
            answers += _answered(broker, path)
    yield from found
    yield Report(
        "broker",
        plugin,
        (
            Check("starts", "a broker starts with all of it, and stops", tuple(ends)),
            Check("admin port", "metrics, health and its own paths are answered", tuple(answers)),
            Check("leaves nothing", "its processes have ended when the broker has", tuple(left)),
        ),
    )


@contextmanager
def broker_for_commands(
    module: ModuleType, settings: Mapping[str, Value]
) -> Iterator[Mapping[str, str] | None]:
    """A broker with the plugin, for its commands: the variables by which they find it. None if it does not start, which
    the report of the broker says."""
    with tempfile.TemporaryDirectory(prefix="leafcuttr-check-") as folder, ExitStack() as running:
        started: list[RunningBroker] = []
        with _ended_by([]):
            started.append(running.enter_context(running_broker(Path(folder), settings, [module])))
        yield (
            {
                "LEAFCUTTR_BOOTSTRAP_SERVER": started[0].bootstrap_servers,
                "LEAFCUTTR_ADMIN_SERVER": started[0].admin_url.removeprefix("http://"),
            }
            if started
            else None
        )


@contextmanager
def _ended_by(problems: list[str]) -> Iterator[None]:
    """What ends the broker is a problem of the plugin, a SystemExit as well."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        # One line for a person from us; anything else is what the plugin has raised.
        from leafcuttr.errors import ConfigError, StartError

        if isinstance(error, ConfigError | StartError):
            problems.append(f"the broker does not start with it: {error}")
        else:
            problems.append(f"the broker ended with {told(error)}")


@contextmanager
def _left_processes(problems: list[str]) -> Iterator[None]:
    before = watch.child_processes()
    yield
    until = time.monotonic() + _END_S
    while (left := watch.child_processes() - before) and time.monotonic() < until:
        time.sleep(0.02)
    if left:
        ids = ", ".join(map(str, sorted(left)))
        problems.append(
            f"processes that it started go on, or were not waited for, when the broker has stopped: {ids}; run them by "
            "trio.run_process, or end them in a `finally`"
        )


async def _of_the_hooks(broker: Any, plugin: str) -> list[Report]:
    """In the thread of the loop, as `/health` and `/metrics` call them."""
    from leafcuttr.metrics.added import Series

    plugged = broker._core.plugged
    checks = [health_check_report(check) for owner, check in plugged.checks if owner == plugin]
    authenticators = [
        await authenticator_report(spec) for owner, spec in plugged.authenticators.values() if owner == plugin
    ]
    authorizers = [
        authorizer_report(spec, view) for owner, spec, view in plugged.authorizers if owner == plugin
    ]
    metrics = [
        metric_report(reading)
        for owner, reading in plugged.metrics.readings()
        # Those of `Broker.metrics` are read by the broker itself.
        if owner == plugin and not isinstance(getattr(reading.read, "__self__", None), Series)
    ]
    routes = [
        await admin_route_report(route, f"/plugins/{owner}")
        for owner, route in plugged.routes
        if owner == plugin
    ]
    reports = [*checks, *authenticators, *authorizers, *metrics, *routes]
    if plugged.schema_provider is not None and plugged.schema_provider[0] == plugin:
        reports.append(await _of_the_provider(plugged.schema_provider[1], plugged.schema_formats))
    return reports


async def _of_the_provider(provider: Any, formats: Mapping[str, Any]) -> Report:
    """With schemas of a format that is there: the example of a rule that breaks nothing."""
    for format in formats.values():
        for rule in format.rules:
            if not rule.breaks:
                return await schema_provider_report(provider, format.name, (rule.old, rule.new))
    return await schema_provider_report(provider)


async def _routes(broker: Any, plugin: str) -> list[str]:
    """Their paths, with a value for each parameter."""
    return [
        re.sub(r"\{[^/]*\}", "1", f"/plugins/{owner}{route.path}")
        for owner, route in broker._core.plugged.routes
        if owner == plugin
    ]


def _answered(broker: RunningBroker, path: str) -> list[str]:
    """What is wrong with the answer, which may be a while in coming where the plugin has to catch up first."""
    until = time.monotonic() + _READY_S
    while (wrong := _answered_now(broker, path)) and _NOT_READY in wrong[0] and time.monotonic() < until:
        time.sleep(0.1)
    return wrong


def _answered_now(broker: RunningBroker, path: str) -> list[str]:
    try:
        with urllib.request.urlopen(broker.admin_url + path, timeout=_LOOK_S) as answer:
            answer.read()
    except urllib.error.HTTPError as error:
        said = error.read().decode(errors="replace")
        if error.code == 503 and path == "/health":
            return [f"{_NOT_READY}: {said[:500]}"]
        if error.code >= 500:
            return [f"{path} answers {error.code}: {said[:200]}"]
    except OSError as error:
        return [f"{path} is not answered: {error}"]
    return []
