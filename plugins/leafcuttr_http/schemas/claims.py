"""Which schema a stored key or value names: in a header of its own, or in its first bytes. Pure.

Where it is in the header, Confluent's serializers write the path to a message of Protobuf there too, behind the guid,
and nothing before the data.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple
from uuid import UUID

from leafcuttr_sdk.records import Headers, StoredRecord
from leafcuttr_sdk.schema_framing import (
    ID_SIZE,
    KEY_HEADER,
    MAGIC_GUID,
    MAGIC_ID,
    VALUE_HEADER,
    read_prefix,
)
from leafcuttr_sdk.schemas import DataError

_MAGIC: Final = (MAGIC_ID, MAGIC_GUID)


class Claim(NamedTuple):
    """An id, or a guid as text. What follows it is `source[end:]`: the data, or the rest of a header."""

    key: int | str
    source: bytes
    end: int
    in_header: bool


def claim_of(data: bytes, headers: Headers, name: str) -> Claim:
    """The header goes before the first bytes, as with Confluent's deserializers. Raises DataError for data that name
    no schema."""
    header = _last(headers, name) if headers else None
    if header is None:
        source = data
        schema, end = read_prefix(data)
    else:
        source = header
        try:
            schema, end = read_prefix(header)
        except DataError as error:
            raise DataError(f"the header {name} names no schema: {error}") from None
    return Claim(str(schema) if isinstance(schema, UUID) else schema, source, end, header is not None)


def has_no_claim(key: bytes, headers: Headers) -> bool:
    """Whether a key is one that was written without a schema: a text, mostly."""
    if headers and _last(headers, KEY_HEADER) is not None:
        return False
    return len(key) < ID_SIZE or key[0] not in _MAGIC


def schemas_of(records: Iterable[StoredRecord]) -> Iterator[int | str | None]:
    """What the keys and values of records name; None after each record, so that others can have their turn."""
    seen: set[bytes] = set()
    for record in records:
        for data, name in ((record.key, KEY_HEADER), (record.value, VALUE_HEADER)):
            if data is None or (not record.headers and data[:ID_SIZE] in seen):
                continue
            try:
                key = claim_of(data, record.headers, name).key
            except DataError:
                continue
            if isinstance(key, int) and not record.headers:
                seen.add(data[:ID_SIZE])
            yield key
        yield None


def _last(headers: Headers, name: str) -> bytes | None:
    found = None
    for each, value in headers:
        if each == name:
            found = value or b""
    return found
