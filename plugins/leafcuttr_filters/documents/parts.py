"""The part of a record that a filter works on, the key or the value, as a document and back."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from leafcuttr_filters.documents.by_schema import SchemaDocuments
from leafcuttr_filters.documents.fields import Path
from leafcuttr_filters.documents.json_values import CannotFilterError, decoded, encoded
from leafcuttr_sdk.records import Record
from leafcuttr_sdk.schemas import DataError

if TYPE_CHECKING:
    from leafcuttr_sdk.filters import TopicContext

Read: TypeAlias = Callable[[Record, bytes], Any]
"""The document of the part of a record. Raises CannotFilterError, NotReadyYetError."""
Change: TypeAlias = Callable[[Any, Record], Any]
"""What becomes of a document: the same object where nothing does."""


def reader(context: "TopicContext", values: Mapping[str, Any], part: str = "value") -> Read:
    """Raises PluginError."""
    if values["decode"] == "schema":
        documents = SchemaDocuments(context, part)
        return lambda record, data: documents.decoded(record, data)[0]
    return lambda record, data: decoded(data)


def changer(
    context: "TopicContext",
    values: Mapping[str, Any],
    change: Change,
    *,
    hides: Callable[[bytes], bool] | None = None,
) -> Callable[[Record], Record]:
    """A filter that changes the document of the part that `values` name. A record without that part passes.

    Of members that come twice the document has the last one, and the bytes have both. So a filter that is to take
    something out says by `hides` whether some bytes may hold it: these are written again although nothing was changed
    in the document. Raises PluginError."""
    is_key = values["part"] == "key"
    if values["decode"] == "schema":
        return _by_schema(SchemaDocuments(context, values["part"]), change, is_key)

    def changed(record: Record) -> "Record":
        data = record.key if is_key else record.value
        if data is None:
            return record
        before = decoded(data)
        after = change(before, record)
        if after is before and (hides is None or not hides(data)):
            return record
        new = encoded(after)
        if new == data:
            return record
        value, key, headers, timestamp = record
        # Three times as quick as `_replace`.
        return Record(value, new, headers, timestamp) if is_key else Record(new, key, headers, timestamp)

    return changed


def may_hold(paths: Iterable[Path]) -> Callable[[bytes], bool]:
    """Whether some JSON may have a member with the last name of one of these paths, wherever it is."""
    names = [path[-1].encode() for path in paths]

    def holds(data: bytes) -> bool:
        return b"\\" in data or any(name in data for name in names)

    return holds


def _by_schema(documents: SchemaDocuments, change: Change, is_key: bool) -> Callable[[Record], Record]:
    def changed(record: Record) -> "Record":
        data = record.key if is_key else record.value
        if data is None:
            return record
        before, prefix, codec = documents.decoded(record, data)
        after = change(before, record)
        if after is before:
            return record
        try:
            new = prefix + codec.encode(after)
        except DataError as error:
            raise CannotFilterError(f"what becomes of it is not of its schema: {error}") from None
        return record._replace(key=new) if is_key else record._replace(value=new)

    return changed
