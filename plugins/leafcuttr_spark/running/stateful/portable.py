# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Rows as Python can hold them in a state processor, and back.

A time or a date may lie beyond what a `datetime` holds, and a map comes out of Arrow as pairs, which cannot be written
into state: times become microseconds since 1970, those without a zone text, dates days since 1970, maps arrays of
entries, in structs and arrays too. All else stays.
"""

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Final, cast

from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    DateType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from leafcuttr_spark.running.rows import column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FIRST_US: Final = -62_135_596_800_000_000
_LAST_US: Final = 253_402_300_799_999_999
"""The years 1 to 9999 in UTC."""


def packed(frame: "DataFrame", names: Sequence[str]) -> "Column":
    """A struct of these columns."""
    fields = [frame.schema[name] for name in names]
    return f.struct(*(there(column(each.name), each.dataType).alias(each.name) for each in fields))


def packed_type(frame: "DataFrame", names: Sequence[str]) -> StructType:
    """Its type."""
    return StructType([StructField(name, portable(frame.schema[name].dataType)) for name in names])


def unpacked(struct: "Column", frame: "DataFrame", names: Sequence[str]) -> "list[Column]":
    """The columns of such a struct as they were in the frame, under their names, with their metadata."""
    fields = [frame.schema[name] for name in names]
    return [
        back(struct[each.name], each.dataType).alias(each.name, metadata=each.metadata) for each in fields
    ]


def with_portable(frame: "DataFrame", names: Sequence[str]) -> "DataFrame":
    """The frame, with these columns as Python gets them."""
    return frame.withColumns({name: there(column(name), frame.schema[name].dataType) for name in names})


def portable(kind: Any) -> Any:
    """The type as Python gets it."""
    match kind:
        case TimestampType():
            return LongType()
        case TimestampNTZType():
            return StringType()
        case DateType():
            return IntegerType()
        case StructType():
            return StructType([StructField(each.name, portable(each.dataType)) for each in kind.fields])
        case ArrayType():
            return ArrayType(portable(kind.elementType))
        case MapType():
            entry = [
                StructField("key", portable(kind.keyType)),
                StructField("value", portable(kind.valueType)),
            ]
            return ArrayType(StructType(entry))
        case _:
            return kind


def there(value: "Column", kind: Any) -> "Column":
    """A value of this type as Python gets it."""
    match kind:
        case TimestampType():
            return f.unix_micros(value)
        case TimestampNTZType():
            # A number would take a zone, and one with summer time has no place for some of its hours.
            return value.cast("string")
        case DateType():
            return f.unix_date(value)
        case StructType() if _differs(kind):
            fields = (there(value[each.name], each.dataType).alias(each.name) for each in kind.fields)
            return f.when(value.isNotNull(), f.struct(*fields))
        case ArrayType() if _differs(kind):
            return f.transform(value, lambda each: there(each, kind.elementType))
        case MapType():
            entries = StructType([StructField("key", kind.keyType), StructField("value", kind.valueType)])
            return there(f.map_entries(value), ArrayType(entries))
        case _:
            return value


def back(value: "Column", kind: Any) -> "Column":
    """The value of this type of which `there` made that."""
    match kind:
        case TimestampType():
            return f.timestamp_micros(value)
        case TimestampNTZType():
            return value.cast("timestamp_ntz")
        case DateType():
            return f.date_from_unix_date(value)
        case StructType() if _differs(kind):
            fields = (back(value[each.name], each.dataType).alias(each.name) for each in kind.fields)
            return f.when(value.isNotNull(), f.struct(*fields))
        case ArrayType() if _differs(kind):
            return f.transform(value, lambda each: back(each, kind.elementType))
        case MapType():
            entries = StructType([StructField("key", kind.keyType), StructField("value", kind.valueType)])
            return f.map_from_entries(back(value, ArrayType(entries)))
        case _:
            return value


def _differs(kind: Any) -> bool:
    match kind:
        case TimestampType() | TimestampNTZType() | DateType() | MapType():
            return True
        case StructType():
            return any(_differs(each.dataType) for each in kind.fields)
        case ArrayType():
            return _differs(kind.elementType)
        case _:
            return False


def beyond_python(value: "Column", kind: Any) -> "Column | None":
    """Whether there is a time or a date in the value that no `datetime` holds; None for types that have none."""
    match kind:
        case TimestampType():
            # Python makes one of UTC, and then one of the session's zone.
            first, last = (f.timestamp_micros(f.lit(each)) for each in (_FIRST_US, _LAST_US))
            return ~(value.between(first, last) & f.year(value).between(1, 9999))
        case DateType() | TimestampNTZType():
            return ~f.year(value).between(1, 9999)
        case StructType():
            found = (beyond_python(value[each.name], each.dataType) for each in kind.fields)
            return _any(*(each for each in found if each is not None))
        case ArrayType():
            return _within(value, kind.elementType)
        case MapType():
            parts = (_within(f.map_keys(value), kind.keyType), _within(f.map_values(value), kind.valueType))
            return _any(*(each for each in parts if each is not None))
        case _:
            return None


def _within(values: "Column", kind: Any) -> "Column | None":
    if beyond_python(f.lit(None), kind) is None:
        return None
    return f.exists(values, lambda each: cast("Column", beyond_python(each, kind)))


def _any(*conditions: "Column") -> "Column | None":
    """Null is no."""
    plain = [f.coalesce(each, f.lit(False)) for each in conditions]
    return reduce(or_, plain) if plain else None
