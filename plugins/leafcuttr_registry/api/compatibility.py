"""Whether a schema could be registered."""

from leafcuttr_registry.api import requests
from leafcuttr_registry.api.endpoints import Api, add
from leafcuttr_registry.api.exchange import RegistryExchange
from leafcuttr_registry.subjects.refusals import Refusal, no_subject, no_version
from leafcuttr_registry.subjects.state import Version
from leafcuttr_registry.subjects.versions import LATEST, find, read_version
from leafcuttr_sdk.web.routes import Routes


def attach(routes: Routes, api: Api) -> None:
    def wanted(subject: str, version: int) -> Version | None:
        found = find(api.state, subject, version, deleted=False)
        if found is not None:
            return found
        if api.rendering.confluent:
            if version == LATEST:
                return None
        elif not api.state.has(subject, deleted=False):
            raise no_subject(subject)
        raise no_version(version)

    async def against_one(exchange: RegistryExchange) -> None:
        body = await exchange.body_json()
        subject, number = api.subject(exchange), read_version(exchange.parameters["version"])
        version = wanted(subject, number)
        await answer(exchange, subject, body, version, nothing=version is None)

    async def against_all(exchange: RegistryExchange) -> None:
        body = await exchange.body_json()
        await answer(exchange, api.subject(exchange), body, None)

    async def answer(
        exchange: RegistryExchange,
        subject: str,
        body: dict[str, object],
        version: Version | None,
        *,
        nothing: bool = False,
    ) -> None:
        verbose, given = exchange.flag("verbose"), requests.registration(body)
        try:
            messages = await api.registry.why_not(
                subject, given, version, normalize=exchange.flag("normalize"), alone=nothing
            )
        except Refusal as error:
            if not verbose or error.code != 42201:
                raise
            messages = [str(error)]
        found: dict[str, object] = {"is_compatible": not messages}
        if verbose:
            found["messages"] = messages
        await exchange.give(found)

    path = "/compatibility/subjects/{subject}/versions"
    add(routes, "POST", path, against_all)
    add(routes, "POST", f"{path}/{{version}}", against_one)
