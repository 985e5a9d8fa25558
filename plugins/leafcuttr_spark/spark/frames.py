# It is not installed where types are checked; where it is, its types do not know how it infers a function's kind.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Frames of topics, by the source here or by Spark's own connector, and columns as keys and values of records.

Both work with Spark Connect too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import to_arrow_schema

from leafcuttr_spark.formats.encoding import Encoding, encoding
from leafcuttr_spark.formats.options import FormatName, FormatOptions
from leafcuttr_spark.options import OptionError, Query
from leafcuttr_spark.source.options import ERROR, HEADERS, KEY_BYTES, VALUE_BYTES, row_options, source_options
from leafcuttr_spark.source.rows import RowMaker, RowPlan, row_plan

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LEAFCUTTR: Final = "leafcuttr"
KAFKA: Final = "kafka"
_OURS: Final = ("columns", "key.", "value.", "schema.registry.")
"""Beginnings of options that Spark's connector does not have."""
_ENCODED: Final = "data binary, error string"


def topic_frame(
    spark: "SparkSession", options: Mapping[str, Any], *, stream: bool, via: str = LEAFCUTTR
) -> "DataFrame":
    """The rows of `format("leafcuttr")`, which Spark's own connector reads where `via` says `kafka`. Raises
    OptionError with one line: for options, and where that connector is not there."""
    reader = spark.readStream if stream else spark.read
    if via == LEAFCUTTR:
        return reader.format(LEAFCUTTR).options(**_texts(options)).load()
    if via != KAFKA:
        raise OptionError(f"via is {via!r}; allowed is {LEAFCUTTR} or {KAFKA}")
    checked = source_options(options, Query.STREAM if stream else Query.BATCH)
    plan = row_plan(row_options(options))
    given = {name: value for name, value in _texts(options).items() if not name.lower().startswith(_OURS)}
    given.setdefault("kafka.isolation.level", "read_committed" if checked.committed else "read_uncommitted")
    if checked.needs_headers:
        given["includeHeaders"] = "true"
    try:
        rows = reader.format(KAFKA).options(**given).load()
        rows.schema  # noqa: B018 - Connect finds out only now
    except AnalysisException as error:
        if KAFKA not in str(error).lower() or "find" not in str(error).lower():
            raise
        raise OptionError(
            "via is kafka, and Spark's own Kafka connector is not there: start Spark with --packages"
            f" org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}, or read via leafcuttr"
        ) from None
    return _decoded(rows, plan)


def _texts(options: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in options.items()}


def _decoded(rows: "DataFrame", plan: RowPlan) -> "DataFrame":
    if {plan.key.options.name, plan.value.options.name} == {FormatName.BYTES}:
        named = {
            ERROR: f.lit(None).cast("string"),
            KEY_BYTES: f.col("key"),
            VALUE_BYTES: f.col("value"),
        }
        return rows.select(*(named.get(name, f.col(name)).alias(name) for name in plan.columns))
    needed = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    if HEADERS in rows.columns:
        needed.append(HEADERS)
    return rows.select(*needed).mapInArrow(partial(_decode_rows, plan), plan.ddl)


def _decode_rows(plan: RowPlan, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return RowMaker(plan).decoded(batches)


def planned_encoding(
    frame: "DataFrame", column: str, options: FormatOptions, subject: str, part: str = "value"
) -> Encoding:
    """How a column of the frame becomes keys or values; its schema is registered. Raises OptionError."""
    type_ = to_arrow_schema(frame.select(column).schema, timezone="UTC").field(0).type
    return encoding(options, type_, subject, part)


def encoded(column: "Column", how: Encoding) -> "Column":
    """A struct of `data`, the bytes, and `error`, a line where they cannot be made of the row; both null for null."""
    return f.arrow_udf(_encoder(how), _ENCODED)(column)


def _encoder(how: Encoding) -> Callable[[pa.Array], pa.Array]:
    # Spark tells by the annotations which kind of function it is.
    def encode(column: pa.Array) -> pa.Array:
        found = how.encode(column)
        errors = pa.array([found.errors.get(row) for row in range(len(column))], pa.string())
        return pa.StructArray.from_arrays([found.values, errors], ["data", "error"])

    return encode
