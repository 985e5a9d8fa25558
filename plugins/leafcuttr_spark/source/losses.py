"""What is missing between the offsets of two batches, and what becomes of it: topics that were deleted, or deleted and
created anew, partitions that were truncated, and records that were deleted before they were read. Without I/O.

With `failOnDataLoss` the query fails at the first of them. Otherwise a line says what is missing, and the query goes on
with what there is. It cannot always be told whether records are missing; then it is said that they may be.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.source.offsets import Positions

LOGGER: Final = logging.getLogger("leafcuttr.spark")


class DataLossError(PluginError):
    """Records are missing that the query has not read."""


class Span(NamedTuple):
    """Offsets to read of one partition: from `first` on, before `end`."""

    partition: TopicPartition
    first: int
    end: int


Report = Callable[[str], None]


def reporter(fails: bool) -> Report:
    """What is done about a loss."""
    return _fail if fails else _say


def _fail(loss: str) -> None:
    raise DataLossError(f"{loss}; failOnDataLoss=false goes on with what there is")


def _say(loss: str) -> None:
    LOGGER.warning("%s; the query goes on with what there is", loss)


def next_positions(
    start: Positions, now: Positions, begins: Mapping[TopicPartition, int], report: Report
) -> Positions:
    """Where the stream goes on reading: `start` without what is gone, with the partitions that are new. `now` are the
    ends of all partitions, `begins` where they begin.
    """
    anew = recreated(start, now)
    for topic in sorted(anew):
        report(
            f"the topic {topic} was deleted and created anew since the last batch: what was not read of it is gone"
        )
    gone = [one for one in start.offsets if one not in now.offsets]
    if gone:
        report(f"{names_of(gone)} do not exist any more: what was not read of them is gone")
    offsets: dict[TopicPartition, int] = {}
    for one, end in now.offsets.items():
        begin = begins.get(one, 0)
        known = start.offsets.get(one) if one.topic not in anew else None
        if known is None:
            if begin > 0:
                report(f"{one} is new, and begins at offset {begin}: earlier records of it may be gone")
            offsets[one] = begin
        elif known > end:
            report(f"{one} ends at offset {end}, and the query has read it up to {known}: it was truncated")
            offsets[one] = end
        elif known < begin:
            report(
                f"{one} begins at offset {begin}, and the query has read it up to {known}: records are gone"
            )
            offsets[one] = begin
        else:
            offsets[one] = known
    return Positions(offsets, now.topic_ids)


def spans_between(
    start: Positions,
    end: Positions,
    begins: Mapping[TopicPartition, int],
    topic_ids: Mapping[str, str],
    report: Report,
) -> list[Span]:
    """What one batch reads, whose offsets Spark has decided on. `begins` are of the partitions that are still there,
    `topic_ids` of their topics. The same offsets give the same spans, but for what is gone meanwhile."""
    anew = recreated(start, end)
    over = recreated(end, Positions({}, topic_ids))
    for topic in sorted(over):
        report(f"the topic {topic} was deleted and created anew: what this batch was to read of it is gone")
    spans = []
    for one in sorted(end.offsets):
        if one.topic in over:
            continue
        until = end.offsets[one]
        begin = begins.get(one)
        known = start.offsets.get(one) if one.topic not in anew else None
        if begin is None:
            if known != until:
                report(f"{one} does not exist any more: offsets up to {until} cannot be read")
            continue
        first = begin if known is None else known
        if first < begin:
            report(f"{one} begins at offset {begin}: offsets from {first} on cannot be read any more")
            first = begin
        if first < until:
            spans.append(Span(one, first, until))
    return spans


def recreated(before: Positions, after: Positions) -> set[str]:
    """The topics of both that are not the same topics."""
    return {
        topic
        for topic, found in after.topic_ids.items()
        if (known := before.topic_ids.get(topic)) is not None and known != found
    }


def names_of(partitions: Iterable[TopicPartition]) -> str:
    """At most ten of them."""
    found = [str(one) for one in sorted(partitions)]
    return ", ".join(found[:10]) + (f" and {len(found) - 10} more" if len(found) > 10 else "")
