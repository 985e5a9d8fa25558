"""References of schemas: which version each means, and their texts with all that these name in turn."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Final

from leafcuttr_registry.subjects.content import Content
from leafcuttr_registry.subjects.events import SchemaKey
from leafcuttr_registry.subjects.names import beside
from leafcuttr_registry.subjects.refusals import invalid_schema
from leafcuttr_registry.subjects.state import State
from leafcuttr_registry.subjects.versions import LATEST, find
from leafcuttr_sdk.schemas import ResolvedReference, SchemaReference

_DEEPEST: Final = 100
_MOST: Final = 1000
_MOST_TEXT: Final = 16 * 1024 * 1024


def numbered(
    state: State, subject: str, references: tuple[SchemaReference, ...]
) -> tuple[SchemaReference, ...]:
    """With the version that is the latest now for -1. Raises Refusal 42201."""
    if all(each.version != LATEST for each in references):
        return references
    found = []
    for each in references:
        version = find(state, beside(subject, each.subject), each.version, deleted=False)
        if version is None:
            raise _missing(each)
        found.append(each._replace(version=version.version))
    return tuple(found)


def resolve(
    state: State, subject: str, references: tuple[SchemaReference, ...], *, deleted: bool = True
) -> Mapping[str, ResolvedReference]:
    """Their texts, by name. Those that a new schema names have not to be deleted; those that others name may be. Raises
    Refusal 42201 for one that is not there, for a circle, and for more than can be read."""
    return _Resolving(state).of(subject, references, deleted, ()) if references else {}


def identity(state: State, subject: str, content: Content, known: dict[SchemaKey, bytes]) -> bytes:
    """What tells a schema, with those that it names, from all others of its type; `known` are those of versions that
    were asked for before. Its references have been resolved."""
    if not content.references:
        return content.digest
    found = blake2b(content.digest, digest_size=16)
    for reference in content.references:
        version = find(state, beside(subject, reference.subject), reference.version, deleted=True)
        if version is None:
            raise _missing(reference)
        if version.key not in known:
            known[version.key] = identity(state, version.subject, version.content, known)
        found.update(known[version.key])
    return found.digest()


class _Resolving:
    def __init__(self, state: State) -> None:
        self._state = state
        self._done: dict[SchemaKey, ResolvedReference] = {}
        self._size = 0

    def of(
        self,
        subject: str,
        references: tuple[SchemaReference, ...],
        deleted: bool,
        within: tuple[SchemaKey, ...],
    ) -> dict[str, ResolvedReference]:
        return {each.name: self._one(subject, each, deleted, within) for each in references}

    def _one(
        self, subject: str, reference: SchemaReference, deleted: bool, within: tuple[SchemaKey, ...]
    ) -> ResolvedReference:
        version = find(self._state, beside(subject, reference.subject), reference.version, deleted=deleted)
        if version is None:
            raise _missing(reference)
        key = version.key
        if key in within:
            raise invalid_schema(f"the reference {reference.name!r} leads back to itself")
        known = self._done.get(key)
        if known is not None:
            return known
        self._size += len(version.content.text)
        if len(within) >= _DEEPEST or len(self._done) >= _MOST or self._size > _MOST_TEXT:
            raise invalid_schema(
                f"too complex: more than {_MOST} references, {_DEEPEST} behind each other, or {_MOST_TEXT} characters"
            )
        nested = self.of(version.subject, version.content.references, True, (*within, key))
        found = self._done[key] = ResolvedReference(version.content.text, nested)
        return found


def _missing(reference: SchemaReference) -> Exception:
    return invalid_schema(
        f'No schema reference found for subject "{reference.subject}" and version {reference.version}'
    )
