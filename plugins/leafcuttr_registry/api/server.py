"""`/`, `/restart`, and what the server is."""

from leafcuttr_registry.api.endpoints import Api, add
from leafcuttr_registry.api.exchange import RegistryExchange
from leafcuttr_registry.settings import UNSTABLE
from leafcuttr_registry.subjects.refusals import Refusal
from leafcuttr_sdk.errors import BrokerError
from leafcuttr_sdk.web.routes import Routes


def attach(routes: Routes, api: Api) -> None:
    cluster = api.registry.broker.cluster

    async def root(exchange: RegistryExchange) -> None:
        await exchange.give({})

    async def restart(exchange: RegistryExchange) -> None:
        if not api.options.unstable:
            raise Refusal(40401, f"This endpoint is disabled: {UNSTABLE} enables it.")
        try:
            await api.restart()
        except BrokerError as error:
            raise Refusal(50001, f"The restart failed: {error.message or error.code.name}") from None
        await exchange.give({"success": True})

    async def cluster_id(exchange: RegistryExchange) -> None:
        clusters = {"kafka-cluster": cluster.cluster_id, "schema-registry-cluster": "schema-registry"}
        await exchange.give({"scope": {"path": [], "clusters": clusters}})

    async def version(exchange: RegistryExchange) -> None:
        await exchange.give({"version": cluster.version, "commitId": "leafcuttr"})

    add(routes, "GET", "/", root)
    add(routes, "POST", "/", root)
    add(routes, "POST", "/restart", restart)
    add(routes, "GET", "/v1/metadata/id", cluster_id)
    add(routes, "GET", "/v1/metadata/version", version)
