"""`rate`: so many records in a time, of the topic or of each key.

A bucket of tokens: it holds as many as may pass, is full at first, and fills evenly over the time. Of keys there is a
bucket for each of those that were seen last; one that has been forgotten is full again.
"""

from collections.abc import Mapping
from typing import Any

from leafcuttr_filters.selecting.excess import verdict_on_excess
from leafcuttr_sdk.filters import TopicContext, Verdict
from leafcuttr_sdk.records import Record


def make_rate(context: TopicContext, values: Mapping[str, Any]) -> "Rate":
    return Rate(context, values)


class Rate:
    def __init__(self, context: TopicContext, values: Mapping[str, Any]) -> None:
        self._most = float(values["records"])
        self._per_second = self._most / (values["per"] / 1000)
        self._by_key = values["by"] == "key"
        self._keys: int = values["keys"]
        self._now = context.clock.monotonic
        self._buckets: dict[bytes | None, tuple[float, float]] = {}  # tokens, and when; seen last comes last
        self._excess = verdict_on_excess(
            values["over"], f"rate: more than {values['records']} records in {values['per']} ms"
        )

    def filter(self, record: Record) -> Verdict:
        key = record.key if self._by_key else None
        now, buckets = self._now(), self._buckets
        bucket = buckets.pop(key, None)
        if bucket is None:
            tokens = self._most
            if len(buckets) >= self._keys:
                del buckets[next(iter(buckets))]
        else:
            tokens = min(self._most, bucket[0] + (now - bucket[1]) * self._per_second)
        passes = tokens >= 1
        buckets[key] = (tokens - 1 if passes else tokens, now)
        return record if passes else self._excess
