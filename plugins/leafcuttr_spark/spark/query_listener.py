# ruff: noqa: N802 - PySpark calls methods by these names
# It is not installed where types are checked.
# mypy: disable-error-code="misc"
# pyright: reportMissingImports=false
"""A listener to the progress of one query: what the listeners of this package have in common."""

from abc import abstractmethod
from typing import TYPE_CHECKING

from pyspark.sql.streaming.listener import StreamingQueryListener

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )


class QueryListener(StreamingQueryListener):
    """For the query of this name; a session tells its listeners of all of its queries."""

    def __init__(self, query: str) -> None:
        self._query = query

    @abstractmethod
    def progressed(self, progress: "StreamingQueryProgress") -> None:
        """A batch of the query is done. Called in a thread of its own."""

    def onQueryProgress(self, event: "QueryProgressEvent") -> None:
        if event.progress.name == self._query:
            self.progressed(event.progress)

    def onQueryStarted(self, event: "QueryStartedEvent") -> None:
        pass

    def onQueryIdle(self, event: "QueryIdleEvent") -> None:
        pass

    def onQueryTerminated(self, event: "QueryTerminatedEvent") -> None:
        pass
