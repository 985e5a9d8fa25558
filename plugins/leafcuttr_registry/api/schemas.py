"""Schemas by their ids and guids."""

from typing import Any
from uuid import UUID

from leafcuttr_registry.api.associations import shown
from leafcuttr_registry.api.endpoints import Api, add
from leafcuttr_registry.api.exchange import RegistryExchange
from leafcuttr_registry.api.rights import seen
from leafcuttr_registry.subjects import associating, listing
from leafcuttr_registry.subjects.content import Content
from leafcuttr_registry.subjects.names import DEFAULT, beside, normalized
from leafcuttr_registry.subjects.refusals import no_schema
from leafcuttr_registry.subjects.state import Association, IdEntry, Version
from leafcuttr_sdk.web.errors import ApiError
from leafcuttr_sdk.web.routes import Routes

_HIGHEST = 2**31 - 1


def attach(routes: Routes, api: Api) -> None:
    def found(exchange: RegistryExchange) -> tuple[str, IdEntry, Version]:
        given = exchange.parameters["id"]
        id = int(given) if given.isascii() and given.isdigit() and len(given) <= 10 else _HIGHEST + 1
        subject = api.aliased(normalized(exchange.text("subject")))
        known = listing.entry_for(api.state, id, subject) if id <= _HIGHEST else None
        if known is None:
            raise no_schema(given)
        context, entry, place = known
        if exchange.serving.broker.security.authorizes:
            place = readable(exchange, entry, place)
        return context, entry, place

    def readable(exchange: RegistryExchange, entry: IdEntry, place: Version) -> Version:
        """A version that has it, of a subject that the client may read: this one if possible. Raises ApiError 40301."""
        return one_of(exchange, [place, *entry.places.values()])

    def one_of(exchange: RegistryExchange, places: list[Version]) -> Version:
        """The first of a subject that the client may read. Raises ApiError 40301."""
        allowed = seen(exchange, places, lambda each: each.subject)
        if not allowed:
            who = exchange.serving.principal
            raise ApiError(40301, f"{who} may not READ a topic subject/... that has this schema")
        return allowed[0]

    def seen_places(exchange: RegistryExchange, entry: IdEntry) -> list[Version]:
        places = listing.places(entry, deleted=exchange.flag("deleted"))
        return seen(exchange, places, lambda each: each.subject, "DESCRIBE")

    async def by_id(exchange: RegistryExchange) -> None:
        context, entry, place = found(exchange)
        text = await api.rendered(exchange, place.subject, entry.content)
        answer: dict[str, Any] = {}
        if exchange.text("subject"):
            answer = api.rendering.place(place)
        answer |= api.rendering.content(entry.content, text)
        if (
            exchange.text("referenceFormat") == "qualified"
            and context != DEFAULT
            and entry.content.references
        ):
            answer["references"] = qualified(place.subject, entry.content)
        answer |= await api.tags(exchange, place.subject, entry.content)
        if exchange.flag("fetchMaxId"):
            answer["maxId"] = api.state.highest(context)
        await exchange.give(answer)

    async def text_by_id(exchange: RegistryExchange) -> None:
        _, entry, place = found(exchange)
        text = await api.rendered(exchange, place.subject, entry.content)
        await exchange.give_bytes((entry.content.text if text is None else text).encode())

    async def subjects_of_id(exchange: RegistryExchange) -> None:
        _, entry, _ = found(exchange)
        places = seen_places(exchange, entry)
        await exchange.give(exchange.page([each.subject for each in places]))

    async def versions_of_id(exchange: RegistryExchange) -> None:
        _, entry, _ = found(exchange)
        places = seen_places(exchange, entry)
        await exchange.give(
            exchange.page([{"subject": each.subject, "version": each.version} for each in places])
        )

    async def by_guid(exchange: RegistryExchange) -> None:
        given = exchange.parameters["guid"]
        ids = listing.ids_of_guid(api.state, digest(given))
        if not ids:
            raise no_schema(given)
        entries = [api.state.contexts[context].ids[id] for context, id in ids]
        entry, place = entries[0], next(iter(entries[0].places.values()))
        if exchange.serving.broker.security.authorizes:
            # In one context the client may read it, in another not.
            place = one_of(exchange, [each for entry in entries for each in entry.places.values()])
            entry = next(each for each in entries if place in each.places.values())
        text = await api.rendered(exchange, place.subject, entry.content)
        await exchange.give(api.rendering.content(entry.content, text))

    async def ids_of_guid(exchange: RegistryExchange) -> None:
        ids = listing.ids_of_guid(api.state, digest(exchange.parameters["guid"]))
        found = [
            (context, id)
            for context, id in ids
            if seen(exchange, api.state.contexts[context].ids[id].places.values(), lambda each: each.subject)
        ]
        await exchange.give([{"context": context, "id": id} for context, id in found])

    async def types(exchange: RegistryExchange) -> None:
        await exchange.give(api.registry.checks.types)

    async def all_schemas(exchange: RegistryExchange) -> None:
        prefix = exchange.text("subjectPrefix")
        versions = listing.schemas(
            api.state,
            prefix,
            deleted=exchange.flag("deleted"),
            latest_only=exchange.flag("latestOnly"),
            rule_type=exchange.text("ruleType"),
        )
        versions = seen(exchange, versions, lambda each: each.subject)
        aliases = listing.aliases(api.state) if exchange.flag("aliases") else {}
        if aliases:
            listed = {each.subject for each in versions}
            for subject in aliases.keys() - listed:
                if any(name.startswith(prefix) for name in aliases[subject]):
                    more = api.state.versions(subject, deleted=exchange.flag("deleted"))
                    versions += more[-1:] if exchange.flag("latestOnly") else more
            versions = seen(exchange, versions, lambda each: each.subject)
            versions.sort(key=lambda each: (each.subject, each.version))
        await exchange.give_all(
            {
                **api.rendering.version(each),
                **(
                    {"aliases": seen(exchange, aliases[each.subject], str)} if each.subject in aliases else {}
                ),
                **({"associations": [shown(one) for one in some]} if some else {}),
            }
            for each, some in exchange.page(associated(exchange, versions))
        )

    def associated(
        exchange: RegistryExchange, versions: list[Version]
    ) -> list[tuple[Version, list[Association]]]:
        """Those that the query asks for, with their associations if it asks for these."""
        kind, parts = exchange.text("resourceType"), exchange.texts("associationType")
        lifecycles = [each.upper() for each in exchange.texts("lifecycle")]
        if not (kind or parts or lifecycles):
            return [(each, []) for each in versions]
        allowed = (*associating.LIFECYCLES, listing.NO_LIFECYCLE)
        if not all(each in allowed for each in lifecycles):
            raise ApiError(400, f"lifecycle has to be one of {', '.join(allowed)}.")
        return listing.associated(api.state, versions, kind or associating.TOPIC, parts, lifecycles)

    add(routes, "GET", "/schemas", all_schemas)
    add(routes, "GET", "/schemas/types", types)
    add(routes, "GET", "/schemas/ids/{id}", by_id)
    add(routes, "GET", "/schemas/ids/{id}/schema", text_by_id)
    add(routes, "GET", "/schemas/ids/{id}/subjects", subjects_of_id)
    add(routes, "GET", "/schemas/ids/{id}/versions", versions_of_id)
    add(routes, "GET", "/schemas/guids/{guid}", by_guid)
    add(routes, "GET", "/schemas/guids/{guid}/ids", ids_of_guid)


def digest(guid: str) -> bytes:
    """Raises Refusal 40403 for what is none."""
    try:
        return UUID(guid).bytes
    except ValueError:
        raise no_schema(guid) from None


def qualified(subject: str, content: Content) -> list[dict[str, Any]]:
    """References with the context that they are in."""
    return [
        {**each._asdict(), "subject": normalized(beside(subject, each.subject))}
        for each in content.references
    ]
