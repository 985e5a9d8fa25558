"""The first half of an append: check a batch, give it offsets, stamp it in place, queue it.

Order of the checks and their error codes as in Kafka (`ProduceRequest.validateRecords`, `UnifiedLog`, `LogValidator`,
`ProducerAppendInfo`). It writes nothing; the second half is `commit`. Per batch, never per record, but
for the lengths of records that are not compressed (`check`), and where the topic's settings require more
(`conversion`).

What would hold the event loop for long (the CRC of a very large batch, very many records to step over, to check or
to compress anew) is not done here: `stage` raises LongWork, the caller has a worker thread do it, and stages the
batch again with what came of it. Nothing of the batch is staged until then, and every check is made again.
"""

from functools import partial
from typing import TYPE_CHECKING, NoReturn

from leafcuttr.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidRecordSet,
    MessageTooLarge,
    RecordListTooLarge,
    StorageError,
)
from leafcuttr.log.append.check import CHECKED_AT_ONCE, check_lengths
from leafcuttr.log.append.preparation import LongWork, Prepared, convert_at_once, run_chain_at_once
from leafcuttr.log.append.rules import AppendRules, Origin
from leafcuttr.log.append.staged import Staged, StagedGroup, Tail
from leafcuttr.log.segment.segment import LAST_BASE, MAX_RELATIVE
from leafcuttr.wire.batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL,
    COUNT_AT,
    CRC_AT,
    HEADER_SIZE,
    HIGHEST_CODEC,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    MAGIC,
    MIN_RECORD,
    TRANSACTIONAL,
    BatchHeader,
    CorruptBatch,
    InvalidBatch,
    check_client_batch,
    single_batch,
    stamp,
    unpack,
)
from leafcuttr_sdk.batches.checksum import crc32c

if TYPE_CHECKING:
    from leafcuttr.log.state import LogState


def stage(
    log: "LogState", batch: memoryview | bytearray, origin: Origin, now_ms: int, prepared: Prepared | None
) -> Staged:
    """See `Log.stage`. The cases that a batch can be are told apart in the order in which Kafka refuses them; for
    nearly every batch none of the conditions on the way holds but the CRC's. Raises LongWork for whatever origin."""
    if log.offline is not None:
        raise StorageError(log.offline)
    rules = log.rules
    # The topic's chain sees what others send. With one the rules say that every batch has to be converted.
    chain = log.chain if origin.chained else None

    # Which bytes. The record set of a partition has to be exactly one batch of magic 2; where its first bytes do not
    # say so, `one_batch` finds out what it is, and refuses all else.
    if len(batch) < HEADER_SIZE:
        batch = one_batch(batch)
    fields = unpack(batch)
    size = len(batch)
    if fields[1] != size - LOG_OVERHEAD or fields[3] != MAGIC:
        batch = one_batch(batch)
        size = len(batch)
        fields = unpack(batch)
    (base, length, _, _, crc, attributes, delta, _, max_timestamp, producer_id, epoch, sequence, count) = (
        fields
    )
    checks_ends = (
        rules.checks_ends
        and prepared is None
        and chain is None  # which takes every batch apart
        and not origin.whole
        and not attributes & CODEC_MASK
    )

    # The CRC, before anything that it covers is believed. A large batch: too large for the topic, or work for a worker,
    # which has been done if there is something `prepared`.
    if size > rules.checked_at_once_bytes and not origin.any_size:
        if size > rules.max_message_bytes:
            _refuse_size(log, size, rules)
        if prepared is None:
            _defer_check(log, batch, checks_ends)
    elif prepared is None and crc32c(batch[ATTRIBUTES_AT:]) != crc:
        _refuse_crc(log, batch, crc)

    # A header that no producer may send: it is refused, unless it is a marker's.
    if (
        base
        or count != delta + 1
        or count <= 0
        or attributes & CONTROL
        or attributes & CODEC_MASK > HIGHEST_CODEC
        or (producer_id >= 0 and sequence < 0 and not origin.unsequenced)
        or (attributes & TRANSACTIONAL and producer_id < 0)
        or (count * MIN_RECORD > size - HEADER_SIZE and not attributes & CODEC_MASK)
    ):
        if origin.transaction_version and attributes & CONTROL:
            return _stage_marker(log, batch, origin, now_ms)
        _refuse(log, BatchHeader._make(fields))

    # An idempotent producer's. One that simply follows the last is as good as one without a producer. A duplicate is
    # answered, and nothing is staged. Any other has a `header` from here on, and its sequence is checked below: what
    # is wrong with its records is said first.
    header = None
    transactional = bool(attributes & TRANSACTIONAL)
    if producer_id >= 0 and not log.producers.follows(producer_id, epoch, sequence, transactional):
        header = BatchHeader._make(fields)
        known = log.producers.duplicate_of(header)
        if known is not None:
            return Staged(known.base_offset, known.last_offset, known.timestamp, True)

    # Records that are not compressed have to fill the batch. Very many of them are work for a worker.
    if checks_ends:
        if count > CHECKED_AT_ONCE:
            _defer_check(log, batch, checks_ends)
        check_lengths(memoryview(batch)[HEADER_SIZE:], count)

    # A batch that has to be taken apart: for the topic's chain, for its codec or its timestamps, or because the header
    # has a timestamp that one of the records may be refused for. What a worker has made of it counts if it was for
    # this chain; without a chain it is done here if it is short, and otherwise by a worker.
    log_append_time = -1
    result = None
    if (
        (
            rules.always_convert
            and (
                chain is not None
                or not origin.whole
                or (
                    rules.converts_own and not (origin.keyed and attributes & CODEC_MASK in rules.codecs_kept)
                )
            )
        )
        or attributes & LOG_APPEND_TIME
        or max_timestamp - now_ms > rules.timestamp_after_max_ms
    ):
        if prepared is not None and prepared.converted is not None and prepared.chain is chain:
            batch, result = prepared.converted, prepared.result
        elif chain is None:
            # A header may be converted in place: a batch that may yet be refused stays as it came, to be staged again.
            batch = convert_at_once(log, batch if header is None else bytearray(batch), rules, now_ms)
        else:
            if header is not None:
                log.producers.check(header)  # the chain does not see what is refused anyway
            batch, result = run_chain_at_once(log, chain, batch, rules, now_ms)
        size = len(batch)
        converted = BatchHeader._make(unpack(batch))
        length, max_timestamp = converted.length, converted.max_timestamp
        if log.config.log_append_time:
            log_append_time = max_timestamp if converted.count else now_ms
    if size > rules.segment_bytes:
        raise RecordListTooLarge(
            f"Message batch size is {size} bytes in append to partition {log.topic_partition}, which exceeds the "
            f"maximum configured segment size of {rules.segment_bytes} bytes"
        )
    if header is not None:
        log.producers.check(header)

    # It is good: from here on nothing is refused but for what `_group_for` says.
    base_offset = log.next_offset
    last_offset = base_offset + delta
    if isinstance(batch, memoryview) and batch.readonly:
        batch = bytearray(batch)
    stamp(batch, base_offset, length, log.leader_epoch)
    group = _group_for(log, rules, size, last_offset, max_timestamp, now_ms)
    group.views.append(batch)
    group.batches.append((size, last_offset, max_timestamp))
    group.size += size
    if producer_id >= 0:
        seen = now_ms if result is not None and max_timestamp < 0 else max_timestamp
        entry = log.producers.stage(producer_id, epoch, sequence, delta, seen, base_offset, transactional)
        group.entries.append(entry)
    log.next_offset = last_offset + 1
    if result is not None:
        letters = result.staged(log.topic_partition, base_offset)
        if letters is not None:
            group.letters = [letters] if group.letters is None else [*group.letters, letters]
    return Staged(base_offset, last_offset, log_append_time)


def _stage_marker(log: "LogState", batch: memoryview | bytearray, origin: Origin, now_ms: int) -> Staged:
    """The end of a transaction: one control record, not compressed, with the time that it is staged at."""
    log.resources.descriptors.import_late("leafcuttr.wire.markers")
    from leafcuttr.wire.markers import read_marker

    header, marker = BatchHeader._make(unpack(batch)), read_marker(batch)
    if marker is None:
        _refuse(log, header)
    producers, producer_id, producer_epoch = log.producers, header.producer_id, header.producer_epoch
    producers.check_marker(producer_id, producer_epoch, marker.coordinator_epoch, origin.transaction_version)
    offset, size = log.next_offset, len(batch)
    stamp(batch, offset, header.length, log.leader_epoch)
    group = _group_for(log, log.rules, size, offset, header.max_timestamp, now_ms)
    group.views.append(batch)
    group.batches.append((size, offset, header.max_timestamp))
    group.size += size
    if not marker.commit:
        if group.aborts is None:
            group.aborts = {}
        group.aborts[len(group.entries)] = offset
    group.entries.append(
        producers.stage_marker(producer_id, producer_epoch, marker.coordinator_epoch, now_ms)
    )
    log.next_offset = offset + 1
    return Staged(offset, offset, now_ms if log.config.log_append_time else -1)


def _group_for(
    log: "LogState", rules: AppendRules, size: int, last_offset: int, max_timestamp: int, now_ms: int
) -> StagedGroup:
    """The group the batch belongs to: a new one where a new segment has to begin (Kafka's `shouldRoll`)."""
    tail = log.tail
    if tail is None:
        tail = log.tail = Tail(log.segments[-1], now_ms)
    groups = log.groups
    filled = tail.size
    if filled and (
        filled > rules.segment_bytes - size
        or (max_timestamp - tail.first_timestamp if tail.first_timestamp >= 0 else now_ms - tail.created_ms)
        > rules.segment_ms - log.roll_jitter_ms
        or last_offset - tail.base_offset > MAX_RELATIVE
        or (tail.segment is not None and tail.segment.index_is_full(rules.segment_index_bytes))
    ):
        if log.next_offset > LAST_BASE - MAX_RELATIVE:
            raise StorageError(
                f"{log.topic_partition} has reached offset {log.next_offset}, nearly the last there is"
            )
        tail.begin(log.next_offset, now_ms)
        groups.append(StagedGroup(log.next_offset, True))
        filled = 0
    elif not groups:
        groups.append(StagedGroup(log.next_offset, False))
    if not filled:
        tail.first_timestamp = max_timestamp
    tail.size = filled + size
    return groups[-1]


def one_batch(records: memoryview | bytearray) -> memoryview:
    """The batch that a partition's record set consists of. Raises InvalidRecordSet, CorruptMessage."""
    try:
        batch = single_batch(memoryview(records))
    except CorruptBatch as error:
        raise CorruptMessage(str(error)) from None
    except InvalidBatch as error:
        raise InvalidRecordSet(str(error)) from None
    if len(batch) < HEADER_SIZE:
        raise CorruptMessage(f"Record batch size {len(batch)} is less than its header")
    return batch


def _refuse_size(log: "LogState", size: int, rules: AppendRules) -> NoReturn:
    raise MessageTooLarge(
        f"The record batch size in the append to {log.topic_partition} is {size} bytes which exceeds the maximum "
        f"configured value of {rules.max_message_bytes} bytes"
    )


def _defer_check(log: "LogState", batch: memoryview | bytearray, checks_ends: bool) -> NoReturn:
    """A worker has to check the CRC, and the ends of the records if those are to be checked."""
    raise LongWork(partial(_checked, log, batch, checks_ends))


def _checked(log: "LogState", batch: memoryview | bytearray, checks_ends: bool) -> Prepared:
    crc = int.from_bytes(batch[CRC_AT:ATTRIBUTES_AT], "big")
    if crc32c(batch[ATTRIBUTES_AT:]) != crc:
        _refuse_crc(log, batch, crc)
    if checks_ends:
        count = int.from_bytes(batch[COUNT_AT:HEADER_SIZE], "big", signed=True)
        check_lengths(memoryview(batch)[HEADER_SIZE:], max(count, 0))
    return Prepared(log, None)


def _refuse_crc(log: "LogState", batch: memoryview | bytearray, crc: int) -> NoReturn:
    computed = crc32c(batch[ATTRIBUTES_AT:])
    raise CorruptMessage(
        f"Record is corrupt (stored crc = {crc}, computed crc = {computed}) in topic partition {log.topic_partition}."
    )


def _refuse(log: "LogState", header: BatchHeader) -> NoReturn:
    if header.base_offset:
        raise InvalidRecord(
            f"The baseOffset of the record batch in the append to {log.topic_partition} should be 0, but it is "
            f"{header.base_offset}"
        )
    try:
        check_client_batch(header)
    except InvalidBatch as error:
        raise InvalidRecord(str(error)) from None
    if header.is_transactional and header.producer_id < 0:
        raise InvalidRecord(f"A transactional batch for {log.topic_partition} has no producer id")
    raise InvalidRecord(f"A batch of {header.size} bytes cannot hold {header.count} records")
