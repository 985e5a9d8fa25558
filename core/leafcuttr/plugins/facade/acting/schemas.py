"""`leafcuttr_sdk.SchemaProvider` for a client: a subject is the topic `subject/<name>` of ACLs, as for the registry's
own clients. All functions belong to the loop's thread."""

from collections.abc import Sequence
from typing import Final

from leafcuttr.handlers.access import READ_TOPIC, WRITE_TOPIC
from leafcuttr.plugins.facade.acting.rights import Rights
from leafcuttr_sdk.schemas import (
    IncompatibleSchemaError,
    ParsedSchema,
    RegisteredSchema,
    SchemaNotFoundError,
    SchemaProvider,
    SchemaReference,
    SchemaVersion,
    context_of,
)
from leafcuttr_sdk.security import subject_topic

_DEFAULT: Final = "."


class ActingSchemas:
    """Calls that are async may raise AuthorizationFailed. An id alone is no right: a schema is found by it in a subject
    that the client may read."""

    def __init__(self, provider: SchemaProvider, rights: Rights) -> None:
        self._provider = provider
        self._rights = rights

    @property
    def waits_for(self) -> str | None:
        return self._provider.waits_for

    def get(self, key: int | str, subject: str | None = None) -> RegisteredSchema | None:
        return self._provider.get(key, subject) if self._may_read(key, subject) else None

    def parsed(self, key: int | str, subject: str | None = None) -> ParsedSchema | None:
        return self._provider.parsed(key, subject) if self._may_read(key, subject) else None

    def _may_read(self, key: int | str, subject: str | None) -> bool:
        return (
            subject is not None
            and self._rights.may(READ_TOPIC, _topic_of(subject))
            and self._provider.belongs(key, subject)
        )

    def belongs(self, key: int | str, subject: str) -> bool:
        topic = _topic_of(subject)
        allowed = self._rights.may(READ_TOPIC, topic) or self._rights.may(WRITE_TOPIC, topic)
        return allowed and self._provider.belongs(key, subject)

    async def by_id(self, key: int | str, subject: str | None = None) -> RegisteredSchema:
        if subject is None:
            raise SchemaNotFoundError(f"Schema {key} is found for a client in a subject only: name one")
        self._rights.need(READ_TOPIC, _topic_of(subject))
        found = await self._provider.by_id(key, subject)
        if not self._provider.belongs(key, subject):
            raise SchemaNotFoundError(f"Schema {key} not found in subject {subject}")
        return found

    async def by_version(self, subject: str, version: int | None = None) -> SchemaVersion:
        self._rights.need(READ_TOPIC, _topic_of(subject))
        return await self._provider.by_version(subject, version)

    async def find(
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> SchemaVersion:
        # A client that may add the schema would learn as much by that.
        if not self._rights.may(READ_TOPIC, _topic_of(subject)):
            self._rights.need(WRITE_TOPIC, _topic_of(subject))
        self._need_references(subject, references)
        return await self._provider.find(subject, format, text, references)

    async def register(
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> RegisteredSchema:
        self._rights.need(WRITE_TOPIC, _topic_of(subject))
        self._need_references(subject, references)
        try:
            return await self._provider.register(subject, format, text, references)
        except IncompatibleSchemaError:
            # Why it is not shows the schemas before it.
            if self._rights.may(READ_TOPIC, _topic_of(subject)):
                raise
        raise IncompatibleSchemaError(
            f"it is not compatible; to see why takes READ on topic {_topic_of(subject)}"
        )

    def _need_references(self, subject: str, references: Sequence[SchemaReference]) -> None:
        """What a schema names it may take in, so its client has to be able to read it."""
        for each in references:
            self._rights.need(READ_TOPIC, _topic_of(each.subject, beside=subject))


def _topic_of(subject: str, beside: str = "") -> str:
    """In the one way to write a subject: `:.:a` is `a`; without a context it is in that of `beside`."""
    context = context_of(subject)
    name = subject[len(context) + 2 :] if subject.startswith(":.") else subject
    if context == _DEFAULT:
        context = context_of(beside)
    return subject_topic(name if context == _DEFAULT else f":{context}:{name}")
