"""What the validators of ids need of records: so many first bytes, and one header."""

from typing import Final

from leafcuttr_registry.validation.settings import PartName
from leafcuttr_sdk.peek import Peek

PEEKED_BYTES: Final = 70
"""The id of a schema, and the path to a message behind it, whose indexes are mostly below 64."""


def peek_of(part: PartName, size: int) -> Peek:
    """So many first bytes of keys, or values, and the header that there may be in their place."""
    if part == "key":
        return Peek(key_bytes=size, headers=("__key_schema_id",))
    return Peek(value_bytes=size, headers=("__value_schema_id",))
