"""The schemas of a produce request: `key_schema` and `value_schema` as texts, or their ids.

A text is registered in the subject `<topic>-key` or `<topic>-value`, unless that has it. An id may be that of any
subject: which ones a topic takes says its setting `lc.schema.validation.value`.
"""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from leafcuttr_http.envelope import whole
from leafcuttr_http.errors import ApiError
from leafcuttr_http.schemas.shared import Schemas
from leafcuttr_http.schemas.types import not_yet
from leafcuttr_sdk.schemas import (
    IncompatibleSchemaError,
    SchemaError,
    SchemaNotFoundError,
    SchemaProviderError,
)

if TYPE_CHECKING:
    from leafcuttr_sdk.schemas import RegisteredSchema, SchemaProvider

Part = Literal["key", "value"]
_REMEMBERED: Final = 1000
_LARGEST_ID: Final = 2**31 - 1


class Wanted(NamedTuple):
    """What a request says of the schema of its keys, or of its values; at most one of the two is there."""

    part: Part
    text: str | None = None
    id: int | None = None


def wanted(members: Mapping[str, object], part: Part) -> Wanted:
    """Raises ApiError 422."""
    text, raw = members.get(f"{part}_schema"), members.get(f"{part}_schema_id")
    if text is not None and raw is not None:
        raise ApiError(422, f"{part}_schema and {part}_schema_id exclude each other.")
    if text is not None and (type(text) is not str or not text.strip()):
        raise ApiError(422, f"{part}_schema has to be the text of a schema, as a string.")
    if raw is None:
        return Wanted(part, text if type(text) is str else None)
    id = whole(raw)
    if id is None or not 0 <= id <= _LARGEST_ID:
        raise ApiError(422, f"{part}_schema_id has to be a whole number from 0 to {_LARGEST_ID}.")
    return Wanted(part, id=id)


async def find(
    schemas: Schemas, provider: "SchemaProvider", topic: str, type: str, wanted: Wanted
) -> int | None:
    """The id of the schema, which the registry then has in memory; None where none is named. Raises ApiError: 42205
    for a schema that is none of this type, 40801 where the registry has none or refuses it."""
    if wanted.id is not None:
        return await _by_id(schemas, provider, type, wanted.part, wanted.id)
    if wanted.text is not None:
        return await _by_text(schemas, provider, f"{topic}-{wanted.part}", type, wanted.part, wanted.text)
    return None


async def _by_id(schemas: Schemas, provider: "SchemaProvider", type: str, part: Part, id: int) -> int:
    found = provider.get(id)
    if found is None:
        try:
            if schemas.is_missing(id):
                raise SchemaNotFoundError(f"Schema {id} not found")
            found = await provider.by_id(id)
        except SchemaNotFoundError as error:
            schemas.missing(id)
            raise ApiError(40801, f"{part}_schema_id {id}: {error}.") from None
        except SchemaProviderError as error:
            raise _cannot(provider, f"{part}_schema_id {id}", error) from None
    if found.format != type:
        raise ApiError(42205, f"{part}_schema_id {id} is a schema of type {found.format}, not {type}.")
    return id


async def _by_text(
    schemas: Schemas, provider: "SchemaProvider", subject: str, type: str, part: Part, text: str
) -> int:
    try:
        key = subject, type, hashlib.sha256(text.encode()).digest()
    except UnicodeEncodeError:
        raise ApiError(42205, f"{part}_schema has half of a surrogate pair, which is no character.") from None
    known = schemas.registered.get(key)
    if known is not None and provider.belongs(known, subject):
        return known
    found = await _registered(schemas, provider, subject, type, part, text)
    schemas.registered[key] = found.id
    if len(schemas.registered) > _REMEMBERED:
        schemas.registered.popitem(last=False)
    return found.id


async def _registered(
    schemas: Schemas, provider: "SchemaProvider", subject: str, type: str, part: Part, text: str
) -> "RegisteredSchema":
    try:
        try:
            # First looked up: a registry that takes no schemas at present still knows those that it has.
            return (await provider.find(subject, type, text)).schema
        except SchemaNotFoundError:
            return await provider.register(subject, type, text)
    except SchemaError as error:
        line = f", line {error.line}" if error.line is not None else ""
        raise ApiError(42205, f"{part}_schema is no schema of type {type}{line}: {error}.") from None
    except IncompatibleSchemaError as error:
        why = "; ".join(each.message for each in error.differences[:3]) or str(error)
        raise ApiError(
            40801, f"{part}_schema is not compatible with earlier versions of subject {subject}: {why}"
        ) from None
    except SchemaNotFoundError as error:
        raise ApiError(40801, f"{part}_schema cannot be registered in subject {subject}: {error}") from None
    except SchemaProviderError as error:
        raise _cannot(provider, f"{part}_schema in subject {subject}", error) from None


def _cannot(provider: "SchemaProvider", what: str, error: SchemaProviderError) -> ApiError:
    return not_yet(str(error)) if provider.waits_for is not None else ApiError(40801, f"{what}: {error}")
