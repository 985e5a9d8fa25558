# PySpark is not installed where types are checked.
# pyright: reportMissingImports=false
"""Offsets of a consumer group for what a stream has read, so that its lag shows in every tool for Kafka.

    spark.streams.addListener(GroupOffsets({"kafka.bootstrap.servers": "hub:9092", "kafka.group.id": "sums"}, "sums"))

They are for people and their tools: the stream goes on from its checkpoint, whatever the group says. Each batch's are
committed once the batch is done, which is when listeners are told; the method `commit` of a source comes one batch
late.
"""

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from leafcuttr_sdk.errors import BrokerError, PluginError
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.options import Option, OptionError, Values, sorted_out
from leafcuttr_spark.source.offsets import positions_of
from leafcuttr_spark.spark.peers import peer_of
from leafcuttr_spark.spark.query_listener import QueryListener

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress

LOGGER: Final = logging.getLogger("leafcuttr.spark")

OPTIONS: Final = (
    Option("kafka.bootstrap.servers", "host:port, ...", "", "The cluster that the stream reads."),
    Option("kafka.group.id", "string", "", "The group. No consumer may be a member of it."),
)


class GroupOffsets(QueryListener):
    """For the query of this name, whose sources of ours are all of one cluster. Raises OptionError."""

    def __init__(self, options: Mapping[str, Any], query: str) -> None:
        super().__init__(query)
        known, client = sorted_out(options, OPTIONS)
        values = Values(known, OPTIONS)
        for option in OPTIONS:
            if not values.text(option.name):
                raise OptionError(f"the option {option.name} is missing")
        self._client = {**client, "bootstrap.servers": values.text("kafka.bootstrap.servers")}
        self._group = values.text("kafka.group.id")
        self._committed: dict[TopicPartition, int] = {}

    def progressed(self, progress: "StreamingQueryProgress") -> None:
        read: dict[TopicPartition, int] = {}
        for source in progress.sources:
            read |= _offsets(source.endOffset)
        new = {one: offset for one, offset in read.items() if self._committed.get(one) != offset}
        if not new:
            return
        try:
            peer_of(self._client).commit(
                self._group, {one: CommittedOffset(offset) for one, offset in new.items()}
            )
        except (BrokerError, PluginError) as error:
            # The next batch commits them too.
            LOGGER.warning(
                "the offsets of query %s are not committed to group %s: %s", self._query, self._group, error
            )
        else:
            self._committed |= new


def _offsets(kept: str | None) -> Mapping[TopicPartition, int]:
    """None for a source that is not ours."""
    try:
        return positions_of(json.loads(kept or "null")).offsets
    except (ValueError, RecursionError):
        return {}
