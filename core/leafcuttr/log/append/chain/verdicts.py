"""What of a changed record, and of a dead letter, can be stored. Log lines give types only: what records hold does not
belong there."""

from typing import Any

from leafcuttr.log.append.rules import LONG_MAX
from leafcuttr_sdk._described import kind_of
from leafcuttr_sdk.filters import DeadLetter
from leafcuttr_sdk.records import Record


def fault_of(record: Record, before: Record, base_timestamp: int) -> str | None:
    """What of a changed record cannot be stored, if anything. `before` is the record that the filter got."""
    fields: tuple[Any, ...] = record  # of any type: a filter has made it
    value, key, headers, timestamp = fields
    if value is not None and not isinstance(value, bytes):
        return f"a value that is {kind_of(value)}, neither bytes nor None"
    if key is not None and not isinstance(key, bytes):
        return f"a key that is {kind_of(key)}, neither bytes nor None"
    if type(timestamp) is not int or (
        timestamp != before.timestamp and not 0 <= timestamp <= min(LONG_MAX, base_timestamp + LONG_MAX)
    ):
        return f"a timestamp that is {kind_of(timestamp)}, not milliseconds since 1970"
    if headers is before.headers:
        return None
    if not isinstance(headers, tuple):
        return f"headers that are {kind_of(headers)}, not a tuple of pairs"
    for header in headers:
        if not (isinstance(header, tuple) and len(header) == 2):
            return f"a header that is {kind_of(header)}, not a pair of name and value"
        name, content = header
        if not isinstance(name, str) or not (content is None or isinstance(content, bytes)):
            return f"a header that is {kind_of(header)}, not a text and bytes or None"
        try:
            name.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return f"a header name that is no Unicode: {name!a}"
    return None


def letter_fault(verdict: DeadLetter, before: Record, base_timestamp: int) -> str | None:
    """What of a verdict is no dead letter, if anything. `before` is the record that the filter got."""
    fields: tuple[Any, ...] = verdict
    reason, topic, record, _ = fields
    if not isinstance(reason, str) or not isinstance(topic, str | None):
        return f"its verdict is {kind_of(verdict)}, whose reason or topic is no text"
    if record is None or record is before:
        return None
    if not isinstance(record, Record):
        return f"its verdict is {kind_of(verdict)} with a record that is {kind_of(record)}"
    fault = fault_of(carried(verdict, before), before, base_timestamp)
    return None if fault is None else f"the record of its dead letter has {fault}"


def carried(verdict: DeadLetter, before: Record) -> Record:
    """The record that the dead letter carries."""
    record = verdict.record
    if record is None:
        return before
    return record if record.timestamp is not None else record._replace(timestamp=before.timestamp)
