"""Schemas of a registry over HTTP, with all that they refer to, as their formats read them."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from leafcuttr_registry.formats import formats
from leafcuttr_registry.people.client import RegistryClient, subject_path
from leafcuttr_registry.places import place_not_said
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.schemas import ParsedSchema, ResolvedReference, SchemaError, SchemaFormat

AVRO: Final = "AVRO"
_DEEPEST: Final = 100


@lru_cache(1)
def known_formats() -> Mapping[str, SchemaFormat]:
    return {each.name: each for each in formats()}


def format_named(name: str) -> SchemaFormat:
    """Raises PluginError."""
    found = known_formats().get(name.upper())
    if found is None:
        raise PluginError(f"there is no schema format {name}; there are {', '.join(known_formats())}")
    return found


class HttpSchemas:
    """Remembers what the registry has given: a schema of an id never changes."""

    def __init__(self, client: RegistryClient) -> None:
        self.client: Final = client
        self._by_key: dict[int | str, tuple[str, ParsedSchema]] = {}
        self._resolved: dict[tuple[str, int], ResolvedReference] = {}

    def by_key(self, key: int | str) -> tuple[str, ParsedSchema]:
        """The name of its format, and the schema, of an id or a guid. Raises PluginError."""
        found = self._by_key.get(key)
        if found is None:
            where = "ids" if isinstance(key, int) else "guids"
            found = self._by_key[key] = self.parsed(
                self.client.get(f"/schemas/{where}/{key}"), f"schema {key}"
            )
        return found

    def parsed(self, body: Mapping[str, Any], what: str) -> tuple[str, ParsedSchema]:
        """Of an answer of the registry, or of a body for it. Raises PluginError."""
        format = format_named(body.get("schemaType") or AVRO)
        try:
            return format.name, format.parse(body["schema"], self.resolve(body.get("references")))
        except SchemaError as error:
            place = place_not_said(error)
            where = f", {place}" if place else ""
            raise PluginError(f"{what} is no {format.summary}{where}: {error}") from None

    def resolve(self, references: Any, depth: int = 0) -> dict[str, ResolvedReference]:
        """Raises PluginError."""
        if depth > _DEEPEST:
            raise PluginError(f"references lead further than {_DEEPEST} steps")
        found = {}
        for each in references or ():
            key = each["subject"], each["version"]
            if key not in self._resolved:
                body = self.client.get(subject_path(*key[:1], "versions", key[1]), deleted=True)
                nested = self.resolve(body.get("references"), depth + 1)
                self._resolved[key] = ResolvedReference(body["schema"], nested)
            found[each["name"]] = self._resolved[key]
        return found
