"""`headers`: Connect's HeaderFrom. Texts become the header as they are, anything else as JSON writes it."""

from collections.abc import Mapping
from typing import Any

from leafcuttr_filters.documents.fields import MISSING, Path, get, remove
from leafcuttr_filters.documents.parts import changer, reader
from leafcuttr_filters.making import Judge
from leafcuttr_filters.transforms.fields import members_of
from leafcuttr_filters.transforms.texts import bytes_of
from leafcuttr_sdk.filters import TopicContext, Verdict
from leafcuttr_sdk.records import Record


def make_headers(context: TopicContext, values: Mapping[str, Any]) -> Judge:
    fields: tuple[Path, ...] = values["fields"]
    pairs = tuple(zip(fields, values["headers"], strict=True))
    is_key = values["part"] == "key"
    read = reader(context, values, values["part"])

    def headers(record: Record) -> Verdict:
        data = record.key if is_key else record.value
        if data is None:
            return record
        document = members_of(read(record, data))
        more = tuple((name, _value(get(document, path))) for path, name in pairs)
        return record._replace(headers=(*record.headers, *more))

    if values["operation"] == "copy":
        return headers

    def without(document: Any, _: Record) -> Any:
        for path in fields:
            document = remove(document, path)
        return document

    take_out = changer(context, values, without)

    def move(record: Record) -> Verdict:
        taken = take_out(record)
        if taken is record:
            return headers(record)
        with_headers = headers(record)
        assert isinstance(with_headers, Record)
        return taken._replace(headers=with_headers.headers)

    return move


def _value(found: Any) -> bytes | None:
    return None if found is MISSING or found is None else bytes_of(found)
