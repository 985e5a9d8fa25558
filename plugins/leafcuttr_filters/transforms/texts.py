"""Values of JSON as text: a text is itself, anything else is as JSON writes it."""

import json
from typing import Any, Final

from leafcuttr_filters.documents.json_values import CannotFilterError

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def text_of(value: Any) -> str:
    return value if type(value) is str else _encode(value)


def bytes_of(value: Any) -> bytes:
    """That text in UTF-8. Raises CannotFilterError for half of a surrogate pair, which UTF-8 has not."""
    try:
        return text_of(value).encode()
    except UnicodeEncodeError:
        raise CannotFilterError("a text in it cannot be written as UTF-8") from None
