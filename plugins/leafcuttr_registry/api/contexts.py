"""Contexts: listed and deleted. That every path may stand below `/contexts/{context}` is done by the front."""

from leafcuttr_registry.api.endpoints import Api, add
from leafcuttr_registry.api.exchange import RegistryExchange
from leafcuttr_registry.subjects.names import prefix_of
from leafcuttr_sdk.web.errors import ApiError
from leafcuttr_sdk.web.routes import Routes


def attach(routes: Routes, api: Api) -> None:
    async def list_all(exchange: RegistryExchange) -> None:
        prefix = exchange.text("contextPrefix")
        names = [each for each in api.state.context_names() if each.startswith(prefix)]
        await exchange.give(exchange.page(names))

    async def delete(exchange: RegistryExchange) -> None:
        try:
            prefix = prefix_of(exchange.parameters["context"])
        except ValueError as error:
            raise ApiError(400, f"{error}.") from None
        await api.registry.delete_context(prefix)
        await exchange.answer(204, b"")

    add(routes, "GET", "/contexts", list_all)
    add(routes, "DELETE", "/contexts/{context}", delete)
