"""The state of the registry, and what an event does to it. It is what the records of `_schemas` say, in their
order: it waits for nothing, and is the same after each replay.

Other threads look up ids and versions meanwhile (`leafcuttr_registry.provider`): what an event replaces is there at
each moment, as it was or as it will be.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from leafcuttr_registry.subjects.config import Config
from leafcuttr_registry.subjects.content import Content
from leafcuttr_registry.subjects.events import (
    AssociationKey,
    AssociationValue,
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DeletedUpTo,
    DeleteSubjectKey,
    Event,
    Key,
    ModeKey,
    SchemaKey,
    SchemaValue,
    Value,
)
from leafcuttr_registry.subjects.names import beside, context_of, is_context, within


class Version:
    """A version of a subject. `timestamp` is that of its record, in ms."""

    __slots__ = ("content", "deleted", "id", "subject", "timestamp", "version")

    def __init__(
        self, subject: str, version: int, id: int, content: Content, deleted: bool, timestamp: int
    ) -> None:
        self.subject: Final = subject
        self.version: Final = version
        self.id: Final = id
        self.content: Final = content
        self.deleted = deleted
        self.timestamp = timestamp

    @property
    def key(self) -> SchemaKey:
        return SchemaKey(self.subject, self.version)


class IdEntry:
    """An id of a context: its content, and the versions that have it."""

    __slots__ = ("content", "places")

    def __init__(self, content: Content) -> None:
        self.content: Final = content
        self.places: Final[dict[SchemaKey, Version]] = {}


class Association(NamedTuple):
    """One that is there. Times are in ms."""

    key: AssociationKey
    value: AssociationValue
    created: int
    updated: int


class Context:
    """The ids of a context. `highest` is the highest that was ever given."""

    __slots__ = ("by_digest", "highest", "ids")

    def __init__(self) -> None:
        self.ids: Final[dict[int, IdEntry]] = {}
        self.by_digest: Final[dict[bytes, int]] = {}
        self.highest = 0


class State:
    """`subjects` has the versions of each by number, in ascending order. `changed` is called with each context whose
    ready answers hold no longer."""

    def __init__(self, changed: Callable[[str, int], None] = lambda context, id: None) -> None:
        self.subjects: Final[dict[str, dict[int, Version]]] = {}
        self.contexts: Final[dict[str, Context]] = {}
        self.named: Final[dict[str, str]] = {}
        """Contexts that a CONTEXT record names, with the tenant it names."""
        self.associations: Final[dict[AssociationKey, Association]] = {}
        self.configs: Final[dict[str | None, Config]] = {}
        self.modes: Final[dict[str | None, str]] = {}
        self.referrers: Final[dict[SchemaKey, dict[SchemaKey, None]]] = {}
        """The versions that name a version as a reference."""
        self.revision = 0
        """Grows with each event."""
        self.conflicts = 0
        """Records that give an id another content than it has: they are passed over, as Confluent's registry does."""
        self.lost_ids: Final[set[str]] = set()
        """Contexts in which a version has gone for good since this was last emptied: their highest id may be in no
        record any more."""
        self._changed = changed

    # What it answers

    def version(self, subject: str, version: int) -> Version | None:
        versions = self.subjects.get(subject)
        return None if versions is None else versions.get(version)

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """Ascending; with `deleted` also those that are deleted, but not for good."""
        return [each for each in self.subjects.get(subject, {}).values() if deleted or not each.deleted]

    def latest(self, subject: str) -> Version | None:
        for each in reversed(self.subjects.get(subject, {}).values()):
            if not each.deleted:
                return each
        return None

    def has(self, name: str | None, *, deleted: bool) -> bool:
        """Whether a subject, or any of a context, has versions."""
        versions = self.subjects.get(name) if name is not None else None
        if versions is not None and (deleted or any(not each.deleted for each in versions.values())):
            return True
        if not is_context(name):
            return False
        return any(
            deleted or any(not each.deleted for each in versions.values())
            for subject, versions in self.subjects.items()
            if within(name, subject)
        )

    def by_id(self, context: str, id: int) -> IdEntry | None:
        known = self.contexts.get(context)
        return None if known is None else known.ids.get(id)

    def id_of(self, context: str, content: Content) -> int | None:
        """The id of a content in a context."""
        known = self.contexts.get(context)
        return None if known is None else known.by_digest.get(content.digest)

    def context_names(self) -> list[str]:
        """All contexts, the default one first."""
        return [".", *sorted(self.named.keys() - {"."})]

    def referenced_by(self, key: SchemaKey, *, deleted: bool) -> list[Version]:
        """The versions that name this one."""
        found = [self.version(*each) for each in self.referrers.get(key, ())]
        return [each for each in found if each is not None and (deleted or not each.deleted)]

    def highest(self, context: str) -> int:
        known = self.contexts.get(context)
        return 0 if known is None else known.highest

    def raise_highest(self, context: str, id: int) -> None:
        known = self._context(context)
        known.highest = max(known.highest, id)

    # What changes it

    def apply(self, event: Event, timestamp: int = 0) -> None:
        """Do what a record says."""
        self.revision += 1
        key, value = event
        if isinstance(key, SchemaKey):
            self._schema(key, value, timestamp)
        elif isinstance(key, ConfigKey):
            _put(self.configs, key.subject, value if isinstance(value, Config) else None)
        elif isinstance(key, ModeKey):
            _put(self.modes, key.subject, value if isinstance(value, str) else None)
        elif isinstance(key, ContextKey):
            _put(self.named, key.context, None if value is None else key.tenant)
        elif isinstance(key, AssociationKey):
            self._associate(key, value, timestamp)
        elif isinstance(key, DeleteSubjectKey) and isinstance(value, DeletedUpTo):
            for each in self.versions(key.subject):
                if each.version <= value.version:
                    each.deleted = True
                    self._changed(context_of(key.subject), each.id)
        elif isinstance(key, ClearSubjectKey) and value is not None:
            self._clear(key)

    def _associate(self, key: AssociationKey, value: Value, timestamp: int) -> None:
        known = self.associations.get(key)
        if not isinstance(value, AssociationValue):
            self.associations.pop(key, None)
            return
        created = value.created
        if created is None:
            created = timestamp if known is None else known.created
        self.associations[key] = Association(key, value, created, timestamp)

    def _schema(self, key: SchemaKey, value: Value, timestamp: int) -> None:
        if not isinstance(value, SchemaValue):
            self._remove(key)
            return
        name = context_of(key.subject)
        context = self._context(name)
        entry = context.ids.get(value.id)
        alone = entry is not None and list(entry.places) == [key]
        if entry is not None and not alone and entry.content.text != value.content.text:
            self.conflicts += 1
            return
        before = self.version(key.subject, key.version)
        if entry is None or alone:
            entry = IdEntry(value.content)
        content = entry.content if entry.content.digest == value.content.digest else value.content
        version = Version(key.subject, key.version, value.id, content, value.deleted, timestamp)
        entry.places[key] = version
        context.ids[value.id] = entry
        context.by_digest[content.digest] = value.id
        context.highest = max(context.highest, value.id)
        self._place(version)
        if before is not None:
            self._replaced(context, before, version, alone=alone)
        for reference in content.references:
            named = SchemaKey(beside(key.subject, reference.subject), reference.version)
            self.referrers.setdefault(named, {})[key] = None
        self._changed(name, value.id)

    def _replaced(self, context: Context, before: Version, after: Version, *, alone: bool) -> None:
        """Forget a version in whose place there is another; `alone`: nothing else had the id that both have."""
        if before.id != after.id:
            if self._leave(context, before):
                self.lost_ids.add(context_of(before.subject))
        elif alone and before.content.digest != after.content.digest:
            _unless_other(context.by_digest, before)
        self._unrefer(before)
        self._changed(context_of(before.subject), before.id)

    def _place(self, version: Version) -> None:
        versions = self.subjects.setdefault(version.subject, {})
        last = next(reversed(versions), 0)
        versions[version.version] = version
        if version.version < last:  # others may write in any order
            self.subjects[version.subject] = dict(sorted(versions.items()))

    def _remove(self, key: SchemaKey) -> None:
        versions = self.subjects.get(key.subject, {})
        version = versions.pop(key.version, None)
        if version is None:
            return
        name = context_of(key.subject)
        if self._leave(self._context(name), version):
            self.lost_ids.add(name)
        if not versions:
            self.subjects.pop(key.subject, None)
        self._unrefer(version)
        self._changed(name, version.id)

    def _leave(self, context: Context, version: Version) -> bool:
        """A version has its id no more; whether nothing has it."""
        entry = context.ids[version.id]
        del entry.places[version.key]
        if entry.places:
            # Others may give one id to contents that differ in more than the text.
            digest = version.content.digest
            if all(each.content.digest != digest for each in entry.places.values()):
                _unless_other(context.by_digest, version)
            return False
        del context.ids[version.id]
        _unless_other(context.by_digest, version)
        return True

    def _unrefer(self, version: Version) -> None:
        for reference in version.content.references:
            named = SchemaKey(beside(version.subject, reference.subject), reference.version)
            referrers = self.referrers.get(named, {})
            referrers.pop(version.key, None)
            if not referrers:
                self.referrers.pop(named, None)

    def _clear(self, key: ClearSubjectKey) -> None:
        gone = [
            each.key
            for subject, versions in self.subjects.items()
            if within(key.subject, subject)
            for each in versions.values()
            if each.deleted
        ]
        for each in gone:
            self._remove(each)

    def _context(self, name: str) -> Context:
        context = self.contexts.get(name)
        if context is None:
            context = self.contexts[name] = Context()
        return context

    def all_versions(self) -> Iterator[Version]:
        for versions in self.subjects.values():
            yield from versions.values()


def _unless_other(by_digest: dict[bytes, int], version: Version) -> None:
    """The content of this version has its id no more."""
    if by_digest.get(version.content.digest) == version.id:
        del by_digest[version.content.digest]


def _put(table: dict, key: Key | str | None, value: object) -> None:  # type: ignore[type-arg]
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value
