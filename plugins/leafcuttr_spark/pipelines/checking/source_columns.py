"""The columns of sources: from declared columns, and from schemas where they are there."""

from typing import Final

from leafcuttr_spark.pipelines.checking import types
from leafcuttr_spark.pipelines.checking.expressions import Columns, Wrong
from leafcuttr_spark.pipelines.checking.types import DdlError, SqlType, parse_ddl
from leafcuttr_spark.pipelines.model import RECORD_TIME, Decoding, FileOrigin, Pipeline, Source, TopicOrigin

_PARTS: Final = {
    "key": types.BINARY,
    "topic": types.STRING,
    "partition": types.INT,
    "offset": types.BIGINT,
    "timestamp": types.TIMESTAMP,
    "headers": types.HEADERS,
}
"""Types of the parts of a record, as the data source has them."""
_WHOLE: Final = {"bytes": types.BINARY, "text": types.STRING}


def source_columns(name: str, source: Source, pipeline: Pipeline, wrong: Wrong) -> Columns:
    """The columns of a source, in order; open where its schema is not known. What is wrong is said."""
    origin = source.origin
    if isinstance(origin, FileOrigin):
        return _of_files(origin, wrong)
    key = _of_key(origin, wrong)
    value = _of_value(origin, wrong)
    parts = [(column, _PARTS[part]) for column, part in origin.columns.items()]
    time = [(RECORD_TIME, types.TIMESTAMP)] if source.time is None and source.watermark_ms is not None else []
    return Columns((*key, *value.items, *parts, *time), value.is_open)


def _of_files(origin: FileOrigin, wrong: Wrong) -> Columns:
    if origin.format == "text" and origin.schema is None:
        return Columns((("value", types.STRING),))
    if origin.schema is None:
        return Columns(is_open=True)
    return _ddl(origin.schema, "file.schema", wrong)


def _of_key(origin: TopicOrigin, wrong: Wrong) -> list[tuple[str, SqlType | None]]:
    decoding = origin.key
    if decoding.format == "none":
        return []
    name = decoding.as_ or "key"
    if decoding.format in _WHOLE:
        return [(name, _WHOLE[decoding.format])]
    fields = _fields(decoding, "key", wrong)
    return [(name, None if fields.is_open else SqlType("struct", fields.items))]


def _of_value(origin: TopicOrigin, wrong: Wrong) -> Columns:
    decoding = origin.value
    if decoding.format in _WHOLE:
        return Columns(((decoding.as_ or "value", _WHOLE[decoding.format]),))
    fields = _fields(decoding, "value", wrong)
    if decoding.as_ is None:
        return fields
    return Columns(((decoding.as_, None if fields.is_open else SqlType("struct", fields.items)),))


def _fields(decoding: Decoding, key: str, wrong: Wrong) -> Columns:
    if decoding.columns is not None:
        return _ddl(decoding.columns, f"{key}.columns", wrong)
    return Columns(is_open=True)


def _ddl(text: str, key: str, wrong: Wrong) -> Columns:
    try:
        return Columns(parse_ddl(text))
    except DdlError as error:
        wrong(f"{key}: {error}")
        return Columns(is_open=True)
