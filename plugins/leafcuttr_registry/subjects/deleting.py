"""What a deletion means, and a change of mode or config: the events that it takes. A deletion that is not permanent
leaves the schema where its id finds it."""

from leafcuttr_registry.subjects import scopes
from leafcuttr_registry.subjects.events import (
    ClearSubjectKey,
    ConfigKey,
    ContextKey,
    DeletedUpTo,
    DeleteSubjectKey,
    Event,
    ModeKey,
    Present,
    SchemaKey,
    SchemaValue,
)
from leafcuttr_registry.subjects.names import context_of, is_context, qualified, split, within
from leafcuttr_registry.subjects.refusals import (
    context_not_empty,
    no_subject,
    no_version,
    not_permitted,
    read_only,
    referenced,
    subject_deleted,
    subject_not_deleted,
    version_deleted,
    version_not_deleted,
)
from leafcuttr_registry.subjects.registering import TENANT
from leafcuttr_registry.subjects.state import State
from leafcuttr_registry.subjects.versions import find


def delete_version(state: State, subject: str, version: int, *, permanent: bool) -> tuple[list[Event], int]:
    """The events, and the number of the version. Raises Refusal."""
    found = find(state, subject, version, deleted=True)
    if found is None:
        raise no_version(version) if state.has(subject, deleted=True) else no_subject(subject)
    if found.deleted and not permanent:
        raise version_deleted(subject, found.version)
    check_writable(state, subject)
    if state.referenced_by(found.key, deleted=permanent):
        raise referenced(subject, found.version)
    if not permanent:
        value = SchemaValue(found.id, found.content, deleted=True)
        return [Event(found.key, value)], found.version
    if not found.deleted:
        raise version_not_deleted(subject, found.version)
    events = [Event(found.key, None)]
    if len(state.subjects[subject]) == 1:
        events += _own_settings(state, subject)
    return events, found.version


def delete_subject(state: State, subject: str, *, permanent: bool) -> tuple[list[Event], list[int]]:
    """The events, and the numbers of the versions. Raises Refusal."""
    if subject not in state.subjects:
        raise no_subject(subject)
    versions = state.versions(subject, deleted=permanent)
    if not versions:
        raise subject_deleted(subject)
    check_writable(state, subject)
    for each in versions:
        if any(other.subject != subject for other in state.referenced_by(each.key, deleted=permanent)):
            raise referenced(subject, each.version)
        if permanent and not each.deleted:
            raise subject_not_deleted(subject)
    numbers = [each.version for each in versions]
    if not permanent:
        return [Event(DeleteSubjectKey(subject), DeletedUpTo(numbers[-1]))], numbers
    # The last one first: a version may name an earlier one of its subject.
    events = [Event(SchemaKey(subject, number), None) for number in reversed(numbers)]
    return events + _own_settings(state, subject), numbers


def delete_context(state: State, prefix: str) -> list[Event]:
    """Raises Refusal 42211."""
    if state.has(prefix, deleted=True):
        raise context_not_empty(prefix)
    context = split(prefix).context
    return [Event(ContextKey(state.named.get(context, TENANT), context), None)]


def set_mode(state: State, name: str | None, mode: str | None, *, force: bool) -> list[Event]:
    """A mode of None takes it away. Raises Refusal 42205, 42206."""
    events: list[Event] = []
    if mode == scopes.IMPORT and scopes.mode_of(state, name) != scopes.IMPORT and not force:
        if state.has(name, deleted=False):
            raise not_permitted("Cannot import since found existing subjects")
        gone = [
            each
            for subject in state.subjects
            if within(name, subject)
            for each in state.versions(subject, deleted=True)
        ]
        for each in gone:
            if state.referenced_by(each.key, deleted=True):
                raise referenced(each.subject, each.version)
            events.append(Event(each.key, None))
        events.append(Event(ClearSubjectKey(name), Present()))
    return [*events, Event(ModeKey(name), mode)]


def delete_mode(state: State, name: str | None, *, recursive: bool) -> list[Event]:
    """With `recursive` also those of all subjects of a context."""
    events = [Event(ModeKey(name), None)]
    if recursive and is_context(name):
        context = context_of(name)
        events += [
            Event(ModeKey(each), None)
            for each in state.modes
            if each is not None and each != name and context_of(each) == context
        ]
    return events


def check_writable(state: State, name: str | None) -> None:
    """Raises Refusal 42205."""
    if scopes.is_read_only(state, name):
        context = context_of(name)
        raise read_only(name, "" if context == "." else qualified(context, ""))


def _own_settings(state: State, subject: str) -> list[Event]:
    events = [Event(ModeKey(subject), None)] if subject in state.modes else []
    return events + ([Event(ConfigKey(subject), None)] if subject in state.configs else [])
