"""Schemas that Karapace has stored: it sorts the members of JSON objects (`TypedSchema.normalize_schema_str`), so that
the text of a topic that was its own is not the text that the client registered, nor its canonical form."""

import json
from typing import Final

from leafcuttr_registry.subjects.content import AVRO, Content

_SORTED: Final = frozenset({AVRO, "JSON"})


def as_stored(type: str, text: str, content: Content) -> Content | None:
    """What Karapace has stored for a text that a client gives; `content` is what our formats made of it. None where
    that is the same."""
    if type not in _SORTED:
        return None
    try:
        found = json.dumps(json.loads(text), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        found.encode()
    except (ValueError, RecursionError):  # the first one is that of a lone surrogate, too
        return None
    if found == content.text:
        return None
    return Content(type, found, content.references, content.metadata, content.rules)
