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


class DeletedUpTo(NamedTuple):
    """The last version that is deleted."""

    version: int


class Present(NamedTuple):
    """The value of what only has to be there."""


Key: TypeAlias = (
    SchemaKey | ConfigKey | ModeKey | DeleteSubjectKey | ClearSubjectKey | ContextKey | NoopKey | OtherKey
)
Value: TypeAlias = SchemaValue | Config | str | DeletedUpTo | Present | None


class Event(NamedTuple):
    """One change. `str` is a mode."""

    key: Key
    value: Value
