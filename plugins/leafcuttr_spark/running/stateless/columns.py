# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Filter, map, select, cast, drop, rename and flat-map: rows one by one, as projections."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f

from leafcuttr_spark.pipelines.errors import PipelineRefusedError
from leafcuttr_spark.pipelines.operations import Cast, Drop, Filter, FlatMap, Map, Rename, Select
from leafcuttr_spark.running.attempts import Expression, attempted, expression, named
from leafcuttr_spark.running.compiling import Compiler, StepContext
from leafcuttr_spark.running.rows import HIDDEN, can_fail, chosen, column, is_good, quoted, user_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ITEMS: Final = "_lc_items"


def compile_filter(operation: Filter, frames: "Sequence[DataFrame]", context: StepContext) -> "DataFrame":
    (frame,) = frames
    condition = expression(operation.condition)
    done, (keep,) = attempted(frame, context.part, [condition], catches=context.catches)
    kept = done.where(keep | ~is_good() if can_fail(done) else keep)
    return chosen(kept, map(column, user_columns(frame)))


def compile_map(operation: Map, frames: "Sequence[DataFrame]", context: StepContext) -> "DataFrame":
    (frame,) = frames
    return with_columns(frame, named(operation.columns), context)


def with_columns(frame: "DataFrame", values: Mapping[str, Expression], context: StepContext) -> "DataFrame":
    """The frame with these columns, in their places or behind; they see the row as it came."""
    _check_names(values, context)
    done, found = attempted(frame, context.part, list(values.values()), catches=context.catches)
    new = dict(zip(values, found, strict=True))
    names = user_columns(frame)
    kept = [new[name].alias(name) if name in new else column(name) for name in names]
    return chosen(done, [*kept, *(each.alias(name) for name, each in new.items() if name not in names)])


def compile_select(operation: Select, frames: "Sequence[DataFrame]", context: StepContext) -> "DataFrame":
    (frame,) = frames
    values: dict[str, Expression] = {}
    for name, each in _selected(frame, operation.columns):
        if name in values:
            raise PipelineRefusedError(
                f"the result has two columns {name}: give one another name with AS", context.part
            )
        values[name] = each
    _check_names(values, context)
    done, found = attempted(frame, context.part, list(values.values()), catches=context.catches)
    return chosen(done, [each.alias(name) for name, each in zip(values, found, strict=True)])


def _selected(frame: "DataFrame", texts: Sequence[str]) -> list[tuple[str, Expression]]:
    """Names and expressions; `*` is all columns, `part.*` all fields of a struct."""
    clean = frame.select(*map(column, user_columns(frame)))
    found: list[tuple[str, Expression]] = []
    for text in texts:
        names = clean.selectExpr(text).columns
        stripped = text.strip()
        if stripped == "*":
            found += [(name, Expression(column(name), name, is_safe=True)) for name in names]
        elif stripped.endswith(".*"):
            whole = f.expr(stripped.removesuffix(".*"))
            found += [(name, Expression(whole[name], name, is_safe=True)) for name in names]
        else:
            found += [(name, expression(text)) for name in names]
    return found


def compile_cast(operation: Cast, frames: "Sequence[DataFrame]", context: StepContext) -> "DataFrame":
    (frame,) = frames
    return cast_columns(frame, operation.types, context)


def cast_columns(frame: "DataFrame", types: Mapping[str, str], context: StepContext) -> "DataFrame":
    """A value that the type cannot hold is an error, unless the session has `spark.sql.ansi.enabled` off."""
    _check_known(frame, types, context)
    texts = {name: f"cast({quoted(name)} as {type_})" for name, type_ in types.items()}
    return with_columns(frame, named(texts), context)


def compile_drop(operation: Drop, frames: "Sequence[DataFrame]", context: StepContext) -> "DataFrame":
    (frame,) = frames
    _check_known(frame, operation.columns, context)
    return chosen(frame, [column(name) for name in user_columns(frame) if name not in operation.columns])


def compile_rename(operation: Rename, frames: "Sequence[DataFrame]", context: StepContext) -> "DataFrame":
    (frame,) = frames
    return rename_columns(frame, operation.names, context)


def rename_columns(frame: "DataFrame", names: Mapping[str, str], context: StepContext) -> "DataFrame":
    _check_known(frame, names, context)
    new = [names.get(name, name) for name in user_columns(frame)]
    if len(set(new)) < len(new):
        twice = next(name for name in new if new.count(name) > 1)
        raise PipelineRefusedError(f"two columns would have the name {twice}", context.part)
    _check_names(new, context)
    return chosen(frame, [column(name).alias(to) for name, to in zip(user_columns(frame), new, strict=True)])


def compile_flat_map(operation: FlatMap, frames: "Sequence[DataFrame]", context: StepContext) -> "DataFrame":
    (frame,) = frames
    _check_names([operation.as_], context)
    names = [name for name in user_columns(frame) if name != operation.as_]
    done, (items,) = attempted(frame, context.part, [expression(operation.explode)], catches=context.catches)
    whole = done.withColumn(_ITEMS, items)
    kind = whole.schema[_ITEMS].dataType.typeName()
    if kind not in ("array", "map"):
        raise PipelineRefusedError(
            f"{operation.explode} is of the type {kind}; a flat-map takes an array or a map", context.part
        )
    if not operation.keep_empty:
        there = f.size(_ITEMS) > 0
        whole = whole.where(there | ~is_good() if can_fail(whole) else there)
    entries = f.map_entries(_ITEMS) if kind == "map" else f.col(_ITEMS)
    # A row with an error has no elements, and stays: one row with null.
    return chosen(whole, [*map(column, names), f.explode_outer(entries).alias(operation.as_)])


def _check_known(frame: "DataFrame", names: Any, context: StepContext) -> None:
    known = user_columns(frame)
    for name in names:
        if name not in known:
            raise PipelineRefusedError(
                f"there is no column {name}; there are {', '.join(known)}", context.part
            )


def _check_names(names: Any, context: StepContext) -> None:
    for name in names:
        if name in HIDDEN:
            raise PipelineRefusedError(f"the name {name} is the pipeline's own", context.part)


COMPILERS: Final[Mapping[type[Any], Compiler]] = {
    Filter: compile_filter,
    Map: compile_map,
    Select: compile_select,
    Cast: compile_cast,
    Drop: compile_drop,
    Rename: compile_rename,
    FlatMap: compile_flat_map,
}
