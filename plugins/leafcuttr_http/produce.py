"""Producing: from the text of a body to records in the log, and to the answer.

A request is read whole before anything of it is stored; it is wrong as a whole, or right. What the broker says of its
records then stands in the answer, one by one.
"""

import json
from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Final

import trio

from leafcuttr_http import envelope
from leafcuttr_http.errors import ApiError, code_of, describe, no_partition, of_topic
from leafcuttr_http.idempotency import Answer
from leafcuttr_http.proxy import Proxy
from leafcuttr_http.records import Format, convert
from leafcuttr_sdk.errors import BrokerError, ErrorCode
from leafcuttr_sdk.records import Produced, Record

Result = Produced | BrokerError
Records = tuple[list[Record], list[int | None]]

_PIECE: Final = 1000
"""Records that the broker gets at once."""
_TURN_S: Final = 0.002
"""How long the loop is kept before others get their turn."""


async def produce(
    proxy: Proxy, topic: str, partition: int | None, body: bytes, format: Format
) -> tuple[Answer, int]:
    """Store the records of a body; the answer, and how many are stored. Raises ApiError where nothing is."""
    text = envelope.decode(body)
    if len(text) <= min(envelope.AT_ONCE, proxy.limits.record_bytes):
        records = _convert_all(envelope.at_once(text), format, partition)
    else:
        records = await _convert_in_turns(
            envelope.in_steps(text, proxy.limits.record_bytes), format, partition
        )
    if partition is not None:
        await check_partition(proxy, topic, partition)
    results = await store(proxy, topic, records)
    return await answer_of(results)


async def store(proxy: Proxy, topic: str, records: Records) -> list[Result]:
    """Append the records; an answer for each. Raises ApiError where the topic as such is at fault."""
    rows, partitions = records
    results: list[Result] = []
    try:
        if len(rows) <= _PIECE:
            return await proxy.acting.produce_batch(topic, rows, partitions=partitions)
        for start in range(0, len(rows), _PIECE):
            end = start + _PIECE
            results += await proxy.acting.produce_batch(
                topic, rows[start:end], partitions=partitions[start:end]
            )
    except BrokerError as error:
        if results:
            # The topic went while its records came: those that were stored have their answers, so have the others.
            return results + [error] * (len(rows) - len(results))
        raise of_topic(error, topic) from None
    return results


async def check_partition(proxy: Proxy, topic: str, partition: int) -> None:
    """Raises ApiError 40402 for one that the topic has not."""
    topics = proxy.acting.topics
    count = topics.partition_count(topic)
    if not count:
        try:
            count = len((await topics.ensure(topic)).partitions)
        except BrokerError as error:
            raise of_topic(error, topic) from None
    if partition >= count:
        raise no_partition(topic, partition)


def _convert_all(raws: Iterable[object], format: Format, partition: int | None) -> Records:
    records: list[Record] = []
    partitions: list[int | None] = []
    for raw in raws:
        add_converted(raw, format, partition, records, partitions)
    return records, partitions


async def _convert_in_turns(raws: Iterable[object], format: Format, partition: int | None) -> Records:
    records: list[Record] = []
    partitions: list[int | None] = []
    turn = perf_counter() + _TURN_S
    for raw in raws:
        # Between parsing and converting too: each may take long for a large record.
        if perf_counter() > turn:
            await trio.lowlevel.checkpoint()
            turn = perf_counter() + _TURN_S
        add_converted(raw, format, partition, records, partitions)
        if perf_counter() > turn:
            await trio.lowlevel.checkpoint()
            turn = perf_counter() + _TURN_S
    return records, partitions


def add_converted(
    raw: object,
    format: Format,
    partition: int | None,
    records: list[Record],
    partitions: list[int | None],
) -> None:
    """One record more. Raises ApiError, which names it."""
    try:
        record, own = convert(raw, format)
    except ApiError as error:
        raise ApiError(error.code, f"Record {len(records)}: {error}.") from None
    if partition is not None:
        if own is not None and own != partition:
            raise ApiError(42206, f"Record {len(records)}: partition {own} is not the one of the path.")
        own = partition
    records.append(record)
    partitions.append(own)


async def answer_of(
    results: Sequence[Result], *, value_id: int | None = None, key_id: int | None = None
) -> tuple[Answer, int]:
    """The answer to a request, with the ids of its schemas, and how many records are stored."""
    stored = 0
    parts = []
    for index, result in enumerate(results):
        if isinstance(result, Produced):
            stored += 1
        parts.append(render(result))
        if index % 1000 == 999:
            await trio.lowlevel.checkpoint()
    ids = f'"value_schema_id":{json.dumps(value_id)},"key_schema_id":{json.dumps(key_id)}'
    body = f'{{"offsets":[{",".join(parts)}],{ids}}}'
    return Answer(200, body.encode(), final=stored > 0), stored


def render(result: Result) -> str:
    """One record's part of the answer."""
    if isinstance(result, Produced):
        return f'{{"partition":{result.partition},"offset":{result.offset},"error_code":null,"error":null}}'
    code = 40402 if result.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else code_of(result)
    return render_error(code, describe(result))


def render_error(code: int, message: str) -> str:
    return f'{{"partition":null,"offset":null,"error_code":{code},"error":{json.dumps(message)}}}'
