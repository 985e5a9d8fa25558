# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""The columns that frames have beside the user's. All may be missing.

    RECORD    the record that the row was made of: topic, partition, offset, timestamp, key, value, headers; the bytes
              as they came. Where something needs it
    ERROR     what is wrong with the row: step, reason; null for a good row. Where something before can fail
    TIME      the row's event time, which has the watermark. Where a step has state, as the next one
    OFFSET    the record's offset
    DELETED   of tables: whether the record had no value, which deletes its key

A row with an error passes all steps without state as it is, and becomes a dead letter. `attempts` makes such rows.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

RECORD: Final = "_lc_record"
ERROR: Final = "_lc_error"
TIME: Final = "_lc_time"
OFFSET: Final = "_lc_offset"
DELETED: Final = "_lc_deleted"
HIDDEN: Final = (RECORD, ERROR, TIME, OFFSET, DELETED)

HEADERS_DDL: Final = "array<struct<key: string, value: binary>>"
RECORD_DDL: Final = (
    "struct<topic: string, partition: int, offset: bigint, timestamp: timestamp, key: binary, value: binary,"
    f" headers: {HEADERS_DDL}>"
)
ERROR_DDL: Final = "struct<step: string, reason: string>"


def column(name: str) -> "Column":
    """The column of exactly this name, dots in it too."""
    return f.col(quoted(name))


def quoted(name: str) -> str:
    """The name as Spark SQL writes it."""
    return "`" + name.replace("`", "``") + "`"


def user_columns(frame: "DataFrame") -> list[str]:
    """All columns but the hidden ones."""
    return [name for name in frame.columns if name not in HIDDEN]


def hidden_columns(frame: "DataFrame") -> list[str]:
    return [name for name in HIDDEN if name in frame.columns]


def chosen(frame: "DataFrame", columns: "Iterable[Column]") -> "DataFrame":
    """These columns, and the hidden ones that the frame has."""
    return frame.select(*columns, *hidden_columns(frame))


def can_fail(frame: "DataFrame") -> bool:
    """Whether rows of the frame may have an error."""
    return ERROR in frame.columns


def is_good() -> "Column":
    return f.col(ERROR).isNull()


def good_rows(frame: "DataFrame") -> "DataFrame":
    """The rows without an error. They keep RECORD."""
    return frame.where(is_good()).drop(ERROR) if can_fail(frame) else frame


def failed(step: str, reason: "Column | str") -> "Column":
    """A value of ERROR."""
    text = f.lit(reason) if isinstance(reason, str) else reason
    return f.struct(f.lit(step).alias("step"), text.alias("reason")).cast(ERROR_DDL)


def record_of(row: "DataFrame") -> "Column":
    """RECORD, for a row of several records, or of none: without a place, its value is the row as JSON."""
    if RECORD in row.columns:
        return f.col(RECORD)
    names = user_columns(row)
    value = f.to_json(f.struct(*map(column, names)), {"ignoreNullFields": "false"}) if names else f.lit("{}")
    parts = {"value": value.cast("binary")}
    fields = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
    return f.struct(*(parts.get(name, f.lit(None)).alias(name) for name in fields)).cast(RECORD_DDL)
