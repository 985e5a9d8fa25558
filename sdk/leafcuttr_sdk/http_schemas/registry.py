"""A registry over HTTP for code that blocks: see `leafcuttr_sdk.SchemaProvider` for what the functions promise."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

from leafcuttr_sdk.http_schemas import answers
from leafcuttr_sdk.http_schemas.exchange import Connections, NoAnswer
from leafcuttr_sdk.http_schemas.memory import Bounded, SchemaMemory
from leafcuttr_sdk.http_schemas.settings import RegistryAddress, registry_settings
from leafcuttr_sdk.schemas import (
    ParsedSchema,
    RegisteredSchema,
    ResolvedReference,
    SchemaError,
    SchemaFormat,
    SchemaNotFoundError,
    SchemaProviderError,
    SchemaReference,
    SchemaVersion,
    context_of,
)

T = TypeVar("T")

_LATEST: Final = -1
_DEEPEST: Final = 32
_MOST_RESOLVED: Final = 1000
"""Schemas that one refers to, through all of them."""


class HttpRegistry:
    """Any number of threads may use it. `formats` are for `parsed`: those of a broker are `Broker.schema_formats`.

    A registry that does not answer, and one that answers 408, 425, 429, 500, 502, 503 or 504, is requested again after
    a pause: by chance from 0 to `retries.wait.ms`, twice as much each time, `retries.max.wait.ms` at most; or what its
    Retry-After says, if that is more. Where there are several addresses, each is tried before a pause. Every request
    may be sent again: to register the same schema twice registers it once.

    Ids, guids and versions are remembered, `cache.capacity` of each; the latest version of a subject is not.

    Raises PluginError when it is made, with one line, for properties that cannot be used (`registry_settings`).
    """

    def __init__(
        self, properties: Mapping[str, str], *, formats: Mapping[str, SchemaFormat] | None = None
    ) -> None:
        self.settings = registry_settings(properties)
        self._properties = dict(properties)
        self._formats = formats or {}
        self._connections = Connections(self.settings)
        self._memory = SchemaMemory(self.settings.capacity, self.settings.missing_id_s)
        self._parsed: Bounded[tuple[str, str, str], ParsedSchema] = Bounded(self.settings.capacity)
        self._first = 0  # the address that has answered last

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (self._properties, dict(self._formats))

    @property
    def name(self) -> str:
        """For lines and labels: the addresses."""
        return ",".join(map(str, self.settings.addresses))

    def close(self) -> None:
        """Close its connections. It may be used on: then it opens others."""
        self._connections.close()

    # From memory

    def get(self, key: int | str, subject: str | None = None) -> RegisteredSchema | None:
        return self._memory.get(key, subject)

    def belongs(self, key: int | str, subject: str) -> bool:
        return self._memory.belongs(key, subject)

    def parsed(self, key: int | str, subject: str | None = None) -> ParsedSchema | None:
        found = self._memory.get(key, subject)
        if found is None:
            return None
        format = self._formats.get(found.format)
        if format is None:
            raise SchemaError(f"there is no schema format {found.format}")
        place = (context_of(subject), found.format, found.guid or str(found.id))
        if (known := self._parsed.get(place)) is not None:
            return known
        resolved = self._resolved(found, subject, fetches=False)
        if resolved is None:
            return None
        parsed = format.parse(found.text, resolved)
        self._parsed.put(place, parsed)
        return parsed

    # From the registry

    def by_id(self, key: int | str, subject: str | None = None) -> RegisteredSchema:
        """The schema. Raises SchemaNotFoundError, SchemaProviderError."""
        found = self._memory.get(key, subject)
        if found is None:
            if self._memory.is_missing(key, subject, time.monotonic()):
                raise SchemaNotFoundError(f"Schema {key} not found")
            try:
                if isinstance(key, int):
                    found = self._by_id(key, subject, fetchMaxId="false")
                else:
                    found = self._by_guid(key, subject)
            except SchemaNotFoundError:
                self._memory.lacks(key, subject, time.monotonic())
                raise
            self._memory.has(found, subject)
        if self._formats:
            self._resolved(found, subject, fetches=True)
        return found

    def by_version(self, subject: str, version: int | None = None) -> SchemaVersion:
        """A version of the subject; None: the latest. Raises SchemaNotFoundError, SchemaProviderError."""
        wanted = _LATEST if version is None else version
        found = None if wanted < 0 else self._memory.version(subject, wanted)
        if found is None:
            which = "latest" if wanted < 0 else str(wanted)
            body, address = self._request("GET", _path(subject, "versions", which))
            found = self._version(body, address)
            self._memory.has_version(found, subject)
        if self._formats:
            self._resolved(found.schema, subject, fetches=True)
        return found

    def find(
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> SchemaVersion:
        """The version of the subject that has this schema. Raises SchemaError, SchemaNotFoundError,
        SchemaProviderError."""
        given = (subject, format, text, tuple(references))
        found = self._memory.asked(SchemaVersion, *given)
        if found is None:
            body, address = self._request(
                "POST", _path(subject) + self._query(), answers.asked(format, text, references)
            )
            found = self._version(body, address)
            self._memory.has_version(found, subject)
            self._memory.answered(found, *given)
        return found

    def register(
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> RegisteredSchema:
        """Add the schema to the subject, unless that has it already. Raises SchemaError, IncompatibleSchemaError,
        SchemaNotFoundError for references, SchemaProviderError."""
        if not text.strip():
            raise SchemaError("the schema is empty")
        for each in references:
            self.by_version(_beside(subject, each.subject), each.version if each.version >= 0 else None)
        given = (subject, format, text, tuple(references))
        found = self._memory.asked(RegisteredSchema, *given)
        if found is None:
            body, address = self._request(
                "POST", _path(subject, "versions") + self._query(), answers.asked(format, text, references)
            )
            # Older registries answer with the id alone, and any may have changed the text.
            found = self.by_id(self._told(answers.id_of, body, address), subject)
            self._memory.is_in(found, subject)
            self._memory.answered(found, *given)
        elif self._formats:
            self._resolved(found, subject, fetches=True)
        return found

    def resolved(
        self, schema: RegisteredSchema, subject: str | None = None
    ) -> Mapping[str, ResolvedReference]:
        """The schemas that it refers to, by their names, each with its own. Raises SchemaNotFoundError,
        SchemaProviderError; SchemaError for more than 1000, or more than 32 below each other."""
        found = self._resolved(schema, subject, fetches=True)
        assert found is not None
        return found

    def formatted(self, id: int, how: str, subject: str | None = None) -> str:
        """The text of a schema in another form: of Protobuf `serialized`, base64 of its descriptor. Where the registry
        has no such form, it is the text as it was registered. Not remembered. Raises SchemaNotFoundError,
        SchemaProviderError."""
        return self._by_id(id, subject, format=how).text

    # --- how ------------------------------------------------------------------------------------------------

    def _by_id(self, id: int, subject: str | None, **query: str) -> RegisteredSchema:
        if subject is not None:
            query["subject"] = subject
        body, address = self._request("GET", f"/schemas/ids/{id}?{urlencode(query)}")
        # What the answer calls the id is the subject's, where it has one.
        return self._told(
            answers.schema, {**_mapping(body), "id": id} if isinstance(body, dict) else body, address
        )

    def _by_guid(self, guid: str, subject: str | None) -> RegisteredSchema:
        path = f"/schemas/guids/{quote(guid, safe='')}"
        ids, address = self._request("GET", f"{path}/ids")
        id = self._told(answers.id_in_context, ids, context_of(subject), address)
        if id is None:
            raise SchemaNotFoundError(f"Schema {guid} not found")
        body, address = self._request("GET", path)
        given = {**_mapping(body), "id": id, "guid": guid.lower()} if isinstance(body, dict) else body
        return self._told(answers.schema, given, address)

    def _version(self, body: Any, address: RegistryAddress) -> SchemaVersion:
        """Of an answer; one without a guid, of an older registry, is completed by its id."""
        subject, version = self._told(answers.place, body, address)
        return SchemaVersion(subject, version, self._told(answers.schema, body, address))

    def _resolved(
        self, schema: RegisteredSchema, subject: str | None, *, fetches: bool
    ) -> Mapping[str, ResolvedReference] | None:
        """None: some are not in memory, and none is to be fetched."""
        left = [_MOST_RESOLVED]
        try:
            return self._tree(schema, subject, fetches, left, 0)
        except LookupError as error:
            if isinstance(error, SchemaNotFoundError):
                raise
            return None

    def _tree(
        self, schema: RegisteredSchema, subject: str | None, fetches: bool, left: list[int], depth: int
    ) -> Mapping[str, ResolvedReference]:
        found: dict[str, ResolvedReference] = {}
        for each in schema.references:
            left[0] -= 1
            if left[0] < 0 or depth >= _DEEPEST:
                raise SchemaError(
                    f"schema {schema.id} refers to more than {_MOST_RESOLVED} others, or to more than {_DEEPEST} "
                    "below each other"
                )
            name = _beside(subject, each.subject)
            known = self._memory.version(name, each.version)
            if known is None:
                if not fetches:
                    raise LookupError
                body, address = self._request("GET", _path(name, "versions", _which(each.version)))
                known = self._version(body, address)
                self._memory.has_version(known, name)
            below = self._tree(known.schema, name, fetches, left, depth + 1)
            found[each.name] = ResolvedReference(known.schema.text, below)
        return found

    def _query(self) -> str:
        return "?normalize=true" if self.settings.normalize else ""

    def _told(self, read: Callable[..., T], *arguments: Any) -> T:
        """What `read` makes of an answer. Raises SchemaProviderError."""
        try:
            return read(*arguments)
        except NoAnswer as error:
            raise SchemaProviderError(str(error)) from None

    def _request(self, method: str, path: str, body: object = None) -> tuple[Any, RegistryAddress]:
        """The body of the answer, and who has given it. Raises the errors of the contract."""
        settings = self.settings
        wait_s, last = settings.retry_wait_s, ""
        for retry in range(settings.retries + 1):
            pause_s = 0.0
            count = len(settings.addresses)
            for step in range(count):
                place = (self._first + step) % count
                address = settings.addresses[place]
                try:
                    answer = self._connections.request(address, method, path, body)
                    if answer.status in answers.RETRIED:
                        last = f"the schema registry at {address} answers {answer.status}"
                        pause_s = answer.retry_after_s or 0.0
                        continue
                    found = answers.checked(answer, address)
                except NoAnswer as error:
                    last = str(error)
                    continue
                self._first = place
                return found, address
            if retry < settings.retries:
                chance_s = random.uniform(0, min(wait_s, settings.retry_wait_max_s))
                time.sleep(min(max(chance_s, pause_s), settings.retry_wait_max_s))
                wait_s *= 2
        raise SchemaProviderError(last)


def _made_again(properties: Mapping[str, str], formats: Mapping[str, SchemaFormat]) -> HttpRegistry:
    return HttpRegistry(properties, formats=formats)


def _mapping(body: Any) -> dict[str, Any]:
    return dict(body)


def _path(subject: str, *more: str) -> str:
    return "/".join(["/subjects", *(quote(each, safe="") for each in (subject, *more))])


def _which(version: int) -> str:
    return "latest" if version < 0 else str(version)


def _beside(subject: str | None, named: str) -> str:
    """A subject that a reference names is of the context of the schema that has it, unless it says another."""
    context = context_of(subject)
    return named if context == "." or named.startswith(":.") else f":{context}:{named}"
