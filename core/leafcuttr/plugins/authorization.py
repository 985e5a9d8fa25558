"""`lc.authorizer`: the authorizer of a plugin is made and decides from then on (`state.security.plugged_authorizer`).

Whatever it raises or returns: only what it says clearly allows something.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import trio

from leafcuttr.errors import StartError
from leafcuttr.runtime.plugin_parts import Failures, Part, PartError, call
from leafcuttr.state.broker import Broker as Core
from leafcuttr.state.security.plugged_authorizer import PluggedAuthorizer
from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.security import Authorizer, AuthorizerSpec, Operation, Requester, Resource

if TYPE_CHECKING:
    from leafcuttr.plugins.loaded import Loaded
    from leafcuttr.plugins.table import Plugins
    from leafcuttr_sdk import Broker

SETTING = "lc.authorizer"


def equip_authorizer(core: Core, plugins: "Plugins", views: "Mapping[str, Broker]") -> None:
    """Make the one that is named. Raises StartError: no plugin that is on brings it, or it cannot be made."""
    authorizer = core.authorizer
    if not isinstance(authorizer, PluggedAuthorizer):
        return
    found = plugins.authorizers().get(authorizer.name)
    if found is None:
        known = ", ".join(sorted(plugins.authorizers())) or "none"
        raise StartError(f"{no_such(core)}; there is {known}")
    loaded, spec = found
    part = Part(loaded.name, f"authorizer {spec.name}")
    made = _made(core, part, loaded, spec, views[loaded.name], authorizer)
    authorizer.equip(partial(_asked, part, made, core.plugged.failures))


def no_such(core: Core) -> str:
    """The line of a start without the authorizer that is named."""
    settings = core.settings
    return f"{SETTING} ({settings.where(SETTING)}) names {settings.text(SETTING)}, which no plugin brings that is on"


def _made(
    core: Core,
    part: Part,
    loaded: "Loaded",
    spec: AuthorizerSpec,
    view: "Broker",
    authorizer: PluggedAuthorizer,
) -> Authorizer:
    try:
        made = call(part, spec.make, view, _on_loop(authorizer.changed))
        if not callable(getattr(made, "verdict", None)):
            raise PartError(part, f"it was made as {kind_of(made)}, which has no method verdict")
        return made
    except PartError as failed:
        raise StartError(
            f"plugin {loaded.name} ({loaded.origin}): authorizer {spec.name}: "
            f"{failed.words if failed.is_said else failed.why}"
        ) from None


def _on_loop(changed: Callable[[], None]) -> Callable[[], None]:
    """At once on the loop; from another thread in its next turn."""
    token = trio.lowlevel.current_trio_token()

    def tell() -> None:
        try:
            on_loop = trio.lowlevel.current_trio_token() is token
        except RuntimeError:
            on_loop = False
        if on_loop:
            changed()
        else:
            token.run_sync_soon(changed, idempotent=True)

    return tell


def _asked(
    part: Part,
    authorizer: Authorizer,
    failures: Failures,
    requester: Requester,
    operation: Operation,
    resource: Resource,
) -> bool | None:
    try:
        said: object = call(part, authorizer.verdict, requester, operation, resource)
        if said is None or isinstance(said, bool):
            return said
        close = getattr(said, "close", None)
        if callable(close):  # a coroutine, which nobody awaits
            close()
        raise PartError(part, f"its verdict is {kind_of(said)}: True, False or None are allowed")
    except PartError as failed:
        failures(failed)
        return False
