# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""SQL, and functions in Python: of whole frames, or of one record after the other.

SQL and functions of frames get the good rows with their hidden columns. A function should leave those where they are,
as `withColumn` and `filter` do. SQL that makes each row of one row of one frame gets them for its result.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import functions as f

from leafcuttr_spark.pipelines.checking.queries import SqlError, UnreadableSqlError, parsed
from leafcuttr_spark.pipelines.errors import PipelineRefusedError
from leafcuttr_spark.pipelines.operations import Apply, PythonFunction, Sql
from leafcuttr_spark.running.compiling import Compiler, StepContext
from leafcuttr_spark.running.paths import found_by_path
from leafcuttr_spark.running.rows import (
    ERROR,
    can_fail,
    chosen,
    column,
    failed,
    hidden_columns,
    is_good,
    user_columns,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_RESULT: Final = "_lc_result"
_SELECT: Final = re.compile(r"\s*select\s(?!\s*(?:distinct|all)\b)", re.IGNORECASE)


class FunctionError(Exception):
    """A function of one record raised, and there are no dead letters."""


# SQL


def compile_sql(operation: Sql, frames: "Sequence[DataFrame]", context: StepContext) -> "DataFrame":
    """The frames are views for as long as the query is analysed."""
    good = [context.good(frame) for frame in frames]
    query = operation.query
    if len(good) == 1 and _keeps_rows(query):
        query = _with_columns(query, hidden_columns(good[0]))
    for name, frame in zip(operation.frames, good, strict=True):
        frame.createOrReplaceTempView(name)
    try:
        return context.spark.sql(query)
    except AnalysisException:
        if query == operation.query:
            raise
        # It may have an aggregate that Spark alone knows as one. What else is wrong is wrong without them too.
        return context.spark.sql(operation.query)
    finally:
        for name in operation.frames:
            context.spark.catalog.dropTempView(name)


def _keeps_rows(query: str) -> bool:
    """Whether each row of the result is one row of the one frame, and its columns are named: `*` has the hidden ones
    already."""
    from sqlglot import exp

    try:
        tree = parsed(query)
    except (SqlError, UnreadableSqlError):
        return False
    others = (
        "group",
        "having",
        "distinct",
        "joins",
        "laterals",
        "with_",
        "with",
        "limit",
        "order",
        "windows",
    )
    if not isinstance(tree, exp.Select) or any(tree.args.get(name) for name in others):
        return False
    never = (exp.Star, exp.AggFunc, exp.Window, exp.Subquery, exp.UDTF, exp.Explode)
    return _SELECT.match(query) is not None and not any(True for _ in tree.find_all(*never))


def _with_columns(query: str, names: Iterable[str]) -> str:
    found = _SELECT.match(query)
    assert found is not None
    return found[0] + "".join(f"{name}, " for name in names) + query[found.end() :]


# Functions of frames


def compile_function(
    operation: PythonFunction, frames: "Sequence[DataFrame]", context: StepContext
) -> "DataFrame":
    (frame,) = frames
    function = found_by_path(operation.function, context.pipeline.folder)
    if operation.per == "record":
        return _record_by_record(frame, operation, context)
    made = function(context.good(frame), **operation.arguments)
    return _checked(made, operation.function, operation.columns, context)


def compile_apply(operation: Apply, frames: "Sequence[DataFrame]", context: StepContext) -> "DataFrame":
    (frame,) = frames
    name = getattr(operation.function, "__name__", "the function")
    return _checked(operation.function(context.good(frame)), name, operation.columns, context)


def _checked(made: Any, name: str, columns: str | None, context: StepContext) -> "DataFrame":
    """Raises PipelineError for what is no frame, or has other columns than was said."""
    if not hasattr(made, "isStreaming") or not hasattr(made, "columns"):
        raise PipelineRefusedError(
            f"{name} gave {type(made).__name__}, and has to give a DataFrame", context.part
        )
    frame: DataFrame = made
    if columns is None:
        return frame
    found = {name: frame.schema[name].dataType.simpleString() for name in user_columns(frame)}
    said = {each.name: each.dataType.simpleString() for each in schema_of(context.spark, columns)}
    if found != said:
        raise PipelineRefusedError(
            f"{name} gave the columns {_ddl(found)}, and columns says {_ddl(said)}", context.part
        )
    return frame


def schema_of(spark: "SparkSession", ddl: str) -> Any:
    """The fields of a text of DDL. Raises what Spark raises."""
    return spark.createDataFrame([], ddl).schema


def _ddl(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


# Functions of records


def _record_by_record(frame: "DataFrame", operation: PythonFunction, context: StepContext) -> "DataFrame":
    """The function runs in Python workers. What it raises is the ERROR of its row."""
    if operation.columns is None:
        raise PipelineRefusedError(
            "per: record needs columns: those of the result with their types", context.part
        )
    fields = schema_of(context.spark, operation.columns)
    kind = f"struct<rows: array<{fields.simpleString()}>, error: string>"
    call = _caller(
        operation.function,
        dict(operation.arguments),
        context.pipeline.folder.absolute(),
        _arrow_type(fields),
        None if context.catches else context.part,
    )
    row = f.struct(*map(column, user_columns(frame)))
    given = f.when(is_good(), row) if can_fail(frame) else row
    called = frame.withColumn(_RESULT, f.arrow_udf(call, kind)(given))
    result = f.col(_RESULT)
    if context.catches:
        problem = f.when(result["error"].isNotNull(), failed(context.part, result["error"]))
        called = called.withColumn(ERROR, f.coalesce(f.col(ERROR), problem) if can_fail(frame) else problem)
        kept = called.where((f.size(result["rows"]) > 0) | ~is_good())
    else:
        kept = called.where(f.size(result["rows"]) > 0)
    one = kept.withColumn(_RESULT, f.explode_outer(result["rows"]))
    return chosen(one, [f.col(_RESULT)[name].alias(name) for name in fields.names])


def _arrow_type(fields: Any) -> pa.StructType:
    from pyspark.sql.pandas.types import to_arrow_type

    found: pa.StructType = to_arrow_type(fields, timezone="UTC")
    return found


def _caller(
    path: str, arguments: Mapping[str, Any], folder: Path, kind: pa.DataType, part: str | None
) -> Callable[[pa.Array], pa.Array]:
    """What a worker does with many rows: the rows of each, or an error; with a `part` it raises FunctionError."""

    def call(rows: pa.Array) -> pa.Array:
        function = partial(found_by_path(path, folder), **arguments)
        made: list[Any] = []
        errors: list[str | None] = []
        for row in _as_python(rows):
            found, error = ([], None) if row is None else _called(function, row, kind)
            if error is not None and part is not None:
                raise FunctionError(f"{part}: {error}")
            made.append(found)
            errors.append(error)
        return pa.StructArray.from_arrays(
            [pa.array(made, pa.list_(kind)), pa.array(errors, pa.string())], names=["rows", "error"]
        )

    return call


def _as_python(rows: pa.Array) -> list[Any]:
    """In place of a row that Python cannot hold, as one with a time behind the year 9999, what it says of that."""
    try:
        return list(rows.to_pylist())
    except Exception:
        return [_one_as_python(row) for row in rows]


def _one_as_python(row: pa.Scalar) -> Any:
    try:
        return row.as_py()
    except Exception as error:
        return error


def _called(function: Callable[[Any], Any], row: Any, kind: pa.DataType) -> tuple[Any, str | None]:
    try:
        if isinstance(row, Exception):
            raise row
        found = function(row)
        whole = [] if found is None else found if isinstance(found, list) else [found]
        pa.array(whole, kind)
    except Exception as error:
        text = " ".join(str(error).split())
        return None, f"{type(error).__name__}: {text}" if text else type(error).__name__
    return whole, None


COMPILERS: Final[Mapping[type[Any], Compiler]] = {
    Sql: compile_sql,
    PythonFunction: compile_function,
    Apply: compile_apply,
}
