"""Where the records of `perf produce` come from. All but the numbers are made before the clock starts."""

import string
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import click

from leafcuttr.cli.common.records.input_lines import unescaped
from leafcuttr.cli.common.records.making import USUAL_BYTES, USUAL_RECORDS, records_made

if TYPE_CHECKING:
    from leafcuttr_sdk.records import Record

QueueRecord = Callable[[int], None]
"""Queues the record of that number. Raises BufferError while there is no space."""
RecordSource = Callable[[Any, str, Any], QueueRecord]
"""Makes it, of the client's `produce`, the topic and the callback."""


def source_of(given: dict[str, Any]) -> RecordSource:
    """Where records come from. Raises click.UsageError."""
    if given["payload_monotonic"]:
        return _numbers
    random = Random(given["seed"])
    if given["value_format"] is not None:
        settings, seed, distinct = given["format_settings"], given["seed"], given["distinct"]
        made = records_made(
            given["value_format"], settings, given["topic"], seed, given["num_records"], distinct
        )
        return _records_in_turn(made)
    if given["payload_file"] is not None:
        delimiter = unescaped(given["payload_delimiter"])
        if not delimiter:
            raise click.UsageError("--payload-delimiter: expected at least one character")
        found = [one for one in given["payload_file"].read_bytes().split(delimiter) if one]
        if not found:
            raise click.UsageError(f"{given['payload_file']}: no records in it")
        return _values_in_turn(random.choices(found, k=max(len(found), USUAL_RECORDS)))
    size = given["record_size"]
    letters = string.ascii_uppercase.encode()
    count = max(1, min(USUAL_RECORDS, USUAL_BYTES // size))
    return _values_in_turn([bytes(random.choices(letters, k=size)) for _ in range(count)])


def _numbers(produce: Any, topic: str, delivered: Any) -> QueueRecord:
    return lambda number: produce(topic, b"%d" % number, on_delivery=delivered)


def _values_in_turn(values: Sequence[bytes]) -> RecordSource:
    def source(produce: Any, topic: str, delivered: Any) -> QueueRecord:
        length = len(values)
        return lambda number: produce(topic, values[number % length], on_delivery=delivered)

    return source


def _records_in_turn(records: "Sequence[Record]") -> RecordSource:
    def source(produce: Any, topic: str, delivered: Any) -> QueueRecord:
        # To the client a timestamp of 0 means the current time.
        ready = [
            (value, key, list(headers) or None, timestamp or 0) for value, key, headers, timestamp in records
        ]
        length = len(ready)

        def queue(number: int) -> None:
            value, key, headers, timestamp = ready[number % length]
            produce(topic, value, key, headers=headers, timestamp=timestamp, on_delivery=delivered)

        return queue

    return source
