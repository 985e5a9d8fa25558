"""Transaction markers: the control batch of one record that ends a transaction in a partition (KIP-98).

    key    version i16 = 0 | type i16: 0 abort, 1 commit
    value  version i16 = 0 | epoch of the transaction coordinator i32

The batch has the control and the transactional bit, the producer's id and epoch, no sequence number, and is never
compressed. What a marker does to a partition is `leafcuttr.log.producers.state`.
"""

import struct
from typing import Final, NamedTuple

from leafcuttr.wire.batch import COUNT_AT, HEADER_SIZE
from leafcuttr.wire.errors import MalformedRecord, WireError
from leafcuttr.wire.records import Record, control_record, decode_records, encode_batch

ABORT: Final = 0
COMMIT: Final = 1

_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")
_COUNT: Final = struct.Struct(">i")


class Marker(NamedTuple):
    """The end of a transaction."""

    commit: bool
    coordinator_epoch: int


def encode_marker(
    producer_id: int,
    producer_epoch: int,
    marker: Marker,
    *,
    timestamp: int,
    log_append_time: bool = False,
) -> bytearray:
    """The batch, at offset 0. `timestamp` in ms; `log_append_time` says that the topic calls it the broker's."""
    key = _KEY.pack(0, COMMIT if marker.commit else ABORT)
    record = Record(0, timestamp, key, _VALUE.pack(0, marker.coordinator_epoch))
    return encode_batch(
        [record],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        log_append_time=timestamp if log_append_time else None,
        transactional=True,
        control=True,
    )


def read_marker(batch: bytes | bytearray | memoryview) -> Marker | None:
    """What a control batch says about its producer's transaction: None if it is empty (compaction has cleaned the
    transaction away) or of another kind. Raises MalformedRecord."""
    if len(batch) < HEADER_SIZE:
        raise MalformedRecord(f"{len(batch)} bytes are too few for a control batch")
    if not _COUNT.unpack_from(batch, COUNT_AT)[0]:
        return None
    try:
        control = control_record(next(decode_records(batch)))
    except (WireError, StopIteration) as error:
        raise MalformedRecord(f"a control batch cannot be read: {error}") from error
    if control.type not in (ABORT, COMMIT):
        return None
    if control.coordinator_epoch is None:
        raise MalformedRecord("a transaction marker has no coordinator epoch")
    return Marker(control.type == COMMIT, control.coordinator_epoch)
