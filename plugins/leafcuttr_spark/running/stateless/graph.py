# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Branch and union: one frame to several, several to one."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f

from leafcuttr_spark.pipelines.errors import PipelineRefusedError
from leafcuttr_spark.pipelines.operations import Branch, Union
from leafcuttr_spark.running.attempts import attempted, expression
from leafcuttr_spark.running.compiling import Compiler, StepContext
from leafcuttr_spark.running.rows import HIDDEN, can_fail, chosen, column, good_rows, is_good, user_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BRANCH: Final = "_lc_branch"


def compile_branch(
    operation: Branch, frames: "Sequence[DataFrame]", context: StepContext
) -> "Mapping[str, DataFrame]":
    """Conditions are evaluated once for each row, and before the frames part. Rows with an error go to the first."""
    (frame,) = frames
    names = user_columns(frame)
    conditions = [expression(text) for text in operation.conditions.values()]
    done, results = attempted(frame, context.part, conditions, catches=context.catches)
    choice = f.lit(operation.default)
    for name, result in reversed(list(zip(operation.conditions, results, strict=True))):
        choice = f.when(result, f.lit(name)).otherwise(choice)
    decided = chosen(done.withColumn(_BRANCH, choice), [*map(column, names), f.col(_BRANCH)])
    live = [name for name in context.step.frames if name in context.branches]
    if len(live) > 1:
        decided = context.shared(decided)
    found: dict[str, DataFrame] = {}
    for number, name in enumerate(live):
        is_here = f.col(_BRANCH) == name
        if number == 0 and can_fail(decided):
            rows = decided.where((is_good() & is_here) | ~is_good())
        else:
            rows = good_rows(decided).where(is_here)
        found[name] = chosen(rows, map(column, names))
    return found


def compile_union(operation: Union, frames: "Sequence[DataFrame]", context: StepContext) -> "DataFrame":
    first, *others = frames
    for name, other in zip(operation.frames[1:], others, strict=True):
        _check_same(first, other, operation.frames[0], name, context)
    everywhere = [name for name in HIDDEN if any(name in frame.columns for frame in frames)]
    types = {
        name: frame.schema[name].dataType for frame in frames for name in HIDDEN if name in frame.columns
    }
    whole = [_with_hidden(frame, everywhere, types) for frame in frames]
    return reduce(lambda one, other: one.unionByName(other), whole)


def _with_hidden(frame: "DataFrame", names: Sequence[str], types: Mapping[str, Any]) -> "DataFrame":
    hidden = [
        f.col(name) if name in frame.columns else f.lit(None).cast(types[name]).alias(name) for name in names
    ]
    return frame.select(*map(column, user_columns(frame)), *hidden)


def _check_same(
    one: "DataFrame", other: "DataFrame", name: str, other_name: str, context: StepContext
) -> None:
    columns, others = user_columns(one), user_columns(other)
    if set(columns) != set(others):
        missing = sorted(set(columns) ^ set(others))
        raise PipelineRefusedError(
            f"{name} and {other_name} have not the same columns: {', '.join(missing)} only one of them has",
            context.part,
        )


COMPILERS: Final[Mapping[type[Any], Compiler]] = {Branch: compile_branch, Union: compile_union}
