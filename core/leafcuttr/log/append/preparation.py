"""What some topics need beyond the checks that all have: their chain of validators and filters runs over every record
(`chain`), then their settings change the batch (`conversion`). Both take batches apart.

What takes more than a moment is not done on the event loop: LongWork is raised, and carries what a worker thread has to
do. `stage` is called again with what came of it.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from leafcuttr.errors import BrokerError, MessageTooLarge
from leafcuttr.log.append.rules import AppendRules
from leafcuttr.runtime.limiters import decode_limiter, filter_limiter
from leafcuttr.wire.batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    COUNT_AT,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    BatchHeader,
    unpack,
)

if TYPE_CHECKING:
    from leafcuttr.log.append.chain.chain import Chain, ChainResult
    from leafcuttr.log.state import LogState

# What a batch to be converted may hold, as it comes and decompressed, for it to be done on the loop: about a
# millisecond's work (0.7 us a record; gzip makes 15 MB/s).
_CONVERTED_AT_ONCE: Final = 16 * 1024
_INSPECTED_AT_ONCE: Final = 64 * 1024
_RECORDS_AT_ONCE: Final = 500
_HEADERS_AT_ONCE: Final = 2_000


class Prepared(NamedTuple):
    """What a worker has made of a batch for this log: its CRC is right, and it is converted if that was due. If the
    topic had a chain, that has run, with this result."""

    log: "LogState"
    converted: memoryview | bytearray | None
    chain: "Chain | None" = None
    result: "ChainResult | None" = None


class Work(NamedTuple):
    """What takes long. `do` may be called in any thread, and raises as `stage` does. Those of one chain
    have a `limiter` in common: they wait for each other anyway, so only one of them has a thread."""

    do: Callable[[], Prepared]
    limiter: trio.CapacityLimiter | None = None

    async def done(self, *, abandon_on_cancel: bool = False) -> Prepared:
        """Have a worker thread do it."""
        if self.limiter is None:
            return await trio.to_thread.run_sync(
                self.do, limiter=decode_limiter(), abandon_on_cancel=abandon_on_cancel
            )
        async with self.limiter:
            return await trio.to_thread.run_sync(
                self.do, limiter=await filter_limiter(), abandon_on_cancel=abandon_on_cancel
            )


class LongWork(Exception):
    """Not an error: staging the batch takes long. Until `work` is done the batch stays as it is."""

    def __init__(self, do: Callable[[], Prepared], limiter: trio.CapacityLimiter | None = None) -> None:
        super().__init__("a batch needs a worker")
        self.work = Work(do, limiter)


def convert_at_once(
    log: "LogState", batch: memoryview | bytearray, rules: AppendRules, now_ms: int
) -> memoryview | bytearray:
    """The batch as the topic's settings want it. Raises LongWork if that takes more than a moment."""
    from leafcuttr.log.append.conversion import convert
    from leafcuttr.wire.compression import DecompressionLimitError

    limit = _CONVERTED_AT_ONCE if rules.recompresses else _INSPECTED_AT_ONCE
    if rules.sets_header_only and not batch[ATTRIBUTES_AT + 1] & LOG_APPEND_TIME:
        return convert(memoryview(batch), log.config, now_ms, log.topic_partition)
    count = int.from_bytes(batch[COUNT_AT:HEADER_SIZE], "big")
    if count <= _RECORDS_AT_ONCE and len(batch) <= limit:
        try:
            converted = convert(memoryview(batch), log.config, now_ms, log.topic_partition, limit=limit)
        except DecompressionLimitError:
            pass
        else:
            return _fitting(log, batch, converted, rules)
    raise LongWork(partial(_converted, log, batch, rules, now_ms))


def _converted(log: "LogState", batch: memoryview | bytearray, rules: AppendRules, now_ms: int) -> Prepared:
    from leafcuttr.log.append.conversion import convert

    converted = convert(memoryview(batch), log.config, now_ms, log.topic_partition)
    return Prepared(log, _fitting(log, batch, converted, rules))


def run_chain_at_once(
    log: "LogState", chain: "Chain", batch: memoryview | bytearray, rules: AppendRules, now_ms: int
) -> "tuple[memoryview | bytearray, ChainResult]":
    """The batch as the chain lets it through, and then as the topic's settings want it: what they require of records
    holds for those that are stored. Raises LongWork if that takes more than a moment."""
    result = None
    count = int.from_bytes(batch[COUNT_AT:HEADER_SIZE], "big")
    # The time of a look at records does not grow with their bytes, but with their headers.
    any_size = not (chain.takes_apart or batch[ATTRIBUTES_AT + 1] & CODEC_MASK)
    if (
        (any_size or len(batch) <= _INSPECTED_AT_ONCE)
        and chain.is_quick(count)
        and chain.lock.acquire(blocking=False)
    ):
        try:
            limit = None if any_size else _INSPECTED_AT_ONCE
            result = chain.run_within(batch, log.config, limit, _HEADERS_AT_ONCE)
        finally:
            chain.lock.release()
    if result is None:
        raise LongWork(partial(_run_chain, log, chain, batch, rules, now_ms, None), chain.limiter)
    if not _needs_more(log, result.batch, rules, now_ms):
        return _fitting(log, batch, result.batch, rules), result
    try:
        converted = convert_at_once(log, result.batch, rules, now_ms)
    except LongWork:
        raise LongWork(partial(_run_chain, log, chain, batch, rules, now_ms, result), chain.limiter) from None
    except BrokerError as error:
        raise _of_the_producer(error, result) from None
    return _fitting(log, batch, converted, rules), result


def _run_chain(
    log: "LogState",
    chain: "Chain",
    batch: memoryview | bytearray,
    rules: AppendRules,
    now_ms: int,
    result: "ChainResult | None",
) -> Prepared:
    from leafcuttr.log.append.conversion import convert

    if result is None:
        with chain.lock:
            result = chain.run(batch, log.config, may_wait=True)
    passed = result.batch
    if _needs_more(log, passed, rules, now_ms):
        try:
            passed = convert(memoryview(passed), log.config, now_ms, log.topic_partition)
        except BrokerError as error:
            raise _of_the_producer(error, result) from None
    return Prepared(log, _fitting(log, batch, passed, rules), chain, result)


def _needs_more(log: "LogState", passed: memoryview | bytearray, rules: AppendRules, now_ms: int) -> bool:
    """Whether what the chain has let through is to be converted still. A batch without records is as it has to be."""
    header = BatchHeader._make(unpack(passed))
    return header.count > 0 and (
        rules.converts_all
        or header.is_log_append_time
        or header.max_timestamp - now_ms > rules.timestamp_after_max_ms
    )


def _of_the_producer(error: BrokerError, result: "ChainResult") -> BrokerError:
    """The error with the records at fault as their producer numbers them."""
    if error.record_errors and result.kept is not None:
        kept = result.kept
        error.record_errors = [one._replace(batch_index=kept[one.batch_index]) for one in error.record_errors]
    return error


def _fitting(
    log: "LogState", batch: memoryview | bytearray, converted: memoryview | bytearray, rules: AppendRules
) -> memoryview | bytearray:
    if len(converted) > rules.max_message_bytes and len(converted) > len(batch):
        raise MessageTooLarge(
            f"The record batch for {log.topic_partition} is {len(converted)} bytes once compressed for the topic, "
            f"which exceeds the maximum configured value of {rules.max_message_bytes} bytes"
        )
    return converted
