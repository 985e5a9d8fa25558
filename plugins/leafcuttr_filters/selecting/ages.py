"""`age`: records whose timestamp is too old, or too far in the future. One without a timestamp passes."""

from collections.abc import Mapping
from math import inf
from typing import Any

from leafcuttr_filters.making import Judge
from leafcuttr_filters.selecting.excess import verdict_on_excess
from leafcuttr_sdk.filters import TopicContext, Verdict
from leafcuttr_sdk.records import Record


def make_age(context: TopicContext, values: Mapping[str, Any]) -> Judge:
    now_ms = context.clock.now_ms
    oldest = inf if values["max"] is None else values["max"]
    ahead = inf if values["ahead"] is None else values["ahead"]
    late = verdict_on_excess(values["over"], f"age: it is older than {values['max']} ms")
    early = verdict_on_excess(values["over"], f"age: it is more than {values['ahead']} ms ahead")

    def age(record: Record) -> Verdict:
        timestamp = record.timestamp
        if timestamp is None or timestamp < 0:
            return record
        old = now_ms() - timestamp
        if old > oldest:
            return late
        return early if -old > ahead else record

    return age
