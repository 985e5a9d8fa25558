"""The bytes of `__transaction_state`: keys and values as Kafka 4.3 writes them, and back.

Values are of version 1, which carries the epochs' bookkeeping of KIP-890, unless `transaction.version` is 0.
"""

import struct
from collections.abc import Sequence
from typing import Final

from leafcuttr.state.transactions.machine import Snapshot
from leafcuttr.state.transactions.states import STORED, TransactionState
from leafcuttr.wire.codec import decode, writer
from leafcuttr.wire.errors import MalformedMessage
from leafcuttr.wire.messages.internal.transaction_log import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from leafcuttr_sdk import TopicPartition

_VERSION: Final = struct.Struct(">h")
_KEY: Final = 0


def transaction_key(transactional_id: str) -> bytes:
    out = bytearray(_VERSION.pack(_KEY))
    writer(TransactionLogKey, _KEY)(TransactionLogKey(transactional_id=transactional_id), out, [])
    return bytes(out)


def transaction_value(snapshot: Snapshot, version: int) -> bytes:
    """The value in `version` 0 or 1."""
    value = TransactionLogValue(
        producer_id=snapshot.producer_id,
        previous_producer_id=snapshot.previous_id,
        next_producer_id=snapshot.next_id,
        producer_epoch=snapshot.epoch,
        transaction_timeout_ms=snapshot.timeout_ms,
        transaction_status=snapshot.state,
        # Kafka writes null, not an empty list, for a transaction that has not begun.
        transaction_partitions=None
        if snapshot.state is TransactionState.EMPTY
        else _by_topic(snapshot.partitions),
        transaction_last_update_timestamp_ms=snapshot.updated_ms,
        transaction_start_timestamp_ms=snapshot.started_ms,
        client_transaction_version=snapshot.version,
    )
    out = bytearray(_VERSION.pack(version))
    writer(TransactionLogValue, version)(value, out, [])
    return bytes(out)


def parse_key(key: bytes) -> str | None:
    """The transactional id; None for a key of a kind that is not known. Raises WireError."""
    if _version(key) != _KEY:
        return None
    return decode(TransactionLogKey, _KEY, memoryview(key)[_VERSION.size :]).transactional_id


def parse_value(value: bytes) -> Snapshot:
    """Raises WireError."""
    found = decode(TransactionLogValue, _version(value), memoryview(value)[_VERSION.size :])
    try:
        state = TransactionState(found.transaction_status)
    except ValueError:
        raise MalformedMessage(f"there is no transaction state {found.transaction_status}") from None
    if state not in STORED:
        raise MalformedMessage(f"no transaction is stored in state {state.title}")
    return Snapshot(
        producer_id=found.producer_id,
        epoch=found.producer_epoch,
        state=state,
        timeout_ms=found.transaction_timeout_ms,
        partitions=frozenset(
            TopicPartition(each.topic, partition)
            for each in found.transaction_partitions or ()
            for partition in each.partition_ids
        ),
        updated_ms=found.transaction_last_update_timestamp_ms,
        started_ms=found.transaction_start_timestamp_ms,
        previous_id=found.previous_producer_id,
        next_id=found.next_producer_id,
        version=found.client_transaction_version,
    )


def _by_topic(partitions: frozenset[TopicPartition]) -> Sequence[PartitionsSchema]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return [PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in topics.items()]


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise MalformedMessage(f"{len(data)} bytes are too few for a record of an internal topic")
    version: int = _VERSION.unpack_from(data)[0]
    return version
