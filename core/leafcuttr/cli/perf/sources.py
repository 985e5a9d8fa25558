"""Where the records of `perf produce` come from. All but the numbers are made before the clock starts."""

import os
import string
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Final

import click

from leafcuttr.cli.common.records.input_lines import unescaped
from leafcuttr.cli.common.records.making import USUAL_BYTES, USUAL_RECORDS, records_made

if TYPE_CHECKING:
    from leafcuttr_sdk.records import Record

EVOLVING: Final = "avro"
"""The format whose schema evolves unless another one is named."""
REGISTRY_VARIABLE: Final = "LEAFCUTTR_SCHEMA_REGISTRY_URL"
_REGISTRY_PORT: Final = 8081
_A_GENERATION: Final = 256
"""Records of one schema; they are made while others are sent."""

QueueRecord = Callable[[int], None]
"""Queues the record of that number. Raises BufferError while there is no space."""
RecordSource = Callable[[Any, str, Any], QueueRecord]
"""Makes it, of the client's `produce`, the topic and the callback."""


def source_of(given: dict[str, Any], address: str) -> RecordSource:
    """Where records come from. `address` is that of the broker. Raises click.UsageError."""
    if given["schema_evolution_interval"] is not None:
        return Evolution(given, address).source
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


class Evolution:
    """Records of a format that makes them by a schema, anew after every so many, with its option `generation` one
    higher: it then registers another version of the schema, which is part of what is measured."""

    def __init__(self, given: dict[str, Any], address: str) -> None:
        self._name = given["value_format"] or EVOLVING
        self._topic = given["topic"]
        self._seed = given["seed"]
        self._interval = given["schema_evolution_interval"]
        self._distinct = given["distinct"] or _A_GENERATION
        settings = dict(each.partition("=")[::2] for each in given["format_settings"])
        if given["record_size"] is not None:
            settings.setdefault("size", str(given["record_size"]))
        if REGISTRY_VARIABLE not in os.environ:
            settings.setdefault("registry", f"http://{_host(address)}:{_REGISTRY_PORT}")
        self._settings = settings
        self._first = self._made(0)

    def source(self, produce: Any, topic: str, delivered: Any) -> QueueRecord:
        queue, due = _records_in_turn(self._first)(produce, topic, delivered), self._interval

        def queue_or_evolve(number: int) -> None:
            nonlocal queue, due
            if number >= due:
                queue = _records_in_turn(self._made(number // self._interval))(produce, topic, delivered)
                due = number + self._interval
            queue(number)

        return queue_or_evolve

    def _made(self, generation: int) -> "list[Record]":
        settings = [f"{name}={value}" for name, value in {**self._settings, "generation": generation}.items()]
        return records_made(
            self._name, settings, self._topic, self._seed + generation, self._distinct, self._distinct
        )


def _host(address: str) -> str:
    """Of the first bootstrap server, which may have a protocol before it, as librdkafka takes it, and needs no port."""
    first = address.split(",")[0].strip().rpartition("://")[2]
    host, colon, port = first.rpartition(":")
    if not colon or not port.isdecimal():
        host = first
    return host or "localhost"


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
