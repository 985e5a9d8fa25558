"""What changes the state: each event is a record of `_schemas`, a key and a value. None takes the key away."""

from typing import NamedTuple, TypeAlias

from leafcuttr_registry.subjects.config import Config
from leafcuttr_registry.subjects.content import Content


class SchemaKey(NamedTuple):
    """A version of a subject."""

    subject: str
    version: int


class ConfigKey(NamedTuple):
    """The config of a subject or context; None: of all."""

    subject: str | None


class ModeKey(NamedTuple):
    """The mode of a subject or context; None: of all."""

    subject: str | None


class DeleteSubjectKey(NamedTuple):
    """All versions of a subject up to one are deleted, not for good."""

    subject: str


class ClearSubjectKey(NamedTuple):
    """The deleted versions of a subject or context are gone for good; None: of all."""

    subject: str | None


class ContextKey(NamedTuple):
    """There is this context."""

    tenant: str
    context: str


class AssociationKey(NamedTuple):
    """The subject of a part of a resource: of the keys or values of a topic."""

    tenant: str
    name: str
    namespace: str
    kind: str
    """`topic`"""
    part: str
    """`key` or `value`"""
    subject: str


class NoopKey(NamedTuple):
    """Nothing: registries write it to find the end of the topic."""


class OtherKey(NamedTuple):
    """A key of another type, kept as it is."""

    keytype: str


class SchemaValue(NamedTuple):
    """What a version has."""

    id: int
    content: Content
    deleted: bool = False


class AssociationValue(NamedTuple):
    """What an association has."""

    guid: str
    resource: str
    """The id of the resource."""
    lifecycle: str
    """`STRONG` or `WEAK`"""
    frozen: bool
    created: int | None = None
    """When, in ms; None: with this record, or the one before of this key."""


class DeletedUpTo(NamedTuple):
    """The last version that is deleted."""

    version: int


class Present(NamedTuple):
    """The value of what only has to be there."""


Key: TypeAlias = (
    SchemaKey
    | ConfigKey
    | ModeKey
    | DeleteSubjectKey
    | ClearSubjectKey
    | ContextKey
    | AssociationKey
    | NoopKey
    | OtherKey
)
Value: TypeAlias = SchemaValue | Config | AssociationValue | str | DeletedUpTo | Present | None


class Event(NamedTuple):
    """One change. `str` is a mode."""

    key: Key
    value: Value
