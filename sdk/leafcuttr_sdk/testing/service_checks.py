"""Conformance of services: `leafcuttr_sdk.services` says what they promise, `service_trial` tries it in a broker."""

import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from leafcuttr_sdk.broker import Broker
from leafcuttr_sdk.plugin import API_VERSION, Plugin
from leafcuttr_sdk.services import Service, ServiceSpec
from leafcuttr_sdk.serving import Handler
from leafcuttr_sdk.settings import Setting, Value, serving_settings
from leafcuttr_sdk.testing.installed import settings_for
from leafcuttr_sdk.testing.report import Check, Report, told

if TYPE_CHECKING:
    import trio

_HEALTH = "leafcuttr_register_health_checks"
_SETTINGS = "leafcuttr_register_settings"
_CHECKED = Plugin("checked", API_VERSION, "what is checked")


def check_service(
    service: ServiceSpec | Callable[[Broker], Service],
    *,
    plugin: ModuleType | None = None,
    settings: Mapping[str, Value] | None = None,
    requests: Sequence[bytes] = (),
) -> None:
    """Check a service in a real broker: its spec, or what makes it (the class, if it takes the broker).

    `plugin` is the module whose hooks declare the settings that it reads, `settings` their values where they are not
    the defaults, and any of the broker's. Listeners take free ports where `settings` gives none. Other plugins do not
    run, as in `running_broker`. `requests` are what clients send that its listeners answer: each is sent as a whole and
    byte by byte, on a connection of its own. Takes about a second. Raises ContractError with all that is wrong.
    """
    service_report(service, plugin, settings, requests).raise_problems()


def check_handler(
    make: Callable[[Broker], Handler],
    *,
    plugin: ModuleType | None = None,
    settings: Mapping[str, Value] | None = None,
    requests: Sequence[bytes] = (),
) -> None:
    """Check a handler of `Broker.serve`, which `make` makes of the broker (`lambda broker: Station(broker).handle`):
    in a real broker clients reset connections, leave in the middle, send garbage, take nothing, and the service is
    stopped. If it uses `ByteStream.send_now`, that takes a part of the bytes or none of them, and the rest has to be
    sent next. `plugin`, `settings` and `requests` as for `check_service`. Takes about two seconds. Raises ContractError
    with all that is wrong.
    """
    handler_report(make, plugin, settings, requests).raise_problems()


def handler_report(
    make: Callable[[Broker], Handler],
    plugin: ModuleType | None = None,
    settings: Mapping[str, Value] | None = None,
    requests: Sequence[bytes] = (),
) -> Report:
    """The report that `check_handler` would raise."""
    prefix = f"lc.plugin.{_plugin_of(plugin).name}.checked"

    class Serving:
        def __init__(self, broker: Broker) -> None:
            self._broker = broker

        async def run(self, *, task_status: "trio.TaskStatus[Any]") -> None:
            await self._broker.serve(prefix, make(self._broker), task_status=task_status)

    found = service_report(
        ServiceSpec(_name_of(make), Serving), _with_listener(plugin, prefix), settings, requests
    )
    return found._replace(kind="handler")


def service_report(
    service: ServiceSpec | Callable[[Broker], Service],
    plugin: ModuleType | None = None,
    settings: Mapping[str, Value] | None = None,
    requests: Sequence[bytes] = (),
) -> Report:
    """The report that `check_service` would raise."""
    spec = service if isinstance(service, ServiceSpec) else ServiceSpec(_name_of(service), service)
    outcome: SimpleQueue[Report | BaseException] = SimpleQueue()
    # A thread of its own, which is not joined: a service that cannot be stopped keeps its loop for ever.
    threading.Thread(
        target=_run,
        args=(spec, plugin, dict(settings or {}), tuple(requests), outcome.put),
        name="leafcuttr-check",
        daemon=True,
    ).start()
    report = outcome.get()
    if isinstance(report, Report):
        return report
    if isinstance(report, Exception) and type(report).__name__ != "TrioInternalError":
        raise report
    # What ends the loop itself is never ours: a SystemExit of a callback, an error of a system task.
    from leafcuttr_sdk.testing.service_trial import PROMISES

    problem = f"the whole broker ended with {told(report.__cause__ or report)}"
    return Report("service", spec.name, (Check("runs", PROMISES["runs"], (problem,)),))


def _run(
    spec: ServiceSpec,
    plugin: ModuleType | None,
    settings: dict[str, Value],
    requests: Sequence[bytes],
    tell: Callable[[Report | BaseException], None],
) -> None:
    import trio

    try:
        with tempfile.TemporaryDirectory(prefix="leafcuttr-check-", ignore_cleanup_errors=True) as folder:
            tell(trio.run(partial(_in_a_broker, spec, plugin, settings, requests, Path(folder), tell)))
    except BaseException as error:
        tell(error)


async def _in_a_broker(
    spec: ServiceSpec,
    plugin: ModuleType | None,
    settings: dict[str, Value],
    requests: Sequence[bytes],
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
        **settings_for([stand_in], settings),
        **({stand_in.PLUGIN.enabled_by: True} if stand_in.PLUGIN.enabled_by else {}),
        **settings,
    }
    try:
        texts = {name: text_of(value) for name, value in given.items() if value is not None}
        async with open_broker(texts, plugins=[stand_in]):
            return await ServiceTrial(spec.name, spec.make, views[0], tell, requests).run()
    except (ConfigError, StartError) as error:
        problem = f"the broker does not start with its plugin: {error}"
        return Report("service", spec.name, (Check("made", PROMISES["made"], (problem,)),))


def _without_services(plugin: ModuleType | None, views: list[Broker]) -> Any:
    """The plugin with all its hooks but that of services, whose job the trial does; it keeps the broker it is given."""
    stand_in = ModuleType(plugin.__name__ if plugin is not None else "checked")
    vars(stand_in).update(vars(plugin) if plugin is not None else {})
    vars(stand_in).setdefault("PLUGIN", _CHECKED)
    vars(stand_in).pop("leafcuttr_register_services", None)
    register = cast("Callable[[Broker], Iterable[object]] | None", vars(stand_in).get(_HEALTH))

    def leafcuttr_register_health_checks(broker: Broker) -> Iterable[object]:
        views.append(broker)
        return register(broker) if register is not None else ()

    vars(stand_in)[_HEALTH] = leafcuttr_register_health_checks
    return stand_in


def _plugin_of(plugin: ModuleType | None) -> Plugin:
    found: Plugin = vars(plugin)["PLUGIN"] if plugin is not None else _CHECKED
    return found


def _with_listener(plugin: ModuleType | None, prefix: str) -> ModuleType:
    """The plugin with one more listener, for the handler that is checked."""
    stand_in = ModuleType(plugin.__name__ if plugin is not None else "checked")
    vars(stand_in).update(vars(plugin) if plugin is not None else {"PLUGIN": _CHECKED})
    register = cast("Callable[[], Iterable[Setting]] | None", vars(stand_in).get(_SETTINGS))

    def leafcuttr_register_settings() -> Iterable[Setting]:
        yield from register() if register is not None else ()
        yield from serving_settings(prefix, 0, "127.0.0.1")

    vars(stand_in)[_SETTINGS] = leafcuttr_register_settings
    return stand_in


def _name_of(make: object) -> str:
    return getattr(make, "__name__", type(make).__name__)
