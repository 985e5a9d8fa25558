"""A data directory that the wheel of a release wrote is opened by this version, and clients find everything in it.

What is in them: `fixtures/make_release.py`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from leafcuttr.config.settings import Settings
from leafcuttr.log.layout.checkpoints import read_offsets
from leafcuttr.offline.verify import verify_directory
from leafcuttr.runtime.clock import SystemClock
from leafcuttr.state.broker import open_broker
from leafcuttr_sdk import TopicPartition as Partition
from support.broker_process import BrokerProcess, running_broker

FIXTURES = Path(__file__).parent / "fixtures"
RELEASES = sorted(path.name for path in FIXTURES.glob("leafcuttr-[0-9]*"))
FOR_EVER = {  # the tests run years after the directories were written
    "log.retention.ms": "-1",
    "offsets.retention.minutes": "2147483647",
    "transactional.id.expiration.ms": "2147483647",
    "log.cleaner.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
}


@pytest.fixture(params=RELEASES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker of this version on a copy of the directory; what it leaves behind has to be sound."""
    shutil.copytree(FIXTURES / request.param, tmp_path / "broker" / "data")
    if not request.param.endswith("-killed"):
        assert verify_directory(tmp_path / "broker" / "data", deep=True).problems == []
    with running_broker(tmp_path / "broker", FOR_EVER) as broker:
        yield broker
    assert verify_directory(tmp_path / "broker" / "data", deep=True).problems == []


def read_all(bootstrap: str, topic: str, isolation: str = "read_uncommitted") -> list[Any]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reads-all",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    first, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    consumer.assign([TopicPartition(topic, 0, first)])
    found = []
    while True:
        message = consumer.poll(30)
        assert message is not None, "neither a record nor the end"
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            consumer.close()
            return found
        found.append(message)


def test_a_release_is_there_closed_and_killed() -> None:
    assert RELEASES[:2] == ["leafcuttr-0.6.0", "leafcuttr-0.6.0-killed"]


READS_ALL = """
import os, sys, trio
from leafcuttr.config.settings import Settings
from leafcuttr.runtime.clock import SystemClock
from leafcuttr.state.broker import open_broker

data, used = os.path.realpath(sys.argv[1]), set()

def watch(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
        if arguments[2] & os.O_ACCMODE != os.O_WRONLY:
            used.add(os.fspath(arguments[0]))
    elif event == "sqlite3.connect":
        used.add(os.fspath(arguments[0]))
    elif event == "os.remove" and str(arguments[0]).endswith((".deleted", ".kafka_cleanshutdown")):
        used.add(os.fspath(arguments[0]))

async def read_all():
    broker = open_broker(Settings({"log.dirs": data, "node.id": "1"}), SystemClock())
    await broker.logs.inspect()
    await broker.logs.remove_deleted()
    for log in broker.logs.logs.values():
        assert log.offline is None, log.offline
        await log.offset_for_timestamp(1)
        for segment in log.segments:
            middle = (segment.base_offset + log.log_end_offset) // 2
            if middle < log.log_end_offset:
                log.read(max(middle, log.log_start_offset), 1, at_least_one=True)
        log.aborted_transactions(log.log_start_offset, log.last_stable_offset)

sys.addaudithook(watch)
trio.run(read_all)
print(*sorted(used), sep="\\n")
sys.stdout.flush()
os._exit(0)  # not a clean stop, which would write files
"""
"""Opens a data directory and reads in it what a broker reads; prints the files that it used by their names."""


@pytest.mark.one_in(2)
@pytest.mark.parametrize("release", RELEASES)
def test_every_file_that_a_release_has_written_is_read_by_its_name(release: str, tmp_path: Path) -> None:
    """Also those whose content is in another file too: the second start has no state file to go by."""
    used: set[Path] = set()
    for without in ((), ("leafcuttr.partitions", ".kafka_cleanshutdown")):
        data = tmp_path / f"without {len(without)}"
        shutil.copytree(FIXTURES / release, data)
        for name in without:
            (data / name).unlink(missing_ok=True)
        ended = subprocess.run(
            [sys.executable, "-c", READS_ALL, str(data)], check=True, capture_output=True, text=True
        )
        used |= {Path(line).relative_to(data) for line in ended.stdout.splitlines() if str(data) in line}
    written = {
        path.relative_to(FIXTURES / release)
        for path in (FIXTURES / release).rglob("*")
        if path.is_file() and path.stat().st_size and not path.name.startswith("metadata.sqlite-")  # SQLite's
    }
    assert written - used == set()


@pytest.mark.parametrize("release", RELEASES)
def test_offsets_are_found_in_the_checkpoints_where_the_state_file_is_lost(
    release: str, tmp_path: Path
) -> None:
    data = Path(shutil.copytree(FIXTURES / release, tmp_path / "data"))
    for name in ("leafcuttr.partitions", ".kafka_cleanshutdown"):
        (data / name).unlink(missing_ok=True)
    broker = open_broker(Settings({"log.dirs": str(data), "node.id": "1"}), SystemClock())
    try:
        log = broker.logs.logs[Partition("segments", 0)]
        assert (log.offline, log.log_start_offset, log.log_end_offset) == (None, 13, 40)
        assert log.recovery_point == read_offsets(data / "recovery-point-offset-checkpoint").get(
            Partition("segments", 0), 0
        )
    finally:
        broker.logs.close()
        broker.metadata.close()


def test_clients_find_everything_that_a_release_has_written(opened: BrokerProcess) -> None:
    bootstrap = opened.address
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        found = read_all(bootstrap, f"codec-{codec}")
        assert [message.offset() for message in found] == list(range(100))
        assert [message.value() for message in found] == [f"value {at} ".encode() * 5 for at in range(100)]
        assert [message.key() for message in found] == [f"key-{at % 7}".encode() for at in range(100)]
        assert all(one.headers() == [("made-by", b"librdkafka"), ("none", None)] for one in found)
    segments = read_all(bootstrap, "segments")
    assert [(one.offset(), one.key()) for one in segments] == [(at, b"%d" % at) for at in range(13, 40)]
    assert [one.timestamp()[1] for one in segments] == [1_700_000_000_000 + 1000 * at for at in range(13, 40)]
    assert [message.value() for message in read_all(bootstrap, "compacted")] == [
        f"state {at}".encode() if at % 9 else None for at in range(30)
    ]
    committed = [f"{number}.{step}".encode() for number in (0, 2, 4) for step in range(3)]
    assert [one.value() for one in read_all(bootstrap, "transactions", "read_committed")] == committed
    assert len(read_all(bootstrap, "transactions")) == 19
    reader = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
    partitions = [TopicPartition("codec-none", 0), TopicPartition("segments", 0)]
    assert [one.offset for one in reader.committed(partitions, timeout=30)] == [42, 17]
    reader.close()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    assert len(admin.list_topics("empty", timeout=30).topics["empty"].partitions) == 3
    resource = ConfigResource(ResourceType.TOPIC, "compacted")
    settings = admin.describe_configs([resource])[resource].result()
    assert (settings["cleanup.policy"].value, settings["compression.type"].value) == ("compact", "zstd")


def test_clients_go_on_where_a_release_has_stopped(opened: BrokerProcess) -> None:
    producer = Producer({"bootstrap.servers": opened.address, "transactional.id": "fixture"})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("segments", b"more", b"40", partition=0)
    producer.send_offsets_to_transaction(
        [TopicPartition("codec-none", 0, 100)], consumer_group("readers", opened.address)
    )
    producer.commit_transaction(60)
    last = read_all(opened.address, "segments", "read_committed")[-1]
    assert (last.offset(), last.value()) == (40, b"more")
    reader = Consumer({"bootstrap.servers": opened.address, "group.id": "readers"})
    assert [one.offset for one in reader.committed([TopicPartition("codec-none", 0)], timeout=30)] == [100]
    reader.close()


def consumer_group(group: str, bootstrap: str) -> Any:
    return Consumer({"bootstrap.servers": bootstrap, "group.id": group}).consumer_group_metadata()
