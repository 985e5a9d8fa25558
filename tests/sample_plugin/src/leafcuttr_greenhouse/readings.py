"""The validator."""

from leafcuttr_greenhouse.reading import decode
from leafcuttr_sdk import Record, TopicContext


class Readings:
    def __init__(self, context: TopicContext) -> None:
        self._topic = context.topic

    def validate(self, record: Record) -> str | None:
        if record.value is None:
            return None
        try:
            decode(record.value)
        except ValueError as error:
            return f"{self._topic} takes readings only: {error}"
        return None
