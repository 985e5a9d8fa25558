"""Making what a plugin gets of the broker. What of it needs the view itself is imported when it is used."""

from functools import partial
from typing import TYPE_CHECKING

from leafcuttr.plugins.facade.view import BrokerView, Listen, MakeSecurity, Serve
from leafcuttr.state.broker import Broker as Core

if TYPE_CHECKING:
    from leafcuttr_sdk import Broker, Metrics, Plugin, Security, Settings


def make_broker_view(
    core: Core,
    plugin: "Plugin",
    *,
    settings: "Settings | None" = None,
    metrics: "Metrics | None" = None,
    listen: Listen | None = None,
    serve: Serve | None = None,
) -> "Broker":
    """What this plugin is given. A part that is not given is not there: to read it is a RuntimeError."""
    return BrokerView(core, plugin.name, settings, metrics, listen, serve, secured(core, plugin.name))


def secured(core: Core, plugin: str) -> MakeSecurity:
    """How its part `security` is made."""
    return partial(_security, core, plugin)


def _security(core: Core, plugin: str, view: BrokerView) -> "Security[Broker]":
    core.runtime.descriptors.import_late("leafcuttr.plugins.facade.security")
    from leafcuttr.plugins.facade.security import SecurityView

    return SecurityView(core, view, plugin)
