"""Queued messages that are in the log only, read when their turn comes: many with few reads."""

from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from leafcuttr_mqtt.storage.formats import Kind, RecordFormatError, decode_message, kind_of
from leafcuttr_mqtt.storage.topics import QUEUE
from leafcuttr_sdk.batches import Batch, BatchError, batches_in
from leafcuttr_sdk.errors import OffsetOutOfRange

if TYPE_CHECKING:
    from leafcuttr_mqtt.messages import Message
    from leafcuttr_sdk import Broker

_READ_BYTES: Final = 256 * 1024
FAR: Final = 1000
"""Records between two messages, beyond which the second one is read by itself."""
REMEMBERED_BYTES: Final = 4 * 1024 * 1024
"""Of messages that were read a moment ago: many sessions have the same ones, and come back at the same time."""


class Reading:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._remembered: dict[int, Message] = {}
        self._size = 0

    async def load(self, offsets: Iterable[int]) -> "dict[int, Message]":
        """See `Store.load`."""
        found: dict[int, Message] = {}
        missing: list[int] = []
        for offset in sorted(set(offsets)):
            known = self._remembered.get(offset)
            if known is None:
                missing.append(offset)
            else:
                found[offset] = known
        at = 0
        while at < len(missing):
            first = missing[at]
            info = self._broker.topics.get(QUEUE.topic)
            if info is None or first >= info.partitions[0].high_watermark:
                break
            if first < info.partitions[0].log_start_offset:
                at += 1
                continue
            # One that is far from the next is read with its batch alone.
            near = at + 1 < len(missing) and missing[at + 1] - first < FAR
            try:
                read = await self._broker.read_batches(QUEUE, first, max_bytes=_READ_BYTES if near else 1)
            except OffsetOutOfRange:  # deleted meanwhile
                at += 1
                continue
            for batch in batches_in(read.data):
                upto = bisect_left(missing, batch.header.next_offset, at)
                if upto > at:
                    self._take(batch, missing[at:upto], found)
                    at = upto
            at = max(at, bisect_left(missing, read.next_offset, at))
        return found

    def _take(self, batch: Batch, offsets: list[int], found: "dict[int, Message]") -> None:
        """The messages of one batch."""
        wanted, last = set(offsets), offsets[-1]
        try:
            for record in batch.records():
                if record.offset in wanted and record.value is not None:
                    try:
                        if kind_of(record.key) is Kind.QUEUED:
                            found[record.offset] = message = decode_message(record.value)
                            self._remember(record.offset, message)
                    except RecordFormatError:
                        continue
                if record.offset >= last:
                    return
        except BatchError:
            return

    def _remember(self, offset: int, message: "Message") -> None:
        self._remembered[offset] = message
        self._size += len(message.payload) + 500
        while self._size > REMEMBERED_BYTES and self._remembered:
            oldest = next(iter(self._remembered))
            self._size -= len(self._remembered.pop(oldest).payload) + 500
