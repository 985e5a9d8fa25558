# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false, reportCallIssue=false, reportArgumentType=false
"""A frame that is used more than once and computed once.

A plan that names a frame twice reads its sources twice, unless both have the same exchange: Spark then makes its
shuffle files once and reads them twice (ReuseExchange). The exchange here moves no row between tasks' files: task n of
the frame is partition n, so the order within a partition of a topic stays. Above it stands what the optimizer neither
prunes columns nor pushes filters through, as these would make the exchanges differ: a struct of all columns that is not
deterministic. With `SETTINGS` it does not prune inside of the struct either.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from leafcuttr_spark.running.rows import column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SETTINGS: Final[Mapping[str, str]] = {
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
    "spark.sql.optimizer.expression.nestedPruning.enabled": "false",
    # ReuseExchange of plans that are adaptive is another one.
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
    # It would take what two expressions have in common out of the TryEval around each.
    "spark.sql.subexpressionElimination.enabled": "false",
}
"""Of the session in which the query is started."""

_ROW: Final = "_lc_row"
_BARRIER: Final = "_lc_barrier"


def shared(frame: "DataFrame", tasks: int) -> "DataFrame":
    """The same rows, for any number of uses. `tasks` is about how many tasks the frame has."""
    exchanged = frame.repartitionById(tasks, f.spark_partition_id())
    rows = exchanged.select(
        f.struct(*map(column, frame.columns), f.spark_partition_id().alias(_BARRIER)).alias(_ROW)
    )
    # A column with a watermark is known by its metadata. To set the watermark once more would hold it back: this place
    # does not see the rows by which a source without records moves it.
    return rows.select(
        *(f.col(_ROW)[each.name].alias(each.name, metadata=each.metadata) for each in frame.schema)
    )
