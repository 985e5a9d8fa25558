"""The registry as other plugins of this broker see it: `Broker.schemas`.

It is there before the service runs, and while the service is restarted: then it says what it waits for.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from uuid import UUID
from weakref import WeakKeyDictionary

from leafcuttr_registry.parsed import ParsedSchemas
from leafcuttr_registry.storage.topics import SCHEMAS
from leafcuttr_registry.subjects import references as named
from leafcuttr_registry.subjects.content import Content
from leafcuttr_registry.subjects.names import beside, context_of, normalized, qualified
from leafcuttr_registry.subjects.refusals import Incompatible, Refusal
from leafcuttr_registry.subjects.registering import Registration
from leafcuttr_registry.subjects.state import State, Version
from leafcuttr_registry.subjects.versions import LATEST, find, need
from leafcuttr_sdk.schemas import (
    IncompatibleSchemaError,
    ParsedSchema,
    RegisteredSchema,
    ResolvedReference,
    SchemaError,
    SchemaNotFoundError,
    SchemaProviderError,
    SchemaReference,
    SchemaVersion,
)

if TYPE_CHECKING:
    from leafcuttr_registry.registry import Registry
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.read_only import ReadOnlyBroker

INVALID_SCHEMA: Final = 42201
READING: Final = f"the topic {SCHEMAS} is still being read"

_providers: Final["WeakKeyDictionary[Broker | ReadOnlyBroker, RegistryProvider]"] = WeakKeyDictionary()


def provider_of(broker: "Broker | ReadOnlyBroker") -> "RegistryProvider":
    """The one of this broker. Any thread may ask for what is there already."""
    found = _providers.get(broker)
    if found is None:
        found = _providers[broker] = RegistryProvider()
    return found


class RegistryProvider:
    """See `leafcuttr_sdk.SchemaProvider`. The service sets `registry` while it can answer."""

    def __init__(self) -> None:
        self.registry: Registry | None = None
        self._parsed = ParsedSchemas()

    @property
    def waits_for(self) -> str | None:
        return READING if self.registry is None else None

    # Any thread: reads of single entries of the state, which is changed by the loop's thread

    def get(self, key: int | str, subject: str | None = None) -> RegisteredSchema | None:
        found = _entry(self.registry, key, subject)
        return None if found is None else _registered(*found[:2])

    def parsed(self, key: int | str, subject: str | None = None) -> ParsedSchema | None:
        registry = self.registry
        found = _entry(registry, key, subject)
        if registry is None or found is None:
            return None
        _, content, context = found
        format = registry.broker.schema_formats.get(content.type)
        if format is None:
            raise SchemaError(f"there is no schema format {content.type}")
        resolved = _resolved(registry.state, content, context)
        return self._parsed.get(format, content, resolved)

    def belongs(self, key: int | str, subject: str) -> bool:
        registry = self.registry
        found = _entry(registry, key, subject)
        if registry is None or found is None:
            return False
        id, _, context = found
        entry = registry.state.by_id(context, id)
        name = normalized(subject)
        # A copy, made in one step: the loop's thread may change it meanwhile.
        places = () if entry is None else tuple(entry.places.values())
        return any(each.subject == name and not each.deleted for each in places)

    # The loop's thread

    async def by_id(self, key: int | str, subject: str | None = None) -> RegisteredSchema:
        registry = self._open()
        found = self.get(key, subject)
        if found is None:
            with _told():
                await registry.reader.reach_end()
            self._open()  # a service that is stopped meanwhile has not said that there is none
            found = self.get(key, subject)
        if found is None:
            raise SchemaNotFoundError(f"Schema {key} not found")
        return found

    async def by_version(self, subject: str, version: int | None = None) -> SchemaVersion:
        registry = self._open()
        with _told():
            await registry.reader.reach_end()
            number = LATEST if version is None else version
            return _version(need(registry.state, normalized(subject), number, deleted=False))

    async def find(
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> SchemaVersion:
        registry, name = self._open(), normalized(subject)
        await self._check(registry, name, references)
        with _told():
            if not registry.state.has(name, deleted=False):
                await registry.reader.reach_end()
            return _version(await registry.look_up(name, Registration(format, text, tuple(references))))

    async def register(
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> RegisteredSchema:
        registry, name = self._open(), normalized(subject)
        await self._check(registry, name, references)
        if not text.strip():  # which the API takes for the latest schema
            raise SchemaError("the schema is empty")
        with _told():
            version = await registry.register(name, Registration(format, text, tuple(references)))
        return _registered(version.id, version.content)

    async def check_values(self, schema: ParsedSchema, values: Sequence[bytes]) -> list[str | None]:
        """Of a schema that needs a worker: see `ValueChecks.check`. Raises SchemaProviderError for what would be
        otherwise at another time."""
        registry = self._open()
        try:
            found = await registry.checks.values.check(schema, values)
        except Refusal as refusal:
            raise SchemaProviderError(_line(refusal)) from None
        if any(found):
            self._open()  # the worker processes of a broker that stops have told nothing of the values
        return found

    # How

    def _open(self) -> "Registry":
        """Raises SchemaProviderError."""
        if self.registry is None:
            raise SchemaProviderError(f"The schema registry cannot answer yet: {READING}.")
        return self.registry

    async def _check(self, registry: "Registry", subject: str, references: Sequence[SchemaReference]) -> None:
        if references:
            with _told():
                await registry.reader.reach_end()
        for each in references:
            if find(registry.state, beside(subject, each.subject), each.version, deleted=False) is None:
                raise SchemaNotFoundError(
                    f"the reference {each.name!r} means version {each.version} of subject {each.subject}, which is not "
                    "there"
                )


def _entry(
    registry: "Registry | None", key: int | str, subject: str | None
) -> tuple[int, Content, str] | None:
    """Its id, content and context."""
    if registry is None:
        return None
    state = registry.state
    context = context_of(subject)
    if isinstance(key, int):
        entry = state.by_id(context, key)
        return None if entry is None else (key, entry.content, context)
    try:
        digest = UUID(key).bytes
    except ValueError:
        return None
    # A guid is the same in all contexts.
    for name in (context, *tuple(state.contexts)):
        known = state.contexts.get(name)
        id = None if known is None else known.by_digest.get(digest)
        entry = None if id is None else state.by_id(name, id)
        if id is not None and entry is not None:
            return id, entry.content, name
    return None


def _resolved(state: State, content: Content, context: str) -> Mapping[str, ResolvedReference]:
    """Raises SchemaError."""
    while True:
        try:
            return named.resolve(state, qualified(context, ""), content.references)
        except Refusal as refusal:
            raise SchemaError(_line(refusal)) from None
        except RuntimeError:
            continue  # the loop's thread has changed a subject while it was looked through for its latest version


def _registered(id: int, content: Content) -> RegisteredSchema:
    return RegisteredSchema(id, content.guid, content.type, content.text, content.references)


def _version(version: Version) -> SchemaVersion:
    return SchemaVersion(version.subject, version.version, _registered(version.id, version.content))


@contextmanager
def _told() -> Iterator[None]:
    """Refusals of the registry as the errors of the contract."""
    from leafcuttr_sdk.errors import BrokerError

    try:
        yield
    except Incompatible as refusal:
        raise IncompatibleSchemaError(_line(refusal)) from None
    except Refusal as refusal:
        if refusal.code == INVALID_SCHEMA:
            raise SchemaError(_line(refusal)) from None
        kind = SchemaNotFoundError if refusal.code // 100 == 404 else SchemaProviderError
        raise kind(_line(refusal)) from None
    except BrokerError as error:
        raise SchemaProviderError(f"the schema registry cannot read its topic: {error}") from None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
