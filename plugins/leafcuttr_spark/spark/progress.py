# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false
"""Tells what Spark says of the batches of one query, with and without Spark Connect."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from leafcuttr_spark.operating.progress import BatchProgress, progress_of
from leafcuttr_spark.spark.query_listener import QueryListener

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress

LOGGER: Final = logging.getLogger("leafcuttr.spark")


class ProgressListener(QueryListener):
    """Calls `told` for each batch of the query of this name that is done, in a thread of its own."""

    def __init__(self, query: str, told: Callable[[BatchProgress], None]) -> None:
        super().__init__(query)
        self._told = told

    def progressed(self, progress: "StreamingQueryProgress") -> None:
        try:
            self._told(progress_of(progress.json))
        except ValueError as error:
            LOGGER.warning("the progress of query %s cannot be read: %s", self._query, error)
