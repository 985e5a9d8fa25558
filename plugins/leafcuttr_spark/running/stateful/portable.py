# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Rows as Python can hold them in a state processor, and back.

A timestamp may lie beyond what a `datetime` holds, and a map comes out of Arrow as pairs, which cannot be written into
state: times become microseconds since 1970, maps arrays of entries, in structs and arrays too. All else stays.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, LongType, MapType, StructField, StructType, TimestampType

from leafcuttr_spark.running.rows import column

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def packed(frame: "DataFrame", names: Sequence[str]) -> "Column":
    """A struct of these columns."""
    fields = [frame.schema[name] for name in names]
    return f.struct(*(_there(column(each.name), each.dataType).alias(each.name) for each in fields))


def packed_type(frame: "DataFrame", names: Sequence[str]) -> StructType:
    """Its type."""
    return StructType([StructField(name, portable(frame.schema[name].dataType)) for name in names])


def unpacked(struct: "Column", frame: "DataFrame", names: Sequence[str]) -> "list[Column]":
    """The columns of such a struct as they were in the frame, under their names, with their metadata."""
    fields = [frame.schema[name] for name in names]
    return [
        _back(struct[each.name], each.dataType).alias(each.name, metadata=each.metadata) for each in fields
    ]


def portable(kind: Any) -> Any:
    """The type as Python gets it."""
    match kind:
        case TimestampType():
            return LongType()
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


def _there(value: "Column", kind: Any) -> "Column":
    match kind:
        case TimestampType():
            return f.unix_micros(value)
        case StructType() if _differs(kind):
            fields = (_there(value[each.name], each.dataType).alias(each.name) for each in kind.fields)
            return f.when(value.isNotNull(), f.struct(*fields))
        case ArrayType() if _differs(kind):
            return f.transform(value, lambda each: _there(each, kind.elementType))
        case MapType():
            entries = StructType([StructField("key", kind.keyType), StructField("value", kind.valueType)])
            return _there(f.map_entries(value), ArrayType(entries))
        case _:
            return value


def _back(value: "Column", kind: Any) -> "Column":
    match kind:
        case TimestampType():
            return f.timestamp_micros(value)
        case StructType() if _differs(kind):
            fields = (_back(value[each.name], each.dataType).alias(each.name) for each in kind.fields)
            return f.when(value.isNotNull(), f.struct(*fields))
        case ArrayType() if _differs(kind):
            return f.transform(value, lambda each: _back(each, kind.elementType))
        case MapType():
            entries = StructType([StructField("key", kind.keyType), StructField("value", kind.valueType)])
            return f.map_from_entries(_back(value, ArrayType(entries)))
        case _:
            return value


def _differs(kind: Any) -> bool:
    match kind:
        case TimestampType() | MapType():
            return True
        case StructType():
            return any(_differs(each.dataType) for each in kind.fields)
        case ArrayType():
            return _differs(kind.elementType)
        case _:
            return False
