"""Mode: of the registry, of a context, of a subject."""

from leafcuttr_registry.api.config import scope_of
from leafcuttr_registry.api.endpoints import Api, add
from leafcuttr_registry.api.exchange import RegistryExchange
from leafcuttr_registry.subjects import scopes
from leafcuttr_registry.subjects.names import GLOBAL, qualified
from leafcuttr_registry.subjects.refusals import Refusal, invalid_mode, no_mode
from leafcuttr_sdk.web.routes import Routes


def attach(routes: Routes, api: Api) -> None:
    async def read(exchange: RegistryExchange) -> None:
        name = scope_of(exchange)
        if exchange.flag("defaultToGlobal"):
            mode: str | None = scopes.mode_of(api.state, name)
        else:
            mode = scopes.own_mode(api.state, name)
        if mode is None:
            raise no_mode(name or "")
        await exchange.give({"mode": mode})

    async def update(exchange: RegistryExchange) -> None:
        body = await exchange.body_json()
        name, given = scope_of(exchange), body.get("mode")
        mode = given.upper() if isinstance(given, str) else None
        if mode not in scopes.MODES and given is not None:
            raise invalid_mode()
        if mode == scopes.FORWARD and name != qualified(GLOBAL, ""):
            raise Refusal(42204, "Forward mode only supported on global level")
        await api.registry.set_mode(name, mode, force=exchange.flag("force"))
        await exchange.give({"mode": given})

    async def delete(exchange: RegistryExchange) -> None:
        mode = await api.registry.delete_mode(scope_of(exchange), recursive=exchange.flag("recursive"))
        await exchange.give({} if mode is None else {"mode": mode})

    for path in ("/mode", "/mode/{subject}"):
        add(routes, "GET", path, read)
        add(routes, "PUT", path, update)
        add(routes, "DELETE", path, delete)
