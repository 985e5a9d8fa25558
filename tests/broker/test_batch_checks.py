"""What a batch must be to be stored, seen from the wire: a bad one leaves nothing behind."""

from __future__ import annotations

from itertools import pairwise

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.records import Record, encode_batch
from support import librdkafka
from support.live_broker import LiveBroker
from support.logs import NOW, batch, patched
from support.wire_client import WireClient

CORRUPT, INVALID = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD
GOOD = batch(3)
# Where the fields of a batch are (KIP-98).
LENGTH, MAGIC, CRC, ATTRIBUTES, LAST_DELTA, COUNT = 8, 16, 17, 21, 23, 57

BAD = {
    "crc": (patched(GOOD, ">B", CRC, GOOD[CRC] ^ 1, crc=False), CORRUPT),
    "a bit of the last record": (patched(GOOD, ">B", len(GOOD) - 1, GOOD[-1] ^ 1, crc=False), CORRUPT),
    "a bit of the attributes": (patched(GOOD, ">B", ATTRIBUTES, 0x40, crc=False), CORRUPT),
    "count too large": (patched(GOOD, ">i", COUNT, 4), INVALID),
    "count too small": (patched(GOOD, ">i", COUNT, 2), INVALID),
    "count of none": (patched(GOOD, ">i", COUNT, 0), INVALID),
    "count negative": (patched(GOOD, ">i", COUNT, -1), INVALID),
    "last offset delta": (patched(GOOD, ">i", LAST_DELTA, 7), INVALID),
    "length too small": (patched(GOOD, ">i", LENGTH, len(GOOD) - 13, crc=False), CORRUPT),
    "length too large": (patched(GOOD, ">i", LENGTH, len(GOOD) + 1, crc=False), INVALID),
    "length negative": (patched(GOOD, ">i", LENGTH, -1, crc=False), CORRUPT),
    "length below a header": (patched(GOOD, ">i", LENGTH, 20, crc=False), CORRUPT),
    "magic 0": (patched(GOOD, ">B", MAGIC, 0, crc=False), INVALID),
    "magic 1": (patched(GOOD, ">B", MAGIC, 1, crc=False), INVALID),
    "magic 3": (patched(GOOD, ">B", MAGIC, 3, crc=False), CORRUPT),
    "no batch": (b"", INVALID),
    "a torn header": (GOOD[:40], INVALID),
    "a torn batch": (GOOD[:-1], INVALID),
    "two batches": (GOOD + GOOD, INVALID),
    "a control batch": (encode_batch([Record(0, NOW, b"\0\0\0\0", b"")], control=True), INVALID),
    "codec 5": (patched(GOOD, ">h", ATTRIBUTES, 5), None),
    "a base offset": (patched(GOOD, ">q", 0, 5), INVALID),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", BAD)
def test_a_bad_batch_leaves_nothing(live: LiveBroker, topic: str, name: str) -> None:
    data, code = BAD[name]
    with WireClient(live.address) as client:
        answer = client.produce(topic, data)
        assert answer.error_code if code is None else answer.error_code == code
        assert answer.base_offset == -1
        assert client.list_offset(topic, -1).offset == 0
        assert [path.stat().st_size for path in live.files(topic)] == [0]
        assert client.produce(topic, GOOD).base_offset == 0
        assert [header.count for header in live.stored(topic)] == [3]


def test_a_bad_batch_does_not_spoil_its_neighbours(live: LiveBroker, topic: str) -> None:
    """Sent ahead on one connection, as a client with many requests in flight does."""
    librdkafka.create(live.address, f"{topic}-2", 3)
    bad = BAD["crc"][0]
    with WireClient(live.address) as client:
        answers = [
            client.produce(f"{topic}-2", data, partition=at) for at, data in enumerate((GOOD, bad, GOOD))
        ]
        assert [answer.error_code for answer in answers] == [0, CORRUPT, 0]
        answers = [client.produce(topic, data) for data in (GOOD, bad, GOOD)]
        assert [answer.base_offset for answer in answers] == [0, -1, 3]
    stored = live.stored(topic)
    assert all(after.base_offset == before.next_offset for before, after in pairwise(stored))


def test_a_record_is_rejected_with_its_place_in_the_batch(live: LiveBroker, topic: str) -> None:
    librdkafka.alter(live.address, "topic", topic, {"cleanup.policy": "compact"})
    records = [Record(0, NOW, b"k", b""), Record(1, NOW, None, b""), Record(2, NOW, b"k", b"")]
    with WireClient(live.address) as client:
        answer = client.produce(topic, encode_batch(records))
        assert answer.error_code == INVALID
        assert [error.batch_index for error in answer.record_errors] == [1]
        assert client.list_offset(topic, -1).offset == 0
