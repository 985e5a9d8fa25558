"""What a registration means: which version it is already, what it takes over from the one before, and its events. Its
text has been read by its format before; what it is compared with has been decided by `checks`."""

from typing import NamedTuple

from leafcuttr_registry.subjects import scopes
from leafcuttr_registry.subjects.config import Config
from leafcuttr_registry.subjects.content import Content, merged_metadata
from leafcuttr_registry.subjects.events import ContextKey, Event, Present, SchemaKey, SchemaValue
from leafcuttr_registry.subjects.metadata import (
    VERSION,
    Metadata,
    RuleSet,
    merge_rules,
    with_version,
)
from leafcuttr_registry.subjects.names import DEFAULT, context_of, qualified
from leafcuttr_registry.subjects.refusals import invalid_schema, not_permitted, read_only
from leafcuttr_registry.subjects.state import State, Version
from leafcuttr_sdk.schemas import SchemaReference

TENANT = "default"
HIGHEST = 2**31 - 1
"""Ids and versions are of 32 bits with a sign in all clients."""


class Registration(NamedTuple):
    """What a request gives. A `version` of 0 and an `id` of -1 are none."""

    type: str
    text: str
    references: tuple[SchemaReference, ...] = ()
    metadata: Metadata | None = None
    rules: RuleSet | None = None
    version: int = 0
    id: int = -1

    def content(self, text: str) -> Content:
        return Content(self.type, text, self.references, self.metadata, self.rules)


def check_mode(state: State, subject: str, id: int) -> None:
    """Raises Refusal 42205 where the mode does not allow it."""
    mode = scopes.mode_of(state, subject)
    context = _shown(subject)
    if mode in (scopes.READONLY, scopes.READONLY_OVERRIDE):
        raise read_only(subject, context)
    if id >= 0:
        if mode not in (scopes.IMPORT, scopes.FORWARD):
            raise not_permitted(f"Subject {subject} in context {context} is not in import mode")
    elif mode != scopes.READWRITE:
        raise not_permitted(f"Subject {subject} in context {context} is not in read-write mode")


def registered(state: State, subject: str, content: Content, *, deleted: bool = False) -> Version | None:
    """The version of the subject that has this content, whatever version its metadata name; the latest of several."""
    id = state.id_of(context_of(subject), content)
    versions = state.subjects.get(subject, {}).values()
    if id is not None:
        for each in reversed(versions):
            if each.id == id and (deleted or not each.deleted):
                return each
    for each in reversed(versions):
        if (deleted or not each.deleted) and each.content.same(content):
            return each
    return None


def taken_over(
    registration: Registration, config: Config, previous: Version | None, next_version: int | None
) -> tuple[Metadata | None, RuleSet | None]:
    """Metadata and rules: those that are given, else those of the version before; with the defaults below and the
    overrides above them. The version becomes a property where the request names one, or there is one already."""
    before = previous.content if previous is not None else Content(registration.type, "")
    metadata = registration.metadata if registration.metadata is not None else before.metadata
    rules = registration.rules if registration.rules is not None else before.rules
    metadata = merged_metadata(config["defaultMetadata"], metadata, config["overrideMetadata"])
    rules = merge_rules(merge_rules(config["defaultRuleSet"], rules), config["overrideRuleSet"])
    named = VERSION in (metadata or {}).get("properties", {})
    if next_version is not None and (registration.version != 0 or named):
        metadata = with_version(metadata, next_version)
    return metadata, rules


def next_version(state: State, subject: str) -> int:
    """One more than the highest that is there, deleted ones too."""
    return max(state.subjects.get(subject, {0: None}), default=0) + 1


def events_for(
    state: State, subject: str, registration: Registration, content: Content
) -> tuple[list[Event], SchemaKey, SchemaValue]:
    """The events, and the version that is new. Raises Refusal 42201 for a version that is not the next, 42205 for an id
    that has another content."""
    context = context_of(subject)
    importing = scopes.mode_of(state, subject) in (scopes.IMPORT, scopes.FORWARD)
    version = next_version(state, subject)
    if registration.version > 0 and registration.version != version:
        if not importing:
            raise invalid_schema("Version is not one more than previous version")
        version = registration.version
    id = registration.id
    if id < 0:
        known = state.id_of(context, content)
        id = state.highest(context) + 1 if known is None else known
    else:
        entry = state.by_id(context, id)
        if entry is not None and not entry.content.same(content):
            raise not_permitted(
                f"Overwrite new schema with id {id} in context {qualified(context, '')} is not permitted."
            )
    if max(id, version) > HIGHEST:
        which = "id" if id > HIGHEST else "version"
        raise not_permitted(f"There is no {which} left for subject {subject}: {HIGHEST} has been given.")
    events: list[Event] = []
    if context != DEFAULT and context not in state.named:
        events.append(Event(ContextKey(TENANT, context), Present()))
    for each in state.versions(subject, deleted=True):
        # A deleted version of the same id is not needed beside the new one, unless others name it.
        if each.deleted and each.id == id and each.version < version and not state.referrers.get(each.key):
            events.append(Event(each.key, None))
    key, value = SchemaKey(subject, version), SchemaValue(id, content)
    return [*events, Event(key, value)], key, value


def _shown(subject: str) -> str:
    context = context_of(subject)
    return "" if context == DEFAULT else qualified(context, "")
