"""Registered schemas as their formats read them, remembered: what decodes or checks many records asks again and again.

They are parsed in the thread that asks. Each was read by its format before it was registered, within bounds.
"""

from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Final, NamedTuple

from leafcuttr_registry.subjects.content import Content
from leafcuttr_sdk.schemas import ParsedSchema, ResolvedReference, SchemaFormat

_MOST: Final = 1000
_MOST_TEXT: Final = 8 * 1024 * 1024
"""Characters of the schemas that are remembered."""


class ParsedSchemas:
    """By content, with what its references mean: another registration may have taken the place of one. Any thread."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, bytes], _Parsed] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def get(
        self, format: SchemaFormat, content: Content, references: Mapping[str, ResolvedReference]
    ) -> ParsedSchema:
        """Raises what `format.parse` raises: SchemaError."""
        key = content.type, content.digest
        with self._lock:
            known = self._known.get(key)
            if known is not None and known.references == references:
                self._known.move_to_end(key)
                return known.schema
        parsed = format.parse(content.text, references)
        size = len(content.text)
        with self._lock:
            before = self._known.pop(key, None)
            self._known[key] = _Parsed(size, references, parsed)
            self._size += size - (0 if before is None else before.size)
            while len(self._known) > _MOST or (self._size > _MOST_TEXT and len(self._known) > 1):
                _, gone = self._known.popitem(last=False)
                self._size -= gone.size
        return parsed


class _Parsed(NamedTuple):
    size: int
    references: Mapping[str, ResolvedReference]
    schema: ParsedSchema
