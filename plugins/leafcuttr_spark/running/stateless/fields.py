# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Fields of structs by their paths, `order.id`: a column of exactly this name comes first."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from leafcuttr_spark.pipelines.errors import PipelineRefusedError
from leafcuttr_spark.running.rows import column, user_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def parts_of(frame: "DataFrame", path: str, part: str) -> tuple[str, ...]:
    """The column, and the fields in it. Raises PipelineError where there is none."""
    names = user_columns(frame)
    if path in names:
        return (path,)
    found: list[str] = []
    kind: Any = None
    for name in path.split("."):
        known = names if kind is None else kind.names if kind.typeName() == "struct" else []
        if name not in known:
            place = ".".join(found)
            raise PipelineRefusedError(
                f"there is no column {path}; {place or 'there'} {'has' if place else 'are'}"
                f" {', '.join(known) or 'no fields'}",
                part,
            )
        kind = frame.schema[name].dataType if kind is None else kind[name].dataType
        found.append(name)
    return tuple(found)


def value_of(frame: "DataFrame", path: str, part: str) -> "Column":
    """Raises PipelineError where there is none."""
    first, *others = parts_of(frame, path, part)
    found = column(first)
    for name in others:
        found = found[name]
    return found


def type_of(frame: "DataFrame", path: str, part: str) -> Any:
    """The type of the field. Raises PipelineError where there is none."""
    first, *others = parts_of(frame, path, part)
    kind: Any = frame.schema[first].dataType
    for name in others:
        kind = kind[name].dataType
    return kind


def changed(
    frame: "DataFrame", path: str, part: str, change: "Callable[[Column], Column]"
) -> "tuple[str, Column]":
    """The column with this field changed, and its name. A struct that is null stays null."""
    first, *others = parts_of(frame, path, part)
    return first, _changed(column(first), others, change)


def _changed(value: "Column", path: list[str], change: "Callable[[Column], Column]") -> "Column":
    if not path:
        return change(value)
    name, *others = path
    return value.withField(_escaped(name), _changed(value[name], others, change))


def kept(
    value: "Column", kind: Any, keep: "Callable[[tuple[str, ...]], bool | None]", at: tuple[str, ...]
) -> "Column | None":
    """The value with the fields for which `keep` is true; None says that it depends on those within. Of none, None."""
    decided = keep(at)
    if decided is not None or kind.typeName() != "struct":
        return value if decided else None
    fields = [(name, kept(value[name], kind[name].dataType, keep, (*at, name))) for name in kind.names]
    left = [each.alias(name) for name, each in fields if each is not None]
    return f.when(value.isNotNull(), f.struct(*left)) if left else None


def without(value: "Column", path: Iterable[str]) -> "Column":
    """The struct without this field."""
    first, *others = path
    if not others:
        return value.dropFields(_escaped(first))
    return value.withField(_escaped(first), without(value[first], others))


def _escaped(name: str) -> str:
    """`withField` takes dots for paths."""
    return f"`{name}`" if "." in name else name
