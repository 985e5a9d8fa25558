"""What has an id: the text of a schema with its type, its references, its metadata and its rules."""

from collections.abc import Collection
from hashlib import md5
from typing import Final
from uuid import UUID

from leafcuttr_registry.subjects.metadata import (
    Metadata,
    RuleSet,
    hash_metadata,
    hash_rules,
    merge_metadata,
    reserved_fields,
    without_version,
)
from leafcuttr_sdk.schemas import SchemaReference

AVRO: Final = "AVRO"
"""The type of schemas that name none."""


class Content:
    """Never changed. Two are the same one if their digests are equal."""

    __slots__ = ("_digest", "metadata", "references", "rules", "text", "type")

    def __init__(
        self,
        type: str,
        text: str,
        references: tuple[SchemaReference, ...] = (),
        metadata: Metadata | None = None,
        rules: RuleSet | None = None,
    ) -> None:
        self.type: Final = type
        self.text: Final = text
        self.references: Final = references
        self.metadata: Final = metadata
        self.rules: Final = rules
        self._digest: bytes | None = None

    @property
    def digest(self) -> bytes:
        """MD5 as Confluent's registry computes it for ids and guids: text, references, metadata and rules, the last two
        with a byte before them where they are there. The type is not part of it."""
        if self._digest is None:
            state = md5(self.text.encode(), usedforsecurity=False)
            for reference in self.references:
                state.update(reference.name.encode())
                state.update(reference.subject.encode())
                state.update(reference.version.to_bytes(4, "big", signed=True))
            if self.metadata is not None:
                state.update(b"\1")
                hash_metadata(self.metadata, state.update)
            if self.rules is not None:
                state.update(b"\1")
                hash_rules(self.rules, state.update)
            self._digest = state.digest()
        return self._digest

    def set_digest(self, digest: bytes) -> None:
        """The digest that a record names."""
        self._digest = digest

    @property
    def guid(self) -> str:
        """The digest as a UUID."""
        return str(UUID(bytes=self.digest))

    def same(self, other: "Content") -> bool:
        """Whether the other one is the same, whatever version its metadata name."""
        return (
            self.type == other.type
            and self.text == other.text
            and self.references == other.references
            and self.rules == other.rules
            and without_version(self.metadata) == without_version(other.metadata)
        )

    def with_parts(self, metadata: Metadata | None, rules: RuleSet | None) -> "Content":
        """With other metadata and rules."""
        return Content(self.type, self.text, self.references, metadata, rules)


def merged_metadata(*parts: Metadata | None) -> Metadata | None:
    """All of them, the later ones above the earlier."""
    found: Metadata | None = None
    for part in parts:
        found = merge_metadata(found, part)
    return found


def reserved_messages(fields: Collection[str], content: Content, before: Content | None) -> list[str]:
    """What is wrong with the fields that metadata reserve (`validateFields`): the version before reserves one that this
    schema does not, or the schema has such a field."""
    reserved = reserved_fields(content.metadata)
    gone = reserved_fields(before.metadata) - reserved if before is not None else set[str]()
    return [
        *(
            f"The new schema has reserved field {name} removed from its metadata which is present in the old schema's "
            "metadata."
            for name in sorted(gone)
        ),
        *(
            f"The new schema has field that conflicts with the reserved field {name}."
            for name in sorted(reserved.intersection(fields))
        ),
    ]
