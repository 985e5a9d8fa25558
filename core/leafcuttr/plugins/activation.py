"""The enabled plugins meet a broker whose data is open: each gets its view of it, and what its hooks bring is put where
the broker finds it (`state.plugged`). Their services are planned here, and run by the server."""

from functools import partial
from typing import TYPE_CHECKING, TypedDict

from leafcuttr.errors import PluginError
from leafcuttr.state.broker import Broker as Core

if TYPE_CHECKING:
    from leafcuttr.plugins.facade.view import Listen
    from leafcuttr.plugins.loaded import Loaded
    from leafcuttr.plugins.services.supervisor import Supervisor
    from leafcuttr.plugins.table import Plugins
    from leafcuttr_sdk import Broker, Metrics, Settings


def activate(core: Core, plugins: "Plugins") -> "Supervisor":
    """Call the hooks that get the broker, give topics their filters and validators, and plan the services. Without an
    enabled plugin it is not needed.

    A plugin whose hook raises, or brings what cannot be taken, is left out with one line. Raises StartError:
    `lc.plugins.strict` is set and there is such a one; services that need each other in a circle, or what is not there.
    """
    from leafcuttr.plugins.filters import tables_of
    from leafcuttr.plugins.services.order import Planned
    from leafcuttr.plugins.services.supervisor import Supervisor

    planned: list[Planned] = []
    for loaded in plugins.enabled:
        view = view_for(core, loaded)
        try:
            _add(core, loaded, view)
        except PluginError as error:
            _take_back(core, loaded.name)
            plugins.fail(loaded, str(error))
        else:
            planned += [Planned(loaded.name, spec, view) for spec in loaded.services]
    core.chains.equip(tables_of(core, plugins))
    supervisor = Supervisor(planned)
    core.plugged.services = supervisor.services
    return supervisor


def view_for(core: Core, loaded: "Loaded") -> "Broker":
    """The broker as this plugin sees it."""
    from leafcuttr.plugins.facade.view import make_broker_view
    from leafcuttr.plugins.settings_views import plugin_settings

    assert loaded.plugin is not None
    settings = plugin_settings(core.settings, loaded.name)
    return make_broker_view(core, loaded.plugin, **parts_for(core, loaded.name, settings))


class Parts(TypedDict):
    """What the facade does not make itself."""

    settings: "Settings"
    metrics: "Metrics"
    listen: "Listen"


def parts_for(core: Core, plugin: str, settings: "Settings") -> Parts:
    """The parts of the view of this plugin, or of the program that has the broker in it."""
    from leafcuttr.plugins.listening import listen

    return {
        "settings": settings,
        "metrics": core.plugged.metrics.of(plugin),
        "listen": partial(listen, core, plugin, settings),
    }


def _add(core: Core, loaded: "Loaded", view: "Broker") -> None:
    from leafcuttr.plugins import registration

    assert loaded.hooks is not None
    call, plugged = partial(loaded.hooks.call, broker=view), core.plugged
    names: set[str] = set()
    for check in call(registration.HEALTH_CHECKS):
        if check.name in names:
            raise PluginError(f"it has two health checks named {check.name}")
        names.add(check.name)
        plugged.checks.append((loaded.name, check))
    paths: set[str] = set()
    for route in call(registration.ADMIN_ROUTES):
        path = route.path.rstrip("/")
        if not route.path.startswith("/") or "?" in path:
            raise PluginError(f"{route.path!r} is no path: it has to begin with a slash")
        if path in paths:
            raise PluginError(f"it answers {route.path} twice")
        paths.add(path)
        plugged.routes.append((loaded.name, route))
    for reading in call(registration.METRICS):
        try:
            plugged.metrics.add(loaded.name, reading)
        except ValueError as error:
            raise PluginError(str(error)) from None


def _take_back(core: Core, plugin: str) -> None:
    """What it has added before it failed."""
    plugged = core.plugged
    plugged.checks[:] = [each for each in plugged.checks if each[0] != plugin]
    plugged.routes[:] = [each for each in plugged.routes if each[0] != plugin]
    plugged.metrics.remove(plugin)
