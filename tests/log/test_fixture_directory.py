"""A data directory that an earlier version left behind is opened by this one, and nothing in it is lost."""

import shutil
from pathlib import Path

import pytest

from leafcuttr.log.append.rules import Origin
from leafcuttr.log.layout.directory import FORMAT_VERSION
from leafcuttr.log.log import Log
from leafcuttr.offline.verify import verify_directory
from leafcuttr.wire.batch import parse
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record, decode_records, encode_batch
from leafcuttr_sdk import TopicPartition
from support.live_broker import opening
from support.logs import HandClock, append

FIXTURES = Path(__file__).parent / "fixtures"
NOW = 1_800_000_000_000


def read_all(log: Log) -> list[tuple[int, Record]]:
    """(codec, record) of the whole log."""
    found: list[tuple[int, Record]] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        region = log.read(offset, 1 << 20, at_least_one=True).region
        assert region is not None
        content, at = region.read(), 0
        while at < len(content):
            header = parse(content, at)
            found += [(header.codec, record) for record in decode_records(content[at : at + header.size])]
            offset, at = header.next_offset, at + header.size
    return [(codec, record) for codec, record in found if record.offset >= log.log_start_offset]


@pytest.mark.parametrize("version", range(1, FORMAT_VERSION + 1))
def test_every_format_is_opened_and_read(tmp_path: Path, version: int) -> None:
    data = Path(shutil.copytree(FIXTURES / f"leafcuttr-format-{version}", tmp_path / "data"))
    assert verify_directory(data, deep=True).problems == []
    with opening(data, HandClock(NOW)) as start:
        broker = start()
        assert sorted(broker.topics.by_name) == ["empty", "orders", "settings"]
        assert [len(broker.topics.by_name[name].partitions) for name in ("empty", "orders", "settings")] == [
            3,
            2,
            1,
        ]
        assert broker.topics.by_name["settings"].overrides == {
            "cleanup.policy": "compact",
            "compression.type": "zstd",
        }
        orders = broker.logs.logs[TopicPartition("orders", 0)]
        assert (orders.log_start_offset, orders.log_end_offset, len(orders.segments)) == (4, 30, 3)
        for codec, record in read_all(orders):
            number = record.offset
            assert codec == number % 5
            assert record == Record(
                number, NOW + number, b"key-%d" % number, b"value %d " % number * 5, (("h", b"%d" % number),)
            )
        settings = read_all(broker.logs.logs[TopicPartition("settings", 0)])
        assert [(codec, record.value) for codec, record in settings] == [
            (Codec.ZSTD, b"state %d" % number) for number in range(10)
        ]
        again = encode_batch(
            [Record(0, NOW, b"key", b"again")], producer_id=7, producer_epoch=0, base_sequence=29
        )
        assert orders.stage(memoryview(again), Origin.CLIENT, now_ms=NOW).duplicate
        following = encode_batch(
            [Record(0, NOW, b"key", b"more")], producer_id=7, producer_epoch=0, base_sequence=30
        )
        assert append(orders, following, NOW) == 30
    assert verify_directory(data, deep=True).problems == []
