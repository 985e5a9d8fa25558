"""A schema provider that is as small as one can be: schemas of columns, in memory. For tests of what works with any."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from leafcuttr_sdk.schemas import (
    ParsedSchema,
    RegisteredSchema,
    SchemaError,
    SchemaNotFoundError,
    SchemaReference,
    SchemaVersion,
)
from support.column_schemas import Columns


class ColumnRegistry:
    waits_for: str | None = None

    def __init__(self) -> None:
        self.by_key: dict[int | str, RegisteredSchema] = {}
        self.subjects: dict[str, list[RegisteredSchema]] = {}

    def get(self, key: int | str, subject: str | None = None) -> RegisteredSchema | None:
        return self.by_key.get(key)

    def parsed(self, key: int | str, subject: str | None = None) -> ParsedSchema | None:
        found = self.get(key)
        return None if found is None else Columns().parse(found.text, {})

    def belongs(self, key: int | str, subject: str) -> bool:
        return self.by_key.get(key) in self.subjects.get(subject, ())

    async def by_id(self, key: int | str, subject: str | None = None) -> RegisteredSchema:
        found = self.get(key)
        if found is None:
            raise SchemaNotFoundError(f"there is no schema {key}")
        return found

    async def by_version(self, subject: str, version: int | None = None) -> SchemaVersion:
        versions = self.subjects.get(subject, [])
        number = len(versions) if version is None else version
        if not 1 <= number <= len(versions):
            raise SchemaNotFoundError(f"the subject {subject} has no version {number}")
        return SchemaVersion(subject, number, versions[number - 1])

    async def find(
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> SchemaVersion:
        for number, each in enumerate(self.subjects.get(subject, ()), 1):
            if each.text == Columns().parse(text, {}).canonical:
                return SchemaVersion(subject, number, each)
        raise SchemaNotFoundError(f"the subject {subject} has no such schema")

    async def register(
        self, subject: str, format: str, text: str, references: Sequence[SchemaReference] = ()
    ) -> RegisteredSchema:
        if format != "COLUMNS":
            raise SchemaError(f"there is no format {format}")
        canonical = Columns().parse(text, {}).canonical
        for each in references:
            await self.by_version(each.subject, each.version)
        versions = self.subjects.setdefault(subject, [])
        for known in (*versions, *self.by_key.values()):
            if known.text == canonical:
                break
        else:
            guid = hashlib.md5(canonical.encode()).hexdigest()
            known = RegisteredSchema(len(self.by_key) // 2 + 1, guid, format, canonical)
            self.by_key[known.id] = self.by_key[known.guid] = known
        if known not in versions:
            versions.append(known)
        return known
