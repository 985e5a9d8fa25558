"""The validator. It looks at the beginning of each value only, and no records are made for it."""

from collections.abc import Mapping

from leafcuttr_greenhouse.reading import BYTES
from leafcuttr_sdk import NotReady, PeekedBatch, TopicContext


class Readings:
    def __init__(self, context: TopicContext) -> None:
        self._refusal = f"{context.topic} takes readings only: one has {BYTES} bytes"

    def validate_batch(self, batch: PeekedBatch) -> Mapping[int, str | NotReady]:
        return {
            index: self._refusal
            for index, value in enumerate(batch.values)
            if value is not None and len(value) != BYTES
        }
