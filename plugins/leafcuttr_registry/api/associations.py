"""Associations of resources, topics as a rule, with subjects."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from leafcuttr_registry.api import requests
from leafcuttr_registry.api.endpoints import Api, add
from leafcuttr_registry.api.exchange import RegistryExchange
from leafcuttr_registry.api.rights import seen
from leafcuttr_registry.subjects import associating
from leafcuttr_registry.subjects.names import prefix_of
from leafcuttr_registry.subjects.state import Association, Version
from leafcuttr_sdk.web.errors import ApiError
from leafcuttr_sdk.web.routes import Routes

_RESOURCE: Final = "/associations/resources/{id}"


def attach(routes: Routes, api: Api) -> None:
    def wanted(exchange: RegistryExchange) -> dict[str, Any]:
        """What the query asks for."""
        lifecycle = exchange.text("lifecycle").upper()
        if lifecycle not in ("", *associating.LIFECYCLES):
            raise ApiError(400, f"lifecycle has to be one of {', '.join(associating.LIFECYCLES)}.")
        return {
            "kind": exchange.text("resourceType") or associating.TOPIC,
            "parts": exchange.texts("associationType"),
            "lifecycle": lifecycle,
        }

    async def give(exchange: RegistryExchange, found: Sequence[Association]) -> None:
        found = seen(exchange, found, lambda each: each.key.subject)
        await exchange.give([shown(each) for each in exchange.page(found)])

    async def of_subject(exchange: RegistryExchange) -> None:
        query = wanted(exchange)
        await give(exchange, associating.listed(api.state, subject=api.subject(exchange), **query))

    async def of_resource(exchange: RegistryExchange) -> None:
        query = wanted(exchange)
        await give(exchange, associating.listed(api.state, resource=exchange.parameters["id"], **query))

    async def by_name(exchange: RegistryExchange) -> None:
        name, namespace = exchange.parameters["name"], exchange.parameters["namespace"]
        query = wanted(exchange)
        await give(exchange, associating.listed(api.state, name=name, namespace=namespace, **query))

    async def change(exchange: RegistryExchange, *, resource: str | None) -> None:
        body, dry_run = await exchange.body_json(), exchange.flag("dryRun")
        create = resource is None
        request = associating.read_request(
            body, requests.registration, create=create, dry_run=dry_run, resource=resource
        )
        try:
            context = prefix_of(exchange.text("context") or ".")
        except ValueError as error:
            raise ApiError(400, f"{error}.") from None
        found = await api.registry.associate(context, request, create=create, dry_run=dry_run)
        answer: dict[str, Any] = {"resourceName": request.name, "resourceNamespace": request.namespace}
        if request.resource is not None:
            answer["resourceId"] = request.resource
        answer["resourceType"] = request.kind
        if found:
            answer["associations"] = [_told(api, association, version) for association, version in found]
        await exchange.give(answer)

    async def create(exchange: RegistryExchange) -> None:
        await change(exchange, resource=None)

    async def update(exchange: RegistryExchange) -> None:
        await change(exchange, resource=exchange.parameters["id"])

    async def delete(exchange: RegistryExchange) -> None:
        await api.registry.delete_associations(
            exchange.parameters["id"],
            exchange.text("resourceType") or associating.TOPIC,
            exchange.texts("associationType"),
            cascade=exchange.flag("cascadeLifecycle"),
            dry_run=exchange.flag("dryRun"),
        )
        await exchange.answer(204, b"")

    add(routes, "GET", "/associations/subjects/{subject}", of_subject)
    add(routes, "GET", _RESOURCE, of_resource)
    add(routes, "GET", "/associations/resources/{namespace}/{name}", by_name)
    add(routes, "POST", "/associations", create)
    add(routes, "PUT", _RESOURCE, update)
    add(routes, "DELETE", _RESOURCE, delete)


def shown(association: Association) -> dict[str, Any]:
    """As all answers have it."""
    key, value = association.key, association.value
    return {
        "subject": key.subject,
        "guid": value.guid,
        "resourceName": key.name,
        "resourceNamespace": key.namespace,
        "resourceId": value.resource,
        "resourceType": key.kind,
        "associationType": key.part,
        "lifecycle": value.lifecycle,
        "frozen": value.frozen,
        "createTs": association.created,
        "updateTs": association.updated,
    }


def _told(api: Api, association: Association, version: Version | None) -> Mapping[str, Any]:
    all_of_it = shown(association)
    found = {name: all_of_it[name] for name in ("subject", "associationType", "lifecycle", "frozen")}
    return found if version is None else {**found, "schema": api.rendering.version(version)}
