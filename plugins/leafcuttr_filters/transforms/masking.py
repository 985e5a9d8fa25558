"""`mask`: Connect's MaskField, and what matches a pattern in fields or in all texts of a document.

A value that is no JSON is one text for patterns, where no `fields` are named.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, cast

from leafcuttr_filters.documents.fields import Path, update
from leafcuttr_filters.documents.json_values import CannotFilterError
from leafcuttr_filters.documents.parts import changer, may_hold
from leafcuttr_filters.making import Judge
from leafcuttr_filters.transforms.fields import described, members_of
from leafcuttr_filters.transforms.patterns import MAY_BE, PATTERNS, Cover
from leafcuttr_sdk.conditions.searching import Search
from leafcuttr_sdk.filters import TopicContext, Verdict
from leafcuttr_sdk.records import Record

Values = Mapping[str, Any]

_EMPTY: Final[dict[type, Any]] = {str: "", int: 0, float: 0.0, bool: False}
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD: Final = re.compile(r"[^\W_]")


def make_mask(context: TopicContext, values: Values) -> Judge:
    fields: tuple[Path, ...] | None = values["fields"]
    if values["patterns"] is None and values["regex"] is None:
        assert fields is not None
        return _whole_fields(context, values, fields)
    cover = _covering(values)
    if fields is not None:
        return _changing(context, values, fields, lambda _: partial(_covered, cover))
    return _everywhere(context, values, cover)


# Whole fields


def _whole_fields(context: TopicContext, values: Values, fields: tuple[Path, ...]) -> Judge:
    replacement: str | None = values["replacement"]
    return _changing(context, values, fields, lambda path: lambda value: _masked(path, value, replacement))


def _masked(path: Path, value: Any, replacement: str | None) -> Any:
    kind = type(value)
    if value is None:
        return None
    if replacement is None:
        return _EMPTY[kind] if kind in _EMPTY else kind()
    if kind is str:
        return replacement
    if kind in (int, float) and _NUMBER.fullmatch(replacement):
        try:
            return kind(replacement)
        except ValueError:
            pass
    raise CannotFilterError(f"{described(path)} is of a type that {replacement!r} cannot stand for")


def _changing(
    context: TopicContext,
    values: Values,
    fields: Iterable[Path],
    changes: Callable[[Path], Callable[[Any], Any]],
) -> Judge:
    parts = [(path, changes(path)) for path in fields]

    def mask(document: Any, _: Record) -> Any:
        members_of(document)
        for path, change in parts:
            document = update(document, path, change)
        return document

    return changer(context, values, mask, hides=may_hold(path for path, _ in parts))


# What matches


def _covering(values: Values) -> Callable[[str], str]:
    """A text with what matches in it covered."""
    replacement, keep = values["replacement"], values["keep"]

    def cover(found: str) -> str:
        if replacement is not None:
            return str(replacement)
        left = max(0, len(_WORD.findall(found)) - keep)
        return _WORD.sub("*", found, count=left) if left else found

    steps: list[Callable[[str], str]] = []
    for name in values["patterns"] or ():
        steps.append(partial(_cover_pattern, PATTERNS[name], cover))
    if values["regex"] is not None:
        steps.append(partial(_cover_matches, values["regex"], Search(values["regex"].pattern).longest, cover))

    def covered(text: str) -> str:
        for step in steps:
            text = step(text)
        return text

    return covered


def _cover_pattern(function: Callable[[str, Cover], str], cover: Cover, text: str) -> str:
    return function(text, cover)


def _cover_matches(regex: re.Pattern[str], longest: float, cover: Callable[[str], str], text: str) -> str:
    """Raises CannotFilterError for a text in which it may take too long."""
    if len(text) > longest:
        raise CannotFilterError(f"a text of {len(text)} characters, and `regex` is searched in {longest:.0f}")
    return regex.sub(lambda found: cover(found[0]), text)


def _covered(cover: Callable[[str], str], value: Any) -> Any:
    """Of all texts and whole numbers in a value; a number becomes a text where something of it is covered."""
    kind = type(value)
    if kind is str:
        covered = cover(value)
        return value if covered == value else covered
    if kind is int:
        text = str(value)
        covered = cover(text)
        return value if covered == text else covered
    if kind is list:
        elements = cast("list[Any]", value)
        new = [_covered(cover, one) for one in elements]
        return elements if all(map(_same, new, elements)) else new
    if kind is dict:
        members = cast("dict[str, Any]", value)
        changed = {name: _covered(cover, one) for name, one in members.items()}
        return members if all(map(_same, changed.values(), members.values())) else changed
    return value


def _same(one: object, other: object) -> bool:
    return one is other


def _everywhere(context: TopicContext, values: Values, cover: Callable[[str], str]) -> Judge:
    is_key = values["part"] == "key"
    if values["decode"] == "schema":
        return changer(context, values, lambda document, _: _covered(cover, document))
    may_match = _may_match(values)
    in_document = changer(context, values, lambda document, _: _covered(cover, document), hides=may_match)

    def mask(record: Record) -> Verdict:
        data = record.key if is_key else record.value
        if data is None or not may_match(data):
            return record
        try:
            return in_document(record)
        except CannotFilterError as error:
            if str(error) != "it is no JSON":
                raise
        text = cover(data.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        if text == data:
            return record
        return record._replace(key=text) if is_key else record._replace(value=text)

    return mask


def _may_match(values: Values) -> Callable[[bytes], bool]:
    """Whether there may be something to be covered in the bytes of a JSON document: it may also be escaped."""
    if values["regex"] is not None:
        return lambda _: True
    quick = [MAY_BE[name] for name in values["patterns"]]
    return lambda data: b"\\" in data or any(test(data) for test in quick)
