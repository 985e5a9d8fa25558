# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""Expressions whose failure makes a dead letter of the row, and does not fail the batch.

Spark has `TryEval`, an expression around another one that is null where that one raises; its functions `try_...` are
made of it. Around a struct, which is never null itself, it tells failed from null. It is reached through the JVM: with
Spark Connect, and without a topic for dead letters, expressions are used as they are, and the first that raises stops
the pipeline. Rows that had an error before become dead letters with Spark Connect too.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import functions as f

from leafcuttr_spark.running.rows import ERROR, RECORD, can_fail, failed, is_good, record_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TRIED: Final = "_lc_tried"
_NAME: Final = re.compile(
    r"\s*(?:[A-Za-z_][A-Za-z0-9_]*|`[^`]+`)(?:\.(?:[A-Za-z_][A-Za-z0-9_]*|`[^`]+`))*\s*"
)


class Expression(NamedTuple):
    """A value of a row, and what it is to a reader of the reason."""

    column: "Column"
    text: str
    is_safe: bool = False
    """Whether it cannot raise."""
    part: str | None = None
    """Which part of the pipeline it is of, if not that of the others."""
    problem: "Column | None" = None
    """A line where the value is null because none can be made of the row; null for all others."""

    @property
    def raising(self) -> "Column":
        """The value, which raises its problem."""
        if self.problem is None:
            return self.column
        return f.when(self.problem.isNotNull(), f.raise_error(self.problem)).otherwise(self.column)


def expression(text: str) -> Expression:
    """Of Spark SQL. Raises pyspark's ParseException. A name cannot fail."""
    return Expression(f.expr(text), text, is_safe=_NAME.fullmatch(text) is not None)


class Attempted(NamedTuple):
    """A frame, and the values of its good rows."""

    frame: "DataFrame"
    values: "Sequence[Column]"


def attempted(frame: "DataFrame", part: str, values: Sequence[Expression], *, catches: bool) -> Attempted:
    """The values of these expressions, null in rows with an error, which those that fail get here. The frame has a
    column more, which `rows.chosen` leaves out."""
    tries = can_try(frame.sparkSession)
    risky = [number for number, each in enumerate(values) if not each.is_safe] if tries else []
    told = [each for each in values if each.problem is not None]
    if not catches or not (risky or told):
        raising = [each.raising for each in values]
        is_guarded = catches and not tries and can_fail(frame)
        return Attempted(frame, _of_good(raising) if is_guarded else raising)
    fields = [_try(f.struct(values[number].column.alias("value"))).alias(f"f{number}") for number in risky]
    tried = f.struct(*fields) if fields else f.struct(f.lit(True).alias("nothing"))
    if can_fail(frame):
        tried = f.when(is_good(), tried)
    with_values = frame.withColumn(_TRIED, tried)
    problems = [
        f.when(each.problem.isNotNull(), failed(each.part or part, each.problem))
        for each in told
        if each.problem is not None
    ]
    problems += [
        f.when(
            f.col(_TRIED)[f"f{number}"].isNull(), failed(values[number].part or part, _reason(values[number]))
        )
        for number in risky
    ]
    error = f.when(f.col(_TRIED).isNotNull(), f.coalesce(*problems))
    if can_fail(frame):
        error = f.coalesce(f.col(ERROR), error)
    with_errors = with_values.withColumn(ERROR, error)
    if RECORD not in frame.columns:
        # Of good rows no one needs it.
        with_errors = with_errors.withColumn(RECORD, f.when(f.col(ERROR).isNotNull(), record_of(frame)))
    results = [
        f.col(_TRIED)[f"f{number}"]["value"] if number in risky else each.column
        for number, each in enumerate(values)
    ]
    return Attempted(with_errors, results if tries else _of_good(results))


def _of_good(values: "Sequence[Column]") -> "list[Column]":
    """What may raise is not evaluated for a row with an error."""
    return [f.when(is_good(), each) for each in values]


def _reason(value: Expression) -> str:
    return f"this failed: {value.text}"


def can_try(spark: Any) -> bool:
    """Whether failures of expressions can be caught in this session."""
    return hasattr(spark, "_jvm")


def _try(column: "Column") -> "Column":
    from pyspark.sql.classic.column import Column as Classic
    from pyspark.sql.classic.column import _to_java_column
    from pyspark.sql.session import SparkSession

    session = SparkSession.getActiveSession()
    assert session is not None
    virtual: Any = session._jvm
    convert = virtual.org.apache.spark.sql.classic.ExpressionUtils
    inner = convert.expression(_to_java_column(column))
    return Classic(convert.column(virtual.org.apache.spark.sql.catalyst.expressions.TryEval(inner)))


def named(values: Mapping[str, str]) -> dict[str, Expression]:
    """Expressions by the names of their columns, which a reason says too."""
    found = {name: expression(text) for name, text in values.items()}
    return {name: each._replace(text=f"{name}: {each.text}") for name, each in found.items()}
