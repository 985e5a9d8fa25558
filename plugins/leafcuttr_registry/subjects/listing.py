"""What is listed: subjects, versions, and the places of an id."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from leafcuttr_registry.subjects import associating
from leafcuttr_registry.subjects.metadata import has_rule_of_type
from leafcuttr_registry.subjects.names import ALL, beside, normalized, qualified, split
from leafcuttr_registry.subjects.state import Association, IdEntry, State, Version

NO_LIFECYCLE: Final = "NONE"
"""In the place of a lifecycle: that of a subject without associations."""


def matching(state: State, prefix: str) -> Iterator[str]:
    """The subjects that begin with a prefix; `:*:` stands for any context. Without a context it is the default one."""
    if prefix.startswith(ALL):
        rest = prefix[len(ALL) :]
        return (name for name in state.subjects if split(name).subject.startswith(rest))
    if prefix.startswith(":."):
        prefix = normalized(prefix)
        return (name for name in state.subjects if name.startswith(prefix))
    return (name for name in state.subjects if name.startswith(prefix) and not name.startswith(":."))


def subjects(
    state: State, prefix: str = ALL, *, deleted: bool = False, deleted_only: bool = False
) -> list[str]:
    """Their names, sorted. One counts as deleted if all of its versions are."""
    found = []
    for name in matching(state, prefix):
        gone = all(each.deleted for each in state.subjects[name].values())
        if gone if deleted_only else deleted or not gone:
            found.append(name)
    return sorted(found)


def schemas(
    state: State,
    prefix: str,
    *,
    deleted: bool = False,
    latest_only: bool = False,
    rule_type: str = "",
) -> list[Version]:
    """The versions of all subjects that begin with a prefix, by subject and version."""
    found: list[Version] = []
    for name in sorted(matching(state, prefix)):
        versions = state.versions(name, deleted=deleted)
        found += versions[-1:] if latest_only else versions
    if rule_type:
        found = [each for each in found if has_rule_of_type(each.content.rules, rule_type)]
    return found


def associated(
    state: State, versions: Iterable[Version], kind: str, parts: Sequence[str], lifecycles: Collection[str]
) -> list[tuple[Version, list[Association]]]:
    """The versions whose subjects have such associations, with these; `NONE` among the lifecycles: those without any
    as well."""
    known: dict[str, list[Association]] = {}
    for each in associating.listed(state, kind=kind, parts=parts):
        known.setdefault(each.key.subject, []).append(each)
    found = []
    for version in versions:
        here = known.get(version.subject, [])
        some = [each for each in here if not lifecycles or each.value.lifecycle in lifecycles]
        if some or (not here and NO_LIFECYCLE in lifecycles):
            found.append((version, some))
    return found


def aliases(state: State) -> dict[str, list[str]]:
    """By subject, those whose config has it as its alias."""
    found: dict[str, list[str]] = {}
    for name, config in state.configs.items():
        alias = config["alias"]
        if alias and name is not None:
            found.setdefault(beside(name, alias), []).append(name)
    return found


def entry_for(state: State, id: int, subject: str | None) -> tuple[str, IdEntry, Version] | None:
    """Where an id is: in the context that the subject names; else in the one in which a subject of this name has it;
    else in the default one. With one version that has it, of that subject if it can be."""
    name = subject or ""
    parts = split(name)
    context = parts.context
    if parts.subject and context == ".":
        for each in state.context_names():
            entry = state.by_id(each, id)
            wanted = qualified(each, parts.subject)
            place = _place(entry, wanted) if entry is not None else None
            if entry is not None and place is not None:
                return each, entry, place
    entry = state.by_id(context, id)
    if entry is None:
        return None
    place = _place(entry, str(parts)) if parts.subject else None
    return context, entry, place or next(iter(entry.places.values()))


def places(entry: IdEntry, *, deleted: bool) -> list[Version]:
    """The versions that have an id: of each subject the last."""
    last: dict[str, Version] = {}
    for each in entry.places.values():
        if deleted or not each.deleted:
            known = last.get(each.subject)
            if known is None or known.version < each.version:
                last[each.subject] = each
    return list(last.values())


def ids_of_guid(state: State, digest: bytes) -> list[tuple[str, int]]:
    """Context and id of each that has a guid, the default context first."""
    names = [*state.context_names(), *sorted(state.contexts.keys() - set(state.context_names()))]
    found = ((name, state.contexts[name].by_digest.get(digest)) for name in names if name in state.contexts)
    return [(name, id) for name, id in found if id is not None]


def with_metadata(state: State, subject: str, wanted: dict[str, str], *, deleted: bool) -> Version | None:
    """The latest version whose metadata have these properties."""
    for each in reversed(state.versions(subject, deleted=deleted)):
        properties = (each.content.metadata or {}).get("properties")
        if properties is not None and wanted.items() <= properties.items():
            return each
    return None


def _place(entry: IdEntry, subject: str) -> Version | None:
    found = [each for each in entry.places.values() if each.subject == subject]
    return max(found, key=lambda each: (not each.deleted, each.version), default=None)
