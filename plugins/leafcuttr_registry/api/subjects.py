"""Subjects: listed, looked up in, deleted."""

from leafcuttr_registry.api import requests, rights
from leafcuttr_registry.api.endpoints import Api, add
from leafcuttr_registry.api.exchange import RegistryExchange
from leafcuttr_registry.subjects import listing
from leafcuttr_registry.subjects.names import ALL
from leafcuttr_registry.subjects.refusals import no_schema, no_subject
from leafcuttr_sdk.web.routes import Routes


def attach(routes: Routes, api: Api) -> None:
    async def list_all(exchange: RegistryExchange) -> None:
        given = exchange.query.get("subjectPrefix") if exchange.scope["query_string"] else None
        names = listing.subjects(
            api.state,
            ALL if given is None else given[0],
            deleted=exchange.flag("deleted"),
            deleted_only=exchange.flag("deletedOnly"),
        )
        names = rights.seen(exchange, names, str, "DESCRIBE")
        await exchange.give(exchange.page(names))

    async def look_up(exchange: RegistryExchange) -> None:
        subject, given = api.subject(exchange), requests.registration(await exchange.body_json())
        if not api.rendering.confluent:
            requests.needs_schema(given, previous=False)
        version = await api.registry.look_up(
            subject, given, normalize=exchange.flag("normalize"), deleted=exchange.flag("deleted")
        )
        text = await api.rendered(exchange, version.subject, version.content)
        await exchange.give(api.rendering.looked_up(version, text))

    async def delete(exchange: RegistryExchange) -> None:
        numbers = await api.registry.delete_subject(
            api.subject(exchange), permanent=exchange.flag("permanent")
        )
        await exchange.give(numbers)

    async def with_metadata(exchange: RegistryExchange) -> None:
        subject, deleted = api.subject(exchange), exchange.flag("deleted")
        query = exchange.query
        wanted = dict(zip(query.get("key", []), query.get("value", []), strict=False))
        version = listing.with_metadata(api.state, subject, wanted, deleted=deleted)
        if version is None:
            raise no_schema() if api.state.has(subject, deleted=deleted) else no_subject(subject)
        text = await api.rendered(exchange, version.subject, version.content)
        await exchange.give(api.rendering.version(version, text))

    add(routes, "GET", "/subjects", list_all)
    add(routes, "POST", "/subjects/{subject}", look_up)
    add(routes, "DELETE", "/subjects/{subject}", delete)
    add(routes, "GET", "/subjects/{subject}/metadata", with_metadata)
