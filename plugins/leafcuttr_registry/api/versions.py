"""The versions of a subject: listed, read, registered, deleted; and new ones with other tags and rules."""

from leafcuttr_registry.api import requests
from leafcuttr_registry.api.endpoints import Api, add
from leafcuttr_registry.api.exchange import RegistryExchange
from leafcuttr_registry.api.schemas import qualified
from leafcuttr_registry.subjects import tags
from leafcuttr_registry.subjects.metadata import merge_rules, read_metadata, with_version, without_rules
from leafcuttr_registry.subjects.names import DEFAULT, context_of, is_valid
from leafcuttr_registry.subjects.refusals import invalid_rules, invalid_subject, no_subject
from leafcuttr_registry.subjects.registering import Registration
from leafcuttr_registry.subjects.state import Version
from leafcuttr_registry.subjects.versions import need, read_version
from leafcuttr_sdk.web.errors import ApiError
from leafcuttr_sdk.web.routes import Routes


def attach(routes: Routes, api: Api) -> None:
    def found(exchange: RegistryExchange, *, deleted: bool) -> Version:
        version = read_version(exchange.parameters["version"])
        return need(api.state, api.subject(exchange), version, deleted=deleted)

    async def list_all(exchange: RegistryExchange) -> None:
        subject = api.subject(exchange)
        deleted, only = exchange.flag("deleted"), exchange.flag("deletedOnly")
        if not api.state.has(subject, deleted=deleted or only):
            raise no_subject(subject)
        negative = exchange.flag("deletedAsNegative")
        versions = api.state.versions(subject, deleted=deleted or only or negative)
        if only and not negative:
            versions = [each for each in versions if each.deleted]
        numbers = [-each.version if negative and each.deleted else each.version for each in versions]
        await exchange.give(exchange.page(numbers))

    async def read(exchange: RegistryExchange) -> None:
        version = found(exchange, deleted=exchange.flag("deleted"))
        text = await api.rendered(exchange, version.subject, version.content)
        answer = api.rendering.version(version, text)
        answer |= await api.tags(exchange, version.subject, version.content)
        if exchange.text("referenceFormat") == "qualified" and context_of(version.subject) != DEFAULT:
            answer["references"] = qualified(version.subject, version.content)
        await exchange.give(answer)

    async def read_text(exchange: RegistryExchange) -> None:
        version = found(exchange, deleted=exchange.flag("deleted"))
        text = await api.rendered(exchange, version.subject, version.content)
        await exchange.give_bytes((version.content.text if text is None else text).encode())

    async def referenced_by(exchange: RegistryExchange) -> None:
        version = found(exchange, deleted=True)
        others = api.state.referenced_by(version.key, deleted=exchange.flag("deleted"))
        ids = sorted({(context_of(each.subject), each.id) for each in others})
        await exchange.give([id for _, id in exchange.page(ids)])

    async def register(exchange: RegistryExchange) -> None:
        body = await exchange.body_json()
        given = requests.registration(body)
        subject = api.subject(exchange)
        if not is_valid(subject, of_schemas=True):
            raise invalid_subject(subject)
        if not api.rendering.confluent:
            requests.needs_schema(given, previous=True)
        added, removed = tags.read(body, "schemaTagsToAdd"), tags.read(body, "schemaTagsToRemove")
        given = await api.registry.with_tags(subject, given, added, removed)
        version = await api.registry.register(
            subject,
            given,
            normalize=exchange.flag("normalize"),
            force=exchange.flag("force"),
            propagate_tags=body.get("propagateSchemaTags") is True,
        )
        text = await api.rendered(exchange, version.subject, version.content)
        await exchange.give(api.rendering.registered(version, text, given=given.text))

    async def delete(exchange: RegistryExchange) -> None:
        version = read_version(exchange.parameters["version"])
        number = await api.registry.delete_version(
            api.subject(exchange), version, permanent=exchange.flag("permanent")
        )
        await exchange.give(number)

    async def change_tags(exchange: RegistryExchange) -> None:
        body = await exchange.body_json()
        version = found(exchange, deleted=False)
        content = version.content
        merged, dropped = requests.rules(body, "rulesToMerge"), requests.texts(body, "rulesToRemove")
        rules = requests.rules(body, "ruleSet")
        if merged is not None or dropped is not None:
            if rules is not None:
                raise invalid_rules("ruleSet should be omitted if specifying rulesToMerge or rulesToRemove")
            rules = without_rules(merge_rules(content.rules, merged), dropped or [])
        number = body.get("newVersion")
        if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 1):
            raise ApiError(400, "newVersion has to be a whole number above 0.")
        try:
            metadata = read_metadata(body.get("metadata"))
        except ValueError as error:
            raise ApiError(400, f"{error}.") from None
        given = Registration(
            content.type,
            content.text,
            content.references,
            with_version(content.metadata if metadata is None else metadata, number or 0),
            rules,
            number or 0,
        )
        added, removed = tags.read(body, "tagsToAdd"), tags.read(body, "tagsToRemove")
        given = await api.registry.with_tags(version.subject, given, added, removed)
        await exchange.give(api.rendering.registered(await api.registry.register(version.subject, given)))

    path = "/subjects/{subject}/versions"
    add(routes, "GET", path, list_all)
    add(routes, "POST", path, register)
    add(routes, "GET", f"{path}/{{version}}", read)
    add(routes, "DELETE", f"{path}/{{version}}", delete)
    add(routes, "GET", f"{path}/{{version}}/schema", read_text)
    add(routes, "GET", f"{path}/{{version}}/referencedby", referenced_by)
    add(routes, "POST", f"{path}/{{version}}/tags", change_tags)
