"""What some topics ask for beyond the checks that all do: a look of their gate (`chain`) at every record,
then what their settings do to a batch (`conversion`). Both take batches apart.

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
from leafcuttr.wire.batch import ATTRIBUTES_AT, COUNT_AT, HEADER_SIZE, LOG_APPEND_TIME, BatchHeader, unpack

if TYPE_CHECKING:
    from leafcuttr.log.append.chain import Gate, Looked
    from leafcuttr.log.state import LogState

# What a batch to be converted may hold, as it comes and decompressed, for it to be done on the loop: about a
# millisecond's work (0.7 us a record; gzip makes 15 MB/s).
_CONVERTED_AT_ONCE: Final = 16 * 1024
_INSPECTED_AT_ONCE: Final = 64 * 1024
_RECORDS_AT_ONCE: Final = 500


class Prepared(NamedTuple):
    """What a worker has made of a batch for this log: its CRC is right, and it is converted if that was due. `gate` has
    looked at it then, as far as the topic had one."""

    log: "LogState"
    converted: memoryview | bytearray | None
    gate: "Gate | None" = None
    looked: "Looked | None" = None


class Work(NamedTuple):
    """What takes long. `do` may be called in any thread, and raises as `stage` does. Those that have a `seat` in common
    wait for each other anyway: only one of them has a thread."""

    do: Callable[[], Prepared]
    seat: trio.CapacityLimiter | None = None

    async def done(self, *, abandon_on_cancel: bool = False) -> Prepared:
        """Have a worker thread do it."""
        if self.seat is None:
            return await trio.to_thread.run_sync(
                self.do, limiter=decode_limiter(), abandon_on_cancel=abandon_on_cancel
            )
        async with self.seat:
            return await trio.to_thread.run_sync(
                self.do, limiter=filter_limiter(), abandon_on_cancel=abandon_on_cancel
            )


class LongWork(Exception):
    """Not an error: staging the batch takes long. Until `work` is done the batch stays as it is."""

    def __init__(self, do: Callable[[], Prepared], seat: trio.CapacityLimiter | None = None) -> None:
        super().__init__("a batch needs a worker")
        self.work = Work(do, seat)


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


def pass_at_once(
    log: "LogState", gate: "Gate", batch: memoryview | bytearray, rules: AppendRules, now_ms: int
) -> "tuple[memoryview | bytearray, Looked]":
    """The batch as the gate lets it through, and then as the topic's settings want it: what they ask about records
    holds for those that are stored. Raises LongWork if that takes more than a moment."""
    from leafcuttr.wire.compression import DecompressionLimitError

    looked = None
    count = int.from_bytes(batch[COUNT_AT:HEADER_SIZE], "big")
    if len(batch) <= _INSPECTED_AT_ONCE and gate.is_quick(count) and gate.lock.acquire(blocking=False):
        try:
            looked = gate.look(batch, log.config, limit=_INSPECTED_AT_ONCE)
        except DecompressionLimitError:
            pass
        finally:
            gate.lock.release()
    if looked is None:
        raise LongWork(partial(_passed, log, gate, batch, rules, now_ms, None), gate.seat)
    if not _needs_more(log, looked.batch, rules, now_ms):
        return _fitting(log, batch, looked.batch, rules), looked
    try:
        converted = convert_at_once(log, looked.batch, rules, now_ms)
    except LongWork:
        raise LongWork(partial(_passed, log, gate, batch, rules, now_ms, looked), gate.seat) from None
    except BrokerError as error:
        raise _of_the_producer(error, looked) from None
    return _fitting(log, batch, converted, rules), looked


def _passed(
    log: "LogState",
    gate: "Gate",
    batch: memoryview | bytearray,
    rules: AppendRules,
    now_ms: int,
    looked: "Looked | None",
) -> Prepared:
    from leafcuttr.log.append.conversion import convert

    if looked is None:
        with gate.lock:
            looked = gate.look(batch, log.config)
    passed = looked.batch
    if _needs_more(log, passed, rules, now_ms):
        try:
            passed = convert(memoryview(passed), log.config, now_ms, log.topic_partition)
        except BrokerError as error:
            raise _of_the_producer(error, looked) from None
    return Prepared(log, _fitting(log, batch, passed, rules), gate, looked)


def _needs_more(log: "LogState", passed: memoryview | bytearray, rules: AppendRules, now_ms: int) -> bool:
    """Whether what the gate has let through is to be converted still. A batch without records is as it has to be."""
    from leafcuttr.log.append.conversion import needs_conversion

    header = BatchHeader._make(unpack(passed))
    return header.count > 0 and (
        needs_conversion(log.config)
        or header.is_log_append_time
        or header.max_timestamp - now_ms > rules.timestamp_after_max_ms
    )


def _of_the_producer(error: BrokerError, looked: "Looked") -> BrokerError:
    """The error with the records at fault as their producer numbers them."""
    if error.record_errors and looked.kept is not None:
        kept = looked.kept
        error.record_errors = [one._replace(batch_index=kept[one.batch_index]) for one in error.record_errors]
    return error


def _fitting(
    log: "LogState", batch: memoryview | bytearray, converted: memoryview | bytearray, rules: AppendRules
) -> memoryview | bytearray:
    if len(converted) > rules.max_message_bytes and len(converted) > len(batch):
        raise MessageTooLarge(
            f"The record batch for {log.topic_partition} is {len(converted)} bytes once compressed as the topic asks, "
            f"which exceeds the maximum configured value of {rules.max_message_bytes} bytes"
        )
    return converted
