# ruff: noqa: N802 - PySpark calls methods by these names
# It is not installed where types are checked.
# mypy: disable-error-code="misc"
# pyright: reportMissingImports=false
"""Tells what Spark says of the batches of one query, with and without Spark Connect."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from leafcuttr_spark.operating.progress import BatchProgress, progress_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

LOGGER: Final = logging.getLogger("leafcuttr.spark")


class ProgressListener(StreamingQueryListener):
    """Calls `told` for each batch of the query of this name that is done, in a thread of its own."""

    def __init__(self, query: str, told: Callable[[BatchProgress], None]) -> None:
        self._query = query
        self._told = told

    def onQueryProgress(self, event: "QueryProgressEvent") -> None:
        if event.progress.name != self._query:
            return
        try:
            self._told(progress_of(event.progress.json))
        except ValueError as error:
            LOGGER.warning("the progress of query %s cannot be read: %s", self._query, error)

    def onQueryStarted(self, event: "QueryStartedEvent") -> None:
        pass

    def onQueryIdle(self, event: "QueryIdleEvent") -> None:
        pass

    def onQueryTerminated(self, event: "QueryTerminatedEvent") -> None:
        pass
