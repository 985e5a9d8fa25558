"""The enabled plugins meet a broker whose data is open: each gets its view of it, and what its hooks bring is put where
the broker finds it (`state.plugged`). Their services are planned here, and run by the server."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, TypedDict

import trio

from leafcuttr.errors import PluginError
from leafcuttr.state.broker import Broker as Core
from leafcuttr.state.plugged import OWN_AUTHENTICATOR, SASL_MECHANISMS
from leafcuttr_sdk.plugin import StartFailure

if TYPE_CHECKING:
    from leafcuttr.plugins.containment import Containment
    from leafcuttr.plugins.facade.view import Listen, Serve
    from leafcuttr.plugins.loaded import Loaded
    from leafcuttr.plugins.services.supervisor import Supervisor
    from leafcuttr.plugins.table import Plugins
    from leafcuttr_sdk import Broker, Metrics, Settings
    from leafcuttr_sdk.admin import AdminRoute


async def activate(
    core: Core, plugins: "Plugins", containment: "Containment", stop: trio.Event
) -> "Supervisor":
    """Call the hooks that get the broker, give topics their filters and validators, and plan the services. Without an
    enabled plugin it is not needed.

    A plugin whose hook raises, takes too long, or brings what cannot be taken, is left out with one line; so is one
    with a service that needs one that is not there, or itself. Once `stop` is set no hook is waited for, and there
    are no services. Raises StartError: the broker does not start without such a plugin.
    """
    from leafcuttr.plugins.filters import chain_maker, tables_of
    from leafcuttr.plugins.services.order import CannotStart, Planned
    from leafcuttr.plugins.services.supervisor import Supervisor, cancel_once

    planned: list[Planned] = []
    views: dict[str, Broker] = {}
    failed: list[tuple[Loaded, str]] = []
    async with trio.open_nursery() as calling:
        calling.start_soon(cancel_once, stop, calling.cancel_scope)
        for loaded in plugins.enabled:
            view = views[loaded.name] = view_for(core, loaded)
            try:
                await _add(core, loaded, view)
            except PluginError as error:
                _take_back(core, loaded.name)
                failed.append((loaded, str(error)))
            else:
                stops = frozenset(each for each in StartFailure if plugins.stops(loaded, each))
                planned += [Planned(loaded.name, spec, view, stops) for spec in loaded.services]
        calling.cancel_scope.cancel()
    for loaded, why in failed:
        plugins.fail(loaded, why)
    if stop.is_set():
        return Supervisor(())
    for loaded, spec in plugins.authorizers().values():
        core.plugged.authorizers.append((loaded.name, spec, views[loaded.name]))
    if core.settings.text("lc.authorizer"):
        from leafcuttr.plugins.authorization import equip_authorizer

        equip_authorizer(core, plugins, views)
    supervisor = None
    while supervisor is None:
        try:
            supervisor = Supervisor(planned, containment=containment, children=core.plugged.children_of)
        except CannotStart as error:
            _take_back(core, error.plugin)
            planned = [one for one in planned if one.plugin != error.plugin]
            for loaded in plugins.enabled:
                if loaded.name == error.plugin:
                    plugins.fail(loaded, str(error))
    if core.settings.is_given(SASL_MECHANISMS):
        from leafcuttr.plugins.sasl_mechanisms import equip_mechanisms

        equip_mechanisms(core)
    core.plugged.schema_formats = {name: format for name, (_, format) in plugins.schema_formats().items()}
    core.plugged.record_filters = chain_maker(core, plugins, views)
    core.chains.equip(tables_of(core, plugins, views))
    core.plugged.services = supervisor.services
    return supervisor


def view_for(core: Core, loaded: "Loaded") -> "Broker":
    """The broker as this plugin sees it."""
    from leafcuttr.plugins.facade.opening import make_broker_view
    from leafcuttr.plugins.settings_views import plugin_settings

    assert loaded.plugin is not None
    settings = plugin_settings(core.settings, loaded.name)
    return make_broker_view(core, loaded.plugin, **parts_for(core, loaded.name, settings))


class Parts(TypedDict):
    """What the facade does not make itself."""

    settings: "Settings"
    metrics: "Metrics"
    listen: "Listen"
    serve: "Serve"


def parts_for(core: Core, plugin: str, settings: "Settings") -> Parts:
    """The parts of the view of this plugin, or of the program that has the broker in it."""
    from leafcuttr.plugins.listening import listen
    from leafcuttr.plugins.serving.serve import serve

    return {
        "settings": settings,
        "metrics": core.plugged.metrics.of(plugin),
        "listen": partial(listen, core, plugin, settings),
        "serve": partial(serve, core, plugin, settings),
    }


async def _add(core: Core, loaded: "Loaded", view: "Broker") -> None:
    from leafcuttr.plugins import registration

    assert loaded.hooks is not None
    call, plugged = partial(loaded.hooks.call_on_loop, broker=view), core.plugged
    names: set[str] = set()
    for check in await call(registration.HEALTH_CHECKS):
        if check.name in names:
            raise PluginError(f"it has two health checks named {check.name}")
        names.add(check.name)
        plugged.checks.append((loaded.name, check))
    routes = await call(registration.ADMIN_ROUTES)
    _check_paths([route.path for route in routes])
    for route in routes:
        _check_methods(route)
    plugged.routes += [(loaded.name, route) for route in routes]
    for spec in await call(registration.AUTHENTICATORS):
        if spec.name == OWN_AUTHENTICATOR:
            raise PluginError("it brings an authenticator broker: that is the broker's own")
        other = plugged.authenticators.get(spec.name)
        if other is not None:
            raise PluginError(f"there is an authenticator {spec.name} already, of plugin {other[0]}")
        plugged.authenticators[spec.name] = (loaded.name, spec)
    for provider in await call(registration.SCHEMA_PROVIDER):
        if plugged.schema_provider is not None:
            owner, _ = plugged.schema_provider
            raise PluginError(
                "it brings two schema providers"
                if owner == loaded.name
                else f"there is a schema provider already, of plugin {owner}"
            )
        plugged.schema_provider = (loaded.name, provider)
    for reading in await call(registration.METRICS):
        try:
            plugged.metrics.add(loaded.name, reading)
        except ValueError as error:
            raise PluginError(str(error)) from None


def _check_paths(patterns: Sequence[str]) -> None:
    """Raises PluginError for one that is none, and for two that cannot be told apart."""
    if patterns:
        from leafcuttr_sdk._paths import PathTable  # a start without admin routes needs no parser of URLs

        table = PathTable[None]()
        for pattern in patterns:
            try:
                table.add(pattern.rstrip("/") or "/", None)
            except ValueError as error:
                raise PluginError(f"its admin route {error}") from None


def _check_methods(route: "AdminRoute") -> None:
    from leafcuttr_sdk.admin import METHODS

    methods = route.methods
    if not isinstance(methods, tuple) or not methods or not set(methods) <= set(METHODS):
        raise PluginError(
            f"its admin route {route.path} has the methods {methods!r:.100}: allowed is a tuple of "
            f"{' and '.join(METHODS)}"
        )


def _take_back(core: Core, plugin: str) -> None:
    """What it has added before it failed."""
    plugged = core.plugged
    plugged.checks[:] = [each for each in plugged.checks if each[0] != plugin]
    plugged.routes[:] = [each for each in plugged.routes if each[0] != plugin]
    for name in [name for name, (of, _) in plugged.authenticators.items() if of == plugin]:
        del plugged.authenticators[name]
    if plugged.schema_provider is not None and plugged.schema_provider[0] == plugin:
        plugged.schema_provider = None
    plugged.metrics.remove(plugin)
