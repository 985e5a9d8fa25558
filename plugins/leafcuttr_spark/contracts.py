# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false
"""What a sink of a pipeline in Python has to be: `Sink`. `leafcuttr_spark.testing.check_sink` tests a class against it.

class Table:
    def __init__(self, url: str) -> None: ...

    def write(self, rows: DataFrame, batch: SinkBatch) -> None:
        ...  # replaces what it has of this batch

sinks:
  table: {from: totals, python: {class: mypackage.sinks:Table, arguments: {url: ...}}}
"""

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SinkBatch(NamedTuple):
    """Which batch it is. The same one comes again after a failure, with the same rows, in any order."""

    query: str
    """The id in the pipeline's checkpoint. Another checkpoint is another query, whose batches are others."""
    number: int
    """From 0 on; one is skipped only where it has no rows for the sink."""


class Sink(Protocol):
    """Where a pipeline writes rows. It is made once in the driver, with its arguments, when the pipeline starts.

    `write` is called once for each batch, before the records of topics are committed: what it raises fails the batch,
    which comes again. It may come again after `write` has returned as well. So each row is there once only if `write`
    replaces what an earlier call for the same batch has written: by a table that has the batch as a part of its key, a
    folder for each batch, or a transaction that remembers the last batch.

    A sink may have a method `close`, which is called when the pipeline stops.
    """

    def write(self, rows: "DataFrame", batch: SinkBatch) -> None:
        """Write all rows. They are computed already: to go through them more than once costs little."""
        ...
