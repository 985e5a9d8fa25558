"""`leafcuttr dump`: what a file of a data directory holds, as rows of plain values, in the order of the file.

Which kind of file it is follows from its name, as everywhere in Kafka's layout. A damaged place is a row of its own
with a `damage` field, and the dump goes on behind it where that is possible. How rows are printed is the command's.
"""

import base64
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from struct import Struct
from typing import Any, Final, Literal

from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.log.layout.checkpoints import (
    LEADER_EPOCHS,
    PARTITION_METADATA,
    read_leader_epochs,
    read_offsets,
    read_topic_id,
    uuid_text,
)
from leafcuttr.log.layout.partition_state import STATE_FILE, read_state
from leafcuttr.log.layout.suffixes import DAMAGED, DELETED
from leafcuttr.log.producers.snapshot import read_snapshot
from leafcuttr.log.segment.index import OffsetIndex, TimeIndex
from leafcuttr.log.segment.scan import SCAN_CHUNK, ZEROS, DamagedSegmentError, headers
from leafcuttr.offline.verify_segment import Holder, resume_after
from leafcuttr.wire.batch import DELETE_HORIZON, HIGHEST_CODEC, BatchHeader
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.records import Record, control_record, decode_records

Row = dict[str, Any]

_TRANSACTION: Final = Struct(">hqqqq")
_CONTROL_TYPES: Final = {
    0: "abort",
    1: "commit",
    2: "leader change",
    3: "snapshot header",
    4: "snapshot footer",
}
_OFFSETS_TOPIC: Final = "__consumer_offsets-"
_TRANSACTIONS_TOPIC: Final = "__transaction_state-"
_TRANSACTION_STATES: Final = {
    0: "Empty",
    1: "Ongoing",
    2: "PrepareCommit",
    3: "PrepareAbort",
    4: "CompleteCommit",
    5: "CompleteAbort",
    6: "Dead",
    7: "PrepareEpochFence",
}
_VERSION: Final = Struct(">h")


class UnknownFileError(ValueError):
    """The name is not one of Kafka's or of ours."""


class Depth(Enum):
    """How much of the records of a log is in the rows: in a field `records` of their batch."""

    BATCHES = "nothing"
    RECORDS = "offset, time, sequence, sizes"
    CONTENTS = "that, with key, value and headers"
    CONTENTS_ALONE = "key, value and headers; control records are left out"


class Decoder(Enum):
    """What the records of a log are."""

    NAME = "as the folder's name says: those of the internal topics are decoded"
    OFFSETS = "those of __consumer_offsets"
    TRANSACTIONS = "those of __transaction_state"


Show = Callable[[Literal["key", "value"], Record], Any]
"""How the key or value of a record stands in a row."""


def dump_file(
    path: Path,
    *,
    depth: Depth = Depth.RECORDS,
    decoder: Decoder = Decoder.NAME,
    max_bytes: int | None = None,
    show: Show | None = None,
) -> Iterator[Row]:
    """The rows of one file. Of a log at most the batches that begin in its first `max_bytes`.

    Raises UnknownFileError, OSError, and ValueError for a small file that does not parse.
    """
    name = path.name.removesuffix(DELETED).removesuffix(DAMAGED)
    reader = _BY_NAME.get(name) or _BY_SUFFIX.get(Path(name).suffix)
    if Path(name).suffix == ".log":
        return _log(path, depth, _reading(path, decoder, show or _readable_part), max_bytes)
    if reader is None:
        if name.endswith("-offset-checkpoint"):
            return _offset_checkpoint(path)
        raise UnknownFileError(f"{path}: not a file of a data directory, by its name")
    return reader(path)


def _reading(path: Path, decoder: Decoder, show: Show) -> Callable[[Record], Row]:
    folder = path.resolve().parent.name
    if decoder is Decoder.OFFSETS or (decoder is Decoder.NAME and folder.startswith(_OFFSETS_TOPIC)):
        return _committed
    if decoder is Decoder.TRANSACTIONS or (
        decoder is Decoder.NAME and folder.startswith(_TRANSACTIONS_TOPIC)
    ):
        return _transaction
    return lambda record: _contents(record, show)


def _log(path: Path, depth: Depth, decode: Callable[[Record], Row], max_bytes: int | None) -> Iterator[Row]:
    file = OpenFile(str(path), os.O_RDONLY, Holder())
    end = os.fstat(file.fd).st_size
    position = 0
    while position < end:
        try:
            walked = headers(file, position, end, chunk=SCAN_CHUNK, check_crc=True)
            for at, header in walked:
                if max_bytes is not None and at >= max_bytes:
                    return
                row = _batch(at, header)
                if depth is not Depth.BATCHES:
                    batch = file.pread(header.size, at, may_block=True)
                    row["records"] = _records(batch, header, depth, decode)
                yield row
            position = end
        except DamagedSegmentError as error:
            if error.reason == ZEROS and _only_zeros(file, error.position, end):
                # A broker may be writing to it: see `OpenFile.reserve`. `verify` knows whether they may be there.
                yield {"position": error.position, "note": f"{end - error.position} bytes of {ZEROS}"}
                return
            yield {"position": error.position, "damage": error.reason}
            position = resume_after(file, error.position, end, 0)


def _only_zeros(file: OpenFile, position: int, end: int) -> bool:
    """Whether nothing else is in the file from there on."""
    return not any(
        file.pread(min(SCAN_CHUNK, end - at), at, may_block=True).strip(b"\0")
        for at in range(position, end, SCAN_CHUNK)
    )


def _batch(position: int, header: BatchHeader) -> Row:
    row: Row = {
        "position": position,
        "size": header.size,
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.count,
        "codec": Codec(header.codec).name.lower() if header.codec <= HIGHEST_CODEC else header.codec,
        "timestamp_type": "LogAppendTime" if header.is_log_append_time else "CreateTime",
        "max_timestamp": header.max_timestamp,
        "leader_epoch": header.leader_epoch,
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "crc": header.crc,
    }
    if header.attributes & DELETE_HORIZON:
        row["delete_horizon"] = header.base_timestamp
    return row


def _records(batch: bytes, header: BatchHeader, depth: Depth, decode: Callable[[Record], Row]) -> list[Row]:
    rows: list[Row] = []
    try:
        for record in decode_records(batch):
            if depth is Depth.CONTENTS_ALONE:
                if not header.is_control:
                    rows.append(decode(record))
                continue
            row: Row = {"offset": record.offset, "timestamp": record.timestamp}
            if header.base_sequence >= 0:
                # It goes on at 0 after 2^31 - 1; compaction leaves gaps in it as in the offsets.
                row["sequence"] = (header.base_sequence + record.offset - header.base_offset) & 0x7FFFFFFF
            if header.is_control:
                control = control_record(record)
                row["control"] = _CONTROL_TYPES.get(control.type, control.type)
                row["coordinator_epoch"] = control.coordinator_epoch
            elif depth is Depth.RECORDS:
                row |= _sizes(record)
            else:
                row |= decode(record)
            rows.append(row)
    except WireError as error:
        rows.append({"damage": str(error)})
    return rows


def _sizes(record: Record) -> Row:
    """-1 for no key and no value, as in Kafka's tool."""
    row: Row = {
        "key_size": -1 if record.key is None else len(record.key),
        "value_size": -1 if record.value is None else len(record.value),
    }
    if record.headers:
        row["header_names"] = [name for name, _ in record.headers]
    return row


def _contents(record: Record, show: Show) -> Row:
    return {
        "key": show("key", record),
        "value": show("value", record),
        "headers": [[name, readable(value)] for name, value in record.headers],
    }


def _as_it_stands(record: Record) -> Row:
    return _contents(record, _readable_part)


def _readable_part(part: Literal["key", "value"], record: Record) -> Any:
    return readable(record.key if part == "key" else record.value)


def readable(data: bytes | None) -> str | dict[str, str] | None:
    """UTF-8 as text; other bytes as {"base64": ...}."""
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode("ascii")}


def _committed(record: Record) -> Row:
    """A record of `__consumer_offsets`; as it stands where it is of an unknown kind."""
    from leafcuttr.wire.messages.internal.group_metadata import GroupMetadataKey, GroupMetadataValue
    from leafcuttr.wire.messages.internal.offset_commit import OffsetCommitKey, OffsetCommitValue

    kinds: dict[int, tuple[type[Any], type[Any]]] = {
        0: (OffsetCommitKey, OffsetCommitValue),
        1: (OffsetCommitKey, OffsetCommitValue),
        2: (GroupMetadataKey, GroupMetadataValue),
    }

    return _decoded(record, kinds) or _as_it_stands(record)


def _transaction(record: Record) -> Row:
    """A record of `__transaction_state`, with the name of its state; as it stands where it is none."""
    from leafcuttr.wire.messages.internal.transaction_log import TransactionLogKey, TransactionLogValue

    row = _decoded(record, {0: (TransactionLogKey, TransactionLogValue)})
    if row is None:
        return _as_it_stands(record)
    if row["value"] is not None:
        status = row["value"]["transaction_status"]
        row["value"]["transaction_status"] = _TRANSACTION_STATES.get(status, status)
    return row


def _decoded(record: Record, kinds: Mapping[int, tuple[type[Any], type[Any]]]) -> Row | None:
    """Key and value as the messages that belong to the key's version; None if they are not such."""
    from leafcuttr.wire.codec import decode

    def message(cls: type[Any], data: bytes) -> Row:
        (version,) = _VERSION.unpack_from(data)
        fields = dataclasses.asdict(decode(cls, version, memoryview(data)[_VERSION.size :]))
        return {"version": version, **_plain(fields)}

    key, value = record.key, record.value
    if key is None or len(key) < _VERSION.size:
        return None
    found = kinds.get(_VERSION.unpack_from(key)[0])
    if found is None or (value is not None and len(value) < _VERSION.size):
        return None
    try:
        return {"key": message(found[0], key), "value": None if value is None else message(found[1], value)}
    except WireError:
        return None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return readable(value) if isinstance(value, bytes) else value


def _entries(path: Path, entry: Struct) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """(position, fields) of an index, without the zeros that a preallocation leaves."""
    data = path.read_bytes()
    used = len(data.rstrip(b"\0"))
    used = min(used + -used % entry.size, len(data))
    whole = used - used % entry.size
    for number, fields in enumerate(entry.iter_unpack(data[:whole])):
        yield number * entry.size, fields


def _rest(path: Path, entry: Struct) -> Iterator[Row]:
    size = path.stat().st_size
    if size % entry.size:
        yield {
            "position": size - size % entry.size,
            "damage": f"{size} bytes are not a multiple of {entry.size}",
        }


def _base_offset(path: Path) -> int:
    stem = path.name.partition(".")[0]
    return int(stem) if stem.isdecimal() else 0


def _offset_index(path: Path) -> Iterator[Row]:
    base = _base_offset(path)
    for _, (relative, position) in _entries(path, OffsetIndex.ENTRY):
        yield {"offset": base + relative, "position": position}
    yield from _rest(path, OffsetIndex.ENTRY)


def _time_index(path: Path) -> Iterator[Row]:
    base = _base_offset(path)
    for _, (timestamp, relative) in _entries(path, TimeIndex.ENTRY):
        yield {"timestamp": timestamp, "offset": base + relative}
    yield from _rest(path, TimeIndex.ENTRY)


def _transaction_index(path: Path) -> Iterator[Row]:
    names = ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset")
    for _, fields in _entries(path, _TRANSACTION):
        yield dict(zip(names, fields, strict=True))
    yield from _rest(path, _TRANSACTION)


def _snapshot(path: Path) -> Iterator[Row]:
    for entry in read_snapshot(path):
        last = entry.batches[-1] if entry.batches else None
        yield {
            "producer_id": entry.producer_id,
            "producer_epoch": entry.epoch,
            "coordinator_epoch": entry.coordinator_epoch,
            "last_timestamp": entry.last_timestamp,
            "first_sequence": last.first_sequence if last else -1,
            "last_sequence": last.last_sequence if last else -1,
            "last_offset": last.last_offset if last else -1,
            "current_txn_first_offset": entry.current_txn_first_offset,
        }


def _offset_checkpoint(path: Path) -> Iterator[Row]:
    for key, offset in read_offsets(path).items():
        yield {"topic": key.topic, "partition": key.partition, "offset": offset}


def _leader_epochs(path: Path) -> Iterator[Row]:
    for epoch, start in read_leader_epochs(path):
        yield {"leader_epoch": epoch, "start_offset": start}


def _partition_metadata(path: Path) -> Iterator[Row]:
    topic_id = read_topic_id(path)
    yield {"topic_id": None if topic_id is None else uuid_text(topic_id)}


def _state(path: Path) -> Iterator[Row]:
    state = read_state(path.parent)
    if state is None:
        raise ValueError(f"{path}: does not match its checksum or is of another version")
    yield {"boot_id": state.boot_id, "clean": state.clean, "partitions": len(state.partitions)}
    for key, one in state.partitions.items():
        yield {
            "topic": key.topic,
            "partition": key.partition,
            "topic_id": uuid_text(one.topic_id),
            "log_start_offset": one.log_start_offset,
            "log_end_offset": one.log_end_offset,
            "recovery_point": one.recovery_point,
            "segments": [list(segment) for segment in one.segments],
        }


_BY_SUFFIX: Final[dict[str, Callable[[Path], Iterator[Row]]]] = {
    ".index": _offset_index,
    ".timeindex": _time_index,
    ".txnindex": _transaction_index,
    ".snapshot": _snapshot,
}
_BY_NAME: Final[dict[str, Callable[[Path], Iterator[Row]]]] = {
    LEADER_EPOCHS: _leader_epochs,
    PARTITION_METADATA: _partition_metadata,
    STATE_FILE: _state,
}
