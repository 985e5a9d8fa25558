"""What stands for a version in a path: its number, or `latest` (or -1) for the last one that is not deleted."""

from typing import Final

from leafcuttr_registry.subjects.names import DEFAULT, context_of, qualified, split
from leafcuttr_registry.subjects.refusals import invalid_version, no_subject, no_version
from leafcuttr_registry.subjects.state import State, Version

LATEST: Final = -1
_HIGHEST: Final = 2**31 - 1


def read_version(text: str) -> int:
    """Raises Refusal 42202."""
    given = text.strip()
    if given.lower() == "latest":
        return LATEST
    digits = given.removeprefix("-").removeprefix("+")
    if digits.isascii() and digits.isdigit() and len(given) <= 11:
        number = int(given)
        if number == LATEST or 0 < number <= _HIGHEST:
            return number
    raise invalid_version(text)


def find(state: State, subject: str, version: int, *, deleted: bool) -> Version | None:
    """In this subject."""
    if version == LATEST:
        return state.latest(subject)
    found = state.version(subject, version)
    return found if found is not None and (deleted or not found.deleted) else None


def find_anywhere(state: State, subject: str, version: int, *, deleted: bool) -> Version | None:
    """In this subject, and if it names no context, in the one of its name in any other."""
    found = find(state, subject, version, deleted=deleted)
    if found is not None or context_of(subject) != DEFAULT:
        return found
    for context in state.context_names()[1:]:
        found = find(state, qualified(context, split(subject).subject), version, deleted=deleted)
        if found is not None:
            return found
    return None


def need(state: State, subject: str, version: int, *, deleted: bool) -> Version:
    """As `find_anywhere`. Raises Refusal 40401 or 40402."""
    found = find_anywhere(state, subject, version, deleted=deleted)
    if found is None:
        raise no_version(version) if state.has(subject, deleted=deleted) else no_subject(subject)
    return found
