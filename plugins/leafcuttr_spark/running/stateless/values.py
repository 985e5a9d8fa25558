# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""What transforms make of one value: masked, hashed, as text, as a time. Null stays null."""

import hashlib
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f

from leafcuttr_spark.pipelines.errors import PipelineRefusedError

if TYPE_CHECKING:
    from pyspark.sql import Column

_WHOLE: Final = ("byte", "short", "integer", "long")
_NUMBERS: Final = (*_WHOLE, "float", "double", "decimal")
_BLOCKS: Final = {"sha256": (256, 64), "sha512": (512, 128)}
"""The bits of a hash, and the bytes of its blocks."""
_DAY_MS: Final = 86_400_000


def text_of(value: "Column", kind: Any) -> "Column":
    """A text as it is, structs, arrays and maps as JSON, others as Spark casts them."""
    if kind.typeName() in ("struct", "array", "map"):
        return f.to_json(value, {"ignoreNullFields": "false"})
    return value.cast("string")


def masked(value: "Column", kind: Any, replacement: str | None, part: str) -> "Column":
    """As Connect's MaskField: empty, 0 or false by its type; or the replacement, of a text or number."""
    name = kind.typeName()
    if replacement is not None:
        if name not in ("string", *_NUMBERS):
            raise PipelineRefusedError(
                f"a replacement stands for texts and numbers, and this is {name}", part
            )
        instead = f.lit(replacement).cast(kind)
        if name in _NUMBERS and not _is_number(replacement, whole=name in _WHOLE):
            raise PipelineRefusedError(f"the replacement {replacement!r} cannot stand for a {name}", part)
    elif name in _NUMBERS or name == "boolean":
        instead = f.lit(0).cast(kind)
    elif name in ("string", "binary"):
        instead = f.lit("").cast(kind)
    elif name in ("timestamp", "date"):
        instead = f.timestamp_seconds(f.lit(0)).cast(kind)
    elif name == "array":
        instead = f.array().cast(kind)
    elif name == "map":
        instead = f.create_map().cast(kind)
    else:
        raise PipelineRefusedError(f"a {name} cannot be masked: name fields in it", part)
    return f.when(value.isNotNull(), instead)


def _is_number(text: str, *, whole: bool) -> bool:
    try:
        (int if whole else float)(text)
    except ValueError:
        return False
    return True


def hashed(text: "Column", algorithm: str, salt: str | None) -> "Column":
    """In hex; with a salt by an HMAC (RFC 2104), of whose two keys Spark sees the blocks alone."""
    bits, block = _BLOCKS[algorithm]
    data = text.cast("binary")
    if salt is None:
        return f.sha2(data, bits)
    key = salt.encode()
    if len(key) > block:
        key = hashlib.new(algorithm, key).digest()
    key = key.ljust(block, b"\0")
    inner = f.lit(bytes(byte ^ 0x36 for byte in key))
    outer = f.lit(bytes(byte ^ 0x5C for byte in key))
    return f.sha2(f.concat(outer, f.unhex(f.sha2(f.concat(inner, data), bits))), bits)


# Times


def time_read(value: "Column", kind: Any, format_: str | None, precision: str, part: str) -> "Column":
    """As a timestamp: a text by its format, a number by its precision, a day at its beginning."""
    name = kind.typeName()
    if name in ("timestamp", "date"):
        return value.cast("timestamp")
    if name == "string":
        if format_ is None:
            raise PipelineRefusedError("it is a text, and there is no format to read it by", part)
        return f.to_timestamp(value, format_)
    if name not in _WHOLE:
        raise PipelineRefusedError(f"it is a {name}: neither a text, nor a whole number, nor a time", part)
    number = value.cast("long")
    if precision == "seconds":
        return f.timestamp_seconds(number)
    if precision == "milliseconds":
        return f.timestamp_millis(number)
    # Spark's times end at microseconds.
    micros = number if precision == "microseconds" else f.call_function("div", number, f.lit(1000))
    return f.timestamp_micros(micros)


def time_written(time: "Column", target: str, format_: str | None, precision: str) -> "Column":
    """The time as `target.type` says."""
    if target == "string":
        return f.date_format(time, format_ or "")
    if target == "Date":
        return time.cast("date")
    if target == "Time":
        return f.pmod(f.unix_millis(time), f.lit(_DAY_MS)).cast("int")
    if target == "Timestamp":
        return time
    if precision == "seconds":
        return f.unix_seconds(time)
    if precision == "milliseconds":
        return f.unix_millis(time)
    micros = f.unix_micros(time)
    return micros if precision == "microseconds" else micros * 1000
