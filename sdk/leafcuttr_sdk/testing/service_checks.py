"""Conformance of services: `leafcuttr_sdk.services` says what they promise, `service_trial` tries it in a broker."""

import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType
from typing import Any, cast

from leafcuttr_sdk.broker import Broker
from leafcuttr_sdk.plugin import API_VERSION, Plugin
from leafcuttr_sdk.services import Service, ServiceSpec
from leafcuttr_sdk.settings import Value
from leafcuttr_sdk.testing.report import Check, Report

_HEALTH = "leafcuttr_register_health_checks"


def check_service(
    service: ServiceSpec | Callable[[Broker], Service],
    *,
    plugin: ModuleType | None = None,
    settings: Mapping[str, Value] | None = None,
) -> None:
    """Check a service in a real broker: its spec, or what makes it (the class, if it takes the broker).

    `plugin` is the module whose hooks declare the settings that it reads, `settings` their values where they are not
    the defaults, and any of the broker's. Give it ports of 0: it is run several times. Takes about a second. Raises
    ContractError with all that is wrong.
    """
    service_report(service, plugin, settings).raise_problems()


def service_report(
    service: ServiceSpec | Callable[[Broker], Service],
    plugin: ModuleType | None = None,
    settings: Mapping[str, Value] | None = None,
) -> Report:
    """What `check_service` raises, to look at."""
    spec = service if isinstance(service, ServiceSpec) else ServiceSpec(_name_of(service), service)
    outcome: SimpleQueue[Report | BaseException] = SimpleQueue()
    # A thread of its own, and one that nobody waits for: a service that cannot be stopped keeps its loop for ever.
    threading.Thread(
        target=_run,
        args=(spec, plugin, dict(settings or {}), outcome.put),
        name="leafcuttr-check",
        daemon=True,
    ).start()
    report = outcome.get()
    if isinstance(report, BaseException):
        raise report
    return report


def _run(
    spec: ServiceSpec,
    plugin: ModuleType | None,
    settings: dict[str, Value],
    tell: Callable[[Report | BaseException], None],
) -> None:
    import trio

    try:
        with tempfile.TemporaryDirectory(prefix="leafcuttr-check-", ignore_cleanup_errors=True) as folder:
            tell(trio.run(partial(_in_a_broker, spec, plugin, settings, Path(folder), tell)))
    except BaseException as error:
        tell(error)


async def _in_a_broker(
    spec: ServiceSpec,
    plugin: ModuleType | None,
    settings: dict[str, Value],
    folder: Path,
    tell: Callable[[Report], None],
) -> Report:
    from leafcuttr import open_broker
    from leafcuttr.errors import ConfigError, StartError
    from leafcuttr_sdk.testing.broker import DEFAULTS, text_of
    from leafcuttr_sdk.testing.service_trial import PROMISES, ServiceTrial

    views: list[Broker] = []
    stand_in = _without_services(plugin, views)
    given: dict[str, Value] = {
        **DEFAULTS,
        "log.dirs": str(folder),
        "lc.plugins.strict": True,
        "lc.plugins.disabled": other_plugins(stand_in.PLUGIN.name),
        **({stand_in.PLUGIN.enabled_by: True} if stand_in.PLUGIN.enabled_by else {}),
        **settings,
    }
    try:
        texts = {name: text_of(value) for name, value in given.items() if value is not None}
        async with open_broker(texts, plugins=[stand_in]):
            return await ServiceTrial(spec.name, spec.make, views[0], tell).run()
    except (ConfigError, StartError) as error:
        problem = f"the broker does not start with its plugin: {error}"
        return Report("service", spec.name, (Check("made", PROMISES["made"], (problem,)),))


def _without_services(plugin: ModuleType | None, views: list[Broker]) -> Any:
    """The plugin with all its hooks but that of services, whose job the trial does; it keeps the broker it is given."""
    stand_in = ModuleType(plugin.__name__ if plugin is not None else "checked")
    vars(stand_in).update(vars(plugin) if plugin is not None else {})
    vars(stand_in).setdefault("PLUGIN", Plugin("checked", API_VERSION, "what is checked"))
    vars(stand_in).pop("leafcuttr_register_services", None)
    register = cast("Callable[[Broker], Iterable[object]] | None", vars(stand_in).get(_HEALTH))

    def leafcuttr_register_health_checks(broker: Broker) -> Iterable[object]:
        views.append(broker)
        return register(broker) if register is not None else ()

    vars(stand_in)[_HEALTH] = leafcuttr_register_health_checks
    return stand_in


def other_plugins(name: str) -> tuple[str, ...]:
    """The names of all other plugins that are installed: they are not what is checked."""
    from leafcuttr.plugins.entry_points import candidates

    return tuple(one.name for one in candidates() if one.name != name)


def _name_of(make: object) -> str:
    return getattr(make, "__name__", type(make).__name__)
