"""A condition that has been parsed."""

import time
from typing import Final

from leafcuttr_sdk.conditions.parser import Parser, Test
from leafcuttr_sdk.conditions.values import Decode, Document, RecordFields, RecordValues, utf8_text


class Condition:
    """What `parse` makes of a text. It does not change: threads may share it, and it may be kept for any time."""

    __slots__ = ("_test", "fields", "text")

    def __init__(self, text: str, fields: frozenset[str], test: Test) -> None:
        self.text: Final = text
        """What was parsed."""
        self.fields: Final = fields
        """The fields that it reads: of `key`, `value`, `headers`, `topic`, `partition`, `offset` and `timestamp`."""
        self._test: Final = test

    def matches(
        self, record: RecordFields, decode: Decode = utf8_text, document: Document | None = None
    ) -> bool:
        """Whether it is true for a record. `decode` makes the texts of its key and value, which the condition reads
        once at most. `document` makes what the members of a key or value are taken from, for those who have it already;
        without it the text is read as JSON. Raises what `decode` raises but FormatError, and what `document` raises."""
        return self._test(RecordValues(record, decode, document))

    def __repr__(self) -> str:
        return f"<Condition {self.text}>"


def parse(text: str, *, now_ms: int | None = None) -> Condition:
    """Parse a condition. `now_ms`, milliseconds since the Unix epoch, is what relative times such as `-1h` go back
    from: by default the time of this call, so a condition that is kept does not move with the clock. Raises
    ConditionError."""
    parser = Parser(text, time.time_ns() // 1_000_000 if now_ms is None else now_ms)
    test = parser.parse()
    return Condition(text, frozenset(parser.fields), test)
