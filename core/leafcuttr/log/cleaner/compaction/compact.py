"""One round of compaction over one log: a table of the last batch of each key, then every group written anew.

What stays (Kafka's rules, KIP-98 and KIP-534):

- the last record of a key; one without a value (a tombstone) until its batch's delete horizon, which the first round
  that meets it sets to now plus delete.retention.ms; records from the round's end on, whatever they are;
- no record without a key, and none of an aborted transaction; markers by the rules of `transactions`;
- the batch with the last sequence number of a producer that is remembered, without records if it has to be; so does
  the last batch of a group, so that the offsets of a segment end where the next one begins, also on the disk.

A batch keeps its base offset, last offset, sequence and codec. One of which nothing is removed is copied as it is. Pure
but for the files; no clock, no settings.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from leafcuttr.log.cleaner.compaction.output import Output
from leafcuttr.log.cleaner.compaction.pages import Throttle, forget_pages
from leafcuttr.log.cleaner.compaction.reading import DamagedDataError, batches
from leafcuttr.log.cleaner.compaction.table import KeyTable
from leafcuttr.log.cleaner.compaction.transactions import Transactions
from leafcuttr.log.cleaner.compaction.walk import Walked, max_timestamp, walk
from leafcuttr.log.cleaner.job import Cleaned, Done, Round, SourceSegment
from leafcuttr.wire.batch import (
    CONTROL,
    DELETE_HORIZON,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    sealed,
)
from leafcuttr.wire.compression import Codec, compress
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.records import decode_records, encode_batch, record_bytes

_EMPTY_KEEPS: Final = LOG_APPEND_TIME | TRANSACTIONAL | CONTROL


class _Kept(NamedTuple):
    """What becomes of a batch: `data` is None for one that stays as it is, empty for one that is removed."""

    data: bytes | bytearray | None
    last_offset: int
    max_timestamp: int


class Compaction:
    """A round. `run` does all of it and calls `on_cleaned` with each group, which returns when that is in its place."""

    def __init__(self, round_: Round, throttle: Throttle, on_cleaned: Callable[[Cleaned], None]) -> None:
        self._round = round_
        self._throttle = throttle
        self._on_cleaned = on_cleaned
        self._table = KeyTable(round_.table_bytes)
        self._end = round_.groups[-1][-1].end
        self._read = self._written = self._records = self._kept = 0

    def run(self) -> Done:
        """Raises DamagedDataError, OSError, MemoryError."""
        began = time.monotonic()
        self._end = self._fill_table()
        self._table.close()
        transactions = Transactions(self._round.aborted)
        for number, group in enumerate(self._round.groups):
            if group[0].base >= self._end:
                break
            self._on_cleaned(self._clean(number, group, transactions))
        return Done(
            self._end, len(self._table), self._read, self._written, self._records, self._kept,
            time.monotonic() - began,
        )  # fmt: skip

    # The first pass

    def _fill_table(self) -> int:
        """Note the keys from the first dirty offset on; returns the offset before which all are noted."""
        first_dirty, _table = self._round.first_dirty, self._table
        transactions = Transactions(self._round.aborted)
        for source in (source for group in self._round.groups for source in group):
            if source.end <= first_dirty:
                continue
            with self._opened(source) as (fd, path):
                if (end := self._fill_from(fd, path, source, transactions)) is not None:
                    return end
        return self._round.groups[-1][-1].end

    def _fill_from(self, fd: int, path: str, source: SourceSegment, transactions: Transactions) -> int | None:
        """Note the keys of one segment; if the table is full, the offset where that was."""
        first_dirty, table, at_byte = self._round.first_dirty, self._table, 0
        try:
            found = batches(fd, path, source, self._round.chunk, self._throttle)
            for buffer, at, header, at_byte in found:  # noqa: B007 - for the error
                discard = header.is_transactional and self._of_transaction(transactions, buffer, at, header)
                if discard or header.is_control or not header.count:
                    continue
                if header.base_offset + header.last_offset_delta < first_dirty:
                    continue
                _, walked = self._walk(buffer, at, header)
                self._put(header.base_offset, walked)
                if table.full:
                    return header.next_offset
        except WireError as error:
            raise DamagedDataError(f"{path}: at byte {at_byte}: {error}") from error
        return None

    def _put(self, base_offset: int, found: Walked) -> None:
        keys = [key for key in found.keys if key is not None] if found.keyless else found.keys
        if keys:
            nulls = bool(found.nulls)
            self._table.put(keys, found.longest, base_offset, nulls=nulls)  # type: ignore[arg-type]  # no None is left

    def _of_transaction(
        self, transactions: Transactions, buffer: bytes, at: int, header: BatchHeader
    ) -> bool:
        """Pass a batch to the transactions; whether they allow to remove all of it."""
        if header.is_control:
            return transactions.is_spent(header, buffer[at : at + header.size])
        return transactions.is_aborted(header)

    def _walk(self, buffer: bytes, at: int, header: BatchHeader) -> tuple[bytes, Walked]:
        """The records of a batch: the bytes they are in, and where. Raises WireError."""
        end = at + header.length + LOG_OVERHEAD
        if not header.codec:
            return buffer, walk(buffer, at + HEADER_SIZE, end, header.count)
        data = record_bytes(memoryview(buffer)[at:end]).tobytes()
        return data, walk(data, 0, len(data), header.count)

    # The second pass

    def _clean(self, number: int, group: Sequence[SourceSegment], transactions: Transactions) -> Cleaned:
        base = group[0].base
        stem = f"{self._round.directory}/{base:020d}"
        out = Output(stem, base, self._round.index_interval, self._throttle)
        transactions.index = []
        try:
            mtime, indexed = 0.0, False
            for source in group:
                with self._opened(source) as (fd, path):
                    mtime = os.fstat(fd).st_mtime
                    indexed = indexed or os.path.exists(f"{path[:-4]}.txnindex")  # noqa: PTH110
                    if len(group) > 1 and not out.begun:
                        out.begin(fd, 0)
                    self._copy(fd, path, source, out, transactions, last=source is group[-1])
                    forget_pages(fd, 0, 0)
            if out.begun:
                out.finish(transactions.index, with_transactions=indexed, mtime=mtime)
                self._written += out.size
                self._sync_directory()
        except BaseException:
            out.discard()
            raise
        out.close()
        return Cleaned(
            number,
            out.begun,
            out.size,
            out.largest_timestamp,
            out.largest_timestamp_offset,
            transactions.index,
        )

    def _copy(
        self,
        fd: int,
        path: str,
        source: SourceSegment,
        out: Output,
        transactions: Transactions,
        *,
        last: bool,
    ) -> None:
        """Bring over what stays of one segment, runs of untouched batches at a time."""
        self._read += source.size
        run_at = run_end = 0
        run = b""
        for buffer, at, header, position in batches(fd, path, source, self._round.chunk, self._throttle):
            size = header.length + LOG_OVERHEAD
            if buffer is not run:
                if run_end > run_at and out.begun:
                    out.write(memoryview(run)[run_at:run_end])
                run, run_at, run_end = buffer, at, at
            closes = last and position + size == source.size
            try:
                kept = self._keep(buffer, at, header, transactions, closes=closes)
            except WireError as error:
                raise DamagedDataError(f"{path}: at byte {position}: {error}") from error
            if kept is None:
                out.batch(size, header.base_offset + header.last_offset_delta, header.max_timestamp)
                run_end = at + size
                continue
            if not out.begun:
                out.begin(fd, position)
            elif run_end > run_at:
                out.write(memoryview(run)[run_at:run_end])
            run_at = run_end = at + size
            if kept.data:
                out.batch(len(kept.data), kept.last_offset, kept.max_timestamp)
                out.write(bytes(kept.data))
        if run_end > run_at and out.begun:
            out.write(memoryview(run)[run_at:run_end])

    def _keep(
        self, buffer: bytes, at: int, header: BatchHeader, transactions: Transactions, *, closes: bool
    ) -> _Kept | None:
        """What becomes of a batch; None if it stays as it is. Raises WireError."""
        self._records += header.count
        discard = header.is_transactional and self._of_transaction(transactions, buffer, at, header)
        if header.is_control:
            return self._keep_control(buffer, at, header, discard, closes)
        if discard:
            return self._keep_empty(header, closes)
        if header.base_offset >= self._end:
            self._kept += header.count
            return None
        if not header.count:
            return self._keep_empty(header, closes)
        if header.base_offset + header.last_offset_delta >= self._round.first_dirty:
            # The table knows this batch: often that is enough.
            staying = self._table.staying(header.base_offset)
            if not staying:
                return self._keep_empty(header, closes)
            if staying == header.count and not self._table.has_nulls(header.base_offset):
                self._kept += staying
                return None
        data, found = self._walk(buffer, at, header)
        stay, horizon = self._survivors(header, found)
        if not stay:
            return self._keep_empty(header, closes)
        self._kept += len(stay)
        if horizon is not None:
            return self._with_horizon(buffer[at : at + header.size], header, set(stay), horizon)
        return None if len(stay) == header.count else _thinned(data, found, header, stay)

    def _survivors(self, header: BatchHeader, found: Walked) -> tuple[Sequence[int], int | None]:
        """The numbers of the records that stay, and the delete horizon that the batch has to get for them."""
        base, keys = header.base_offset, found.keys
        stay: Sequence[int] = range(header.count)
        if found.keyless:
            stay = [i for i in stay if keys[i] is not None]
            found = found._replace(keys=[key for key in keys if key is not None])
        if not stay:
            return stay, None
        latest = self._table.latest(found.keys, found.longest)  # type: ignore[arg-type]  # no None is left
        if max(latest) > base:
            stay = [i for i, at in zip(stay, latest, strict=True) if at <= base]
        if len(stay) > 1 and header.base_offset + header.last_offset_delta >= self._round.first_dirty:
            names = keys if len(stay) == len(keys) else [keys[i] for i in stay]
            if len(set(names)) < len(names):
                stay = sorted(dict(zip(names, stay, strict=True)).values())
        nulls = found.nulls
        if not nulls:
            return stay, None
        if header.attributes & DELETE_HORIZON:
            if header.base_timestamp <= self._round.now_ms:
                gone = set(nulls)
                stay = [i for i in stay if i not in gone]
            return stay, None
        if set(nulls).isdisjoint(stay):
            return stay, None
        return stay, self._round.delete_horizon_ms

    def _keep_control(
        self, buffer: bytes, at: int, header: BatchHeader, spent: bool, closes: bool
    ) -> _Kept | None:
        horizon = header.base_timestamp if header.attributes & DELETE_HORIZON else None
        if not header.count or (spent and horizon is not None and horizon <= self._round.now_ms):
            return self._keep_empty(header, closes)
        self._kept += header.count
        if spent and horizon is None:
            due = self._round.delete_horizon_ms
            return self._with_horizon(buffer[at : at + header.size], header, None, due)
        return None

    def _keep_empty(self, header: BatchHeader, closes: bool) -> _Kept | None:
        """A batch of which no record stays: its header may be needed."""
        owned = self._is_last_of_producer(header)
        if not owned and not closes:
            return _Kept(b"", -1, -1)
        if not header.count:
            return None
        largest = header.max_timestamp if owned else NO_TIMESTAMP
        attributes = header.attributes & _EMPTY_KEEPS
        empty = header._replace(
            attributes=attributes, base_timestamp=NO_TIMESTAMP, max_timestamp=largest, count=0
        )
        return _Kept(sealed(empty, b""), header.last_offset, largest)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        known = self._round.producers.get(header.producer_id)
        if known is None:
            return False
        if known.last_offset >= 0:
            return header.last_offset == known.last_offset
        return header.is_control and header.producer_epoch == known.epoch

    def _with_horizon(self, batch: bytes, header: BatchHeader, stay: set[int] | None, horizon: int) -> _Kept:
        """The batch with only the records in `stay` (None: all), their times counted from the delete horizon."""
        records = [r for i, r in enumerate(decode_records(batch)) if stay is None or i in stay]
        stamp = header.max_timestamp if header.is_log_append_time else None
        data = encode_batch(
            records,
            base_offset=header.base_offset,
            codec=Codec(header.codec),
            partition_leader_epoch=header.leader_epoch,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            log_append_time=stamp,
            transactional=header.is_transactional,
            control=header.is_control,
            delete_horizon=horizon,
            last_offset_delta=header.last_offset_delta,
        )
        return _Kept(data, header.last_offset, HEADER.unpack_from(data)[8])

    # Files

    @contextmanager
    def _opened(self, source: SourceSegment) -> Iterator[tuple[int, str]]:
        path = f"{self._round.directory}/{source.base:020d}.log"
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
            yield fd, path
        finally:
            os.close(fd)

    def _sync_directory(self) -> None:
        fd = os.open(self._round.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _thinned(data: bytes, found: Walked, header: BatchHeader, stay: Sequence[int]) -> _Kept:
    """The batch with only the records in `stay`, their bytes as they are."""
    bounds = found.bounds
    pieces, at, last = [], bounds[stay[0]], stay[0]
    for i in stay[1:]:
        if i != last + 1:
            pieces.append(data[at : bounds[last + 1]])
            at = bounds[i]
        last = i
    pieces.append(data[at : bounds[last + 1]])
    largest = header.max_timestamp
    if not header.is_log_append_time:
        largest = max_timestamp(data, map(bounds.__getitem__, stay), header.base_timestamp)
    payload = compress(Codec(header.codec), b"".join(pieces))
    thinned = header._replace(count=len(stay), max_timestamp=largest)
    return _Kept(sealed(thinned, payload), header.last_offset, largest)
