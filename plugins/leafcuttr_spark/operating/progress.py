"""What Spark tells of a micro-batch that is done (`StreamingQueryProgress`, as JSON), as far as operators see it."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.options import OptionError
from leafcuttr_spark.source.offsets import positions_of

LATE: Final = "lc.late."
"""The begin of the names of observed metrics that count late rows."""
READ: Final = "lc.read."
"""Of those that count the rows of a source. Spark's own number has rows that only tell the time too."""

Offsets = Mapping[TopicPartition, int]


class SourceProgress(NamedTuple):
    """One source, in the order of the query."""

    read: Offsets
    """Up to where this batch has read; nothing of a source that is not ours."""
    ends: Offsets
    """Up to where it could have read."""


class BatchProgress(NamedTuple):
    """One batch that is done."""

    batch: int
    rows: int
    rows_per_s: float
    seconds: float
    """How long it took."""
    sources: tuple[SourceProgress, ...] = ()
    watermark_ms: int | None = None
    state_rows: int = 0
    state_bytes: int = 0
    late_rows: int = 0

    @property
    def lag(self) -> dict[TopicPartition, int]:
        """Partitions that have records which were not read: how many offsets."""
        found: dict[TopicPartition, int] = {}
        for source in self.sources:
            for partition, end in source.ends.items():
                if (behind := end - source.read.get(partition, 0)) > 0:
                    found[partition] = behind
        return found

    @property
    def knows_lag(self) -> bool:
        """Whether a source has told where its topics end."""
        return any(source.ends for source in self.sources)


def progress_of(text: str) -> BatchProgress:
    """Raises ValueError for what is no progress of Spark's."""
    found = json.loads(text)
    try:
        batch = int(found["batchId"])
    except (TypeError, KeyError):
        raise ValueError("it has no batchId") from None
    observed = found.get("observedMetrics") or {}
    counted = [*_counts(observed, READ)]
    sources = found.get("sources") or ()
    rows = sum(counted)
    if not rows and (not sources or any(map(_has_moved, sources))):
        # The metrics of some plans count nothing. Rows of a batch in which no source moved only tell the time.
        rows = _whole(found.get("numInputRows"))
    seconds = _whole(found.get("batchDuration")) / 1000
    operators = [one for one in found.get("stateOperators") or () if isinstance(one, dict)]
    return BatchProgress(
        batch=batch,
        rows=rows,
        rows_per_s=rows / seconds if seconds else 0.0,
        seconds=seconds,
        sources=tuple(map(_source, sources)),
        watermark_ms=_watermark((found.get("eventTime") or {}).get("watermark")),
        state_rows=sum(_whole(one.get("numRowsTotal")) for one in operators),
        state_bytes=sum(_whole(one.get("memoryUsedBytes")) for one in operators),
        late_rows=sum(_whole(one.get("numRowsDroppedByWatermark")) for one in operators)
        + sum(_counts(observed, LATE)),
    )


def _source(found: Any) -> SourceProgress:
    return SourceProgress(_offsets(found.get("endOffset")), _offsets(found.get("latestOffset")))


def _has_moved(found: Any) -> bool:
    """Whether the batch has read records of this source. In its offsets there is a time too, which moves alone."""
    start, end = found.get("startOffset"), found.get("endOffset")
    return start != end and (not (of_ours := _offsets(end)) or of_ours != _offsets(start))


def _offsets(kept: Any) -> Offsets:
    try:
        return positions_of(json.loads(kept) if isinstance(kept, str) else kept).offsets
    except (OptionError, ValueError, RecursionError):
        return {}


def _counts(observed: Mapping[str, Any], begin: str) -> Iterable[int]:
    for name, row in observed.items():
        if name.startswith(begin) and isinstance(row, dict):
            yield from map(_whole, row.values())


def _watermark(text: Any) -> int | None:
    """Spark's first one is the year 1970."""
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000) or None
    except (TypeError, ValueError, OverflowError):
        return None


def _whole(value: Any) -> int:
    return value if type(value) is int else 0
