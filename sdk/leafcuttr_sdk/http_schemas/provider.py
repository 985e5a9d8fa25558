"""A registry over HTTP as a `leafcuttr_sdk.SchemaProvider`, on trio: what waits is done by a worker thread."""

from collections.abc import Callable, Sequence
from typing import TypeVar, TypeVarTuple

from leafcuttr_sdk.http_schemas.registry import HttpRegistry
from leafcuttr_sdk.schemas import ParsedSchema, RegisteredSchema, SchemaReference, SchemaVersion

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class HttpSchemaProvider:
    """See `leafcuttr_sdk.SchemaProvider`. A call that is cancelled returns at once; its request goes on in a thread."""

    def __init__(self, registry: HttpRegistry) -> None:
        self.registry = registry

    @property
    def waits_for(self) -> str | None:
        """Nothing: whether the registry answers, each call says."""
        return None

    def get(self, key: int | str, subject: str | None = None) -> RegisteredSchema | None:
        return self.registry.get(key, subject)

    def parsed(self, key: int | str, subject: str | None = None) -> ParsedSchema | None:
        return self.registry.parsed(key, subject)

    def belongs(self, key: int | str, subject: str) -> bool:
        return self.registry.belongs(key, subject)

    async def by_id(self, key: int | str, subject: str | None = None) -> RegisteredSchema:
        return await _in_thread(self.registry.by_id, key, subject)

    async def by_version(self, subject: str, version: int | None = None) -> SchemaVersion:
        return await _in_thread(self.registry.by_version, subject, version)

    async def find(
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> SchemaVersion:
        return await _in_thread(self.registry.find, subject, format, text, references)

    async def register(
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> RegisteredSchema:
        return await _in_thread(self.registry.register, subject, format, text, references)


async def _in_thread(function: Callable[[*Ts], T], *arguments: *Ts) -> T:
    import trio

    return await trio.to_thread.run_sync(function, *arguments, abandon_on_cancel=True)
