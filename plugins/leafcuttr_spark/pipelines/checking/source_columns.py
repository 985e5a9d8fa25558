"""The columns of sources: from declared columns, and from schemas of files and registries where they can be read.

A registry that does not answer within seconds, or has no schema yet, is noted: the columns are unknown then.
"""

from dataclasses import replace
from pathlib import Path
from typing import Final

from leafcuttr_spark.formats.options import (
    LARGEST_FILE,
    FormatName,
    FormatOptions,
    LargeSchemaError,
    read_schema_file,
)
from leafcuttr_spark.options import OptionError
from leafcuttr_spark.pipelines.checking import expressions, types
from leafcuttr_spark.pipelines.checking.expressions import Columns, Wrong
from leafcuttr_spark.pipelines.checking.types import DdlError, SqlType, parse_type
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
_SOON: Final = {
    "schema.registry.http.connect.timeout.ms": "3000",
    "schema.registry.http.read.timeout.ms": "5000",
    "schema.registry.max.retries": "0",
}
"""A check does not wait for a registry that is away."""
_WHOLE: Final = {"bytes": types.BINARY, "text": types.STRING}


def source_columns(name: str, source: Source, pipeline: Pipeline, wrong: Wrong, note: Wrong) -> Columns:
    """The columns of a source, in order; open where its schema is not known. What is wrong is said."""
    origin = source.origin
    if isinstance(origin, FileOrigin):
        return _of_files(origin, wrong)
    schemas = _Schemas(origin, pipeline, wrong, note)
    key = _of_key(origin, schemas)
    value = _of_value(origin, schemas)
    parts = [(column, _PARTS[part]) for column, part in origin.columns.items()]
    time = [(RECORD_TIME, types.TIMESTAMP)] if source.time is None and source.watermark_ms is not None else []
    return Columns((*key, *value.items, *parts, *time), value.is_open)


def columns_without_registry(
    name: str, source: Source, pipeline: Pipeline, wrong: Wrong, note: Wrong
) -> Columns:
    """The same, open where a registry has the schema: it gets no request."""
    return source_columns(name, source, replace(pipeline, registry=None), wrong, note)


def _of_files(origin: FileOrigin, wrong: Wrong) -> Columns:
    if origin.format == "text" and origin.schema is None:
        return Columns((("value", types.STRING),))
    if origin.schema is None:
        return Columns(is_open=True)
    return expressions.ddl(origin.schema, "file.schema", wrong)


def _of_key(origin: TopicOrigin, schemas: "_Schemas") -> list[tuple[str, SqlType | None]]:
    decoding = origin.key
    if decoding.format == "none":
        return []
    name = decoding.as_ or "key"
    return [(name, _WHOLE.get(decoding.format) or schemas.type_of(decoding, "key"))]


def _of_value(origin: TopicOrigin, schemas: "_Schemas") -> Columns:
    decoding = origin.value
    type_ = _WHOLE.get(decoding.format) or schemas.type_of(decoding, "value")
    if decoding.as_ is not None:
        return Columns(((decoding.as_, type_),))
    if type_ is None:
        return Columns(is_open=True)
    return Columns(type_.parts) if type_.name == "struct" else Columns((("value", type_),))


class _Schemas:
    """The types of keys and values that have a schema."""

    def __init__(self, origin: TopicOrigin, pipeline: Pipeline, wrong: Wrong, note: Wrong) -> None:
        self._origin = origin
        self._pipeline = pipeline
        self._wrong = wrong
        self._note = note

    def type_of(self, decoding: Decoding, part: str) -> SqlType | None:
        """None where it cannot be known."""
        if decoding.columns is not None:
            columns = expressions.ddl(decoding.columns, f"{part}.columns", self._wrong)
            return None if columns.is_open else SqlType("struct", columns.items)
        schema = None
        if decoding.schema is not None:
            schema = self._read(decoding.schema, part)
            if schema is None:
                return None
        elif self._pipeline.registry is None or (decoding.subject is None and len(self._origin.topics) != 1):
            return None  # the graph's check says so
        return self._planned(decoding, part, schema)

    def _read(self, path: Path, part: str) -> bytes | None:
        try:
            return read_schema_file(path)
        except LargeSchemaError:
            self._wrong(f"{part}.schema: {path} is larger than {LARGEST_FILE >> 20} MiB")
        except OSError as error:
            self._wrong(f"{part}.schema: {path}: {error.strerror}")
        return None

    def _planned(self, decoding: Decoding, part: str, schema: bytes | None) -> SqlType | None:
        try:
            from leafcuttr_spark.formats.decoding import plan_format
            from leafcuttr_spark.formats.types import ddl
        except ImportError:
            return None  # numpy and pyarrow are of the extra; what needs no schema is checked without them
        options = FormatOptions(
            FormatName(decoding.format),
            schema=schema,
            subject=decoding.subject,
            message=decoding.message,
            registry={**_SOON, **(self._pipeline.registry or {})},
        )
        try:
            return parse_type(ddl(plan_format(options, part, self._origin.topics).type))
        except OptionError as error:
            say = self._wrong if schema is not None else self._note
            say(f"{part}: {_one_line(str(error))}")
        except DdlError:
            pass
        return None


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else f"{line[:297]}..."
