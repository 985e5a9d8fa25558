"""Fields in documents, by paths of names. A document is not changed: what is on the way to a field is copied."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

Path: TypeAlias = tuple[str, ...]

MISSING: Final = object()
"""In the place of a field that is not there."""


def shown(path: Path) -> str:
    """The path as people write it."""
    return ".".join(f"`{step}`" if "." in step else step for step in path)


def get(document: Any, path: Path) -> Any:
    """The field, or MISSING."""
    for step in path:
        if type(document) is not dict:
            return MISSING
        document = cast("dict[str, Any]", document).get(step, MISSING)
    return document


def put(document: Any, path: Path, value: Any) -> Any:
    """The document with the field. What is missing on the way is made; raises ValueError where something else is in
    the way."""
    if not path:
        return value
    if document is MISSING:
        document = {}
    if type(document) is not dict:
        raise ValueError(f"there is no object for the field {path[0]}")
    members = cast("dict[str, Any]", document)
    return {**members, path[0]: put(members.get(path[0], MISSING), path[1:], value)}


def remove(document: Any, path: Path) -> Any:
    """The document without the field, in lists on the way of each element; the same one where it is not there."""
    if type(document) is list:
        return _each(document, lambda one: remove(one, path))
    if type(document) is not dict:
        return document
    members = cast("dict[str, Any]", document)
    step = path[0]
    if step not in members:
        return document
    if len(path) == 1:
        return {name: value for name, value in members.items() if name != step}
    inner = remove(members[step], path[1:])
    return document if inner is members[step] else {**members, step: inner}


def update(document: Any, path: Path, change: Callable[[Any], Any]) -> Any:
    """The document with what `change` makes of the field, in lists on the way of each of their elements; the same one
    where it is not there or stays the same."""
    if not path:
        return change(document)
    if type(document) is list:
        return _each(document, lambda one: update(one, path, change))
    if type(document) is not dict:
        return document
    members = cast("dict[str, Any]", document)
    step = path[0]
    before = members.get(step, MISSING)
    if before is MISSING:
        return document
    after = update(before, path[1:], change)
    return document if after is before else {**members, step: after}


def project(document: Any, paths: list[Path]) -> Any:
    """The document with these fields only."""
    if type(document) is list:
        return [project(one, paths) for one in document]
    if type(document) is not dict:
        return document
    deeper: dict[str, list[Path]] = {}
    for path in paths:
        deeper.setdefault(path[0], []).append(path[1:])
    return {
        name: value if () in deeper[name] else project(value, deeper[name])
        for name, value in cast("dict[str, Any]", document).items()
        if name in deeper
    }


def _each(elements: list[Any], change: Callable[[Any], Any]) -> list[Any]:
    changed = [change(one) for one in elements]
    same = all(after is before for after, before in zip(changed, elements, strict=True))
    return elements if same else changed
