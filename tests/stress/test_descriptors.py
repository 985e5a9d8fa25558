"""A broker whose table of open files is full: a real process, whose limit is set while it runs.

What one log does without a descriptor is in tests/stress/test_storage.py, the listener's pause in
tests/server/test_listener.py.
"""

from __future__ import annotations

import shutil
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from support import librdkafka
from support.broker_process import BrokerProcess, running_broker, start_broker
from support.descriptors import limited
from support.logs import batch
from support.peer import framed, request_bytes
from support.waiting import until
from support.wire_client import WireClient

TOPICS = [f"t{number}" for number in range(12)]
SETTINGS = {"log.segment.bytes": str(1 << 20), "offsets.topic.num.partitions": "2"}


def open_files(broker: BrokerProcess) -> int:
    return len([*Path(f"/proc/{broker.process.pid}/fd").iterdir()])


def fill(client: WireClient, counts: dict[str, int], times: int, size: int = 300_000) -> None:
    """Every acknowledged record is counted; what is refused for want of a descriptor may be asked for again."""
    for topic in TOPICS:
        for _ in range(times):
            answer = client.produce(topic, batch(size=size))
            assert answer.error_code in (0, ErrorCode.KAFKA_STORAGE_ERROR)
            if not answer.error_code:
                assert answer.base_offset == counts[topic]
                counts[topic] += 1


def assert_all_there(client: WireClient, counts: dict[str, int]) -> None:
    for topic, count in counts.items():
        assert client.list_offset(topic, -1).offset == count
        for offset in range(count):
            answer = client.fetch(topic, offset, max_bytes=1)
            assert answer.error_code == 0
            assert int.from_bytes((answer.records or b"")[:8], "big") == offset


def test_a_full_descriptor_table_harms_nobody_who_is_there(tmp_path: Path) -> None:
    counts = dict.fromkeys(TOPICS, 0)
    with running_broker(tmp_path, SETTINGS) as broker, WireClient(broker.address) as client:
        for topic in TOPICS:
            librdkafka.create(broker.address, topic)
        fill(client, counts, 2)
        group = librdkafka.Group(broker.address, "g", TOPICS)
        with ExitStack() as crowd:
            crowd.callback(group.close)
            assert len(group.take(2 * len(TOPICS))) == 2 * len(TOPICS)
            with limited(broker, 10):
                late = [
                    crowd.enter_context(socket.create_connection((broker.host, broker.port)))
                    for _ in range(30)
                ]
                until(lambda: "pauses" in broker.log or "accepting no more" in broker.log, "a pause")
                before = dict(counts)
                fill(client, counts, 6)  # rolls every log more than once
                assert counts != before
                for topic in TOPICS:
                    code = client.fetch(topic, 0).error_code
                    assert code in (0, ErrorCode.KAFKA_STORAGE_ERROR)
            for sock in late:
                sock.settimeout(60)
                sock.sendall(bytes.fromhex("0000000a00120000000000010000"))  # ApiVersions
                assert sock.recv(4)
            group.take(sum(counts.values()) - sum(before.values()), seconds=60)
            group.commit()
        fill(client, counts, 1)
        assert_all_there(client, counts)
        assert broker.log.count("pauses") <= 1
        assert "offline" not in broker.log
        assert "Traceback" not in broker.log
        assert len(broker.log.splitlines()) < 12, broker.log
    with running_broker(tmp_path, SETTINGS) as broker, WireClient(broker.address) as client:
        assert_all_there(client, counts)


@pytest.mark.long
def test_a_broker_that_may_have_few_files_starts_and_serves_many_partitions(tmp_path: Path) -> None:
    if shutil.which("prlimit") is None:
        pytest.skip("prlimit (util-linux) is not here")
    counts = dict.fromkeys(TOPICS, 0)
    few = ("prlimit", "--nofile=64:64")
    with running_broker(tmp_path, SETTINGS) as broker, WireClient(broker.address) as client:
        for topic in TOPICS:
            librdkafka.create(broker.address, topic)
        fill(client, counts, 5)
    for how in ("after a clean stop", "after a kill"):
        broker = start_broker(tmp_path, SETTINGS, before=few)
        try:
            with WireClient(broker.address) as client:
                assert_all_there(client, counts)
                before = dict(counts)
                fill(client, counts, 1)
                assert counts == {topic: count + 1 for topic, count in before.items()}
            assert "offline" not in broker.log, how
            assert "Traceback" not in broker.log
        finally:
            broker.process.kill()
            broker.process.wait()
    with running_broker(tmp_path, SETTINGS) as broker, WireClient(broker.address) as client:
        assert_all_there(client, counts)


def test_a_topic_that_cannot_be_made_for_want_of_descriptors_leaves_nothing(tmp_path: Path) -> None:
    with running_broker(tmp_path, SETTINGS) as broker, WireClient(broker.address) as client:
        librdkafka.create(broker.address, "warm")  # what a creation needs is imported
        topic = CreatableTopic(name="t", num_partitions=3, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        with limited(broker, 0):
            code = client.ask(request, 7).topics[0].error_code
        if code:  # hardly ever not: something has just closed a file
            assert code == ErrorCode.KAFKA_STORAGE_ERROR
            librdkafka.create(broker.address, "t", 3)
        assert client.produce("t", batch(), partition=2).base_offset == 0
        assert "Traceback" not in broker.log


@pytest.mark.long
def test_peers_that_read_nothing_do_not_take_all_descriptors(tmp_path: Path) -> None:
    """Each of them fetches from more partitions than the process may have files, again and again."""
    if shutil.which("prlimit") is None:
        pytest.skip("prlimit (util-linux) is not here")
    count, few = 100, ("prlimit", "--nofile=128:128")
    every = [FetchPartition(partition=index, partition_max_bytes=1 << 20) for index in range(count)]
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=1 << 28, topics=[FetchTopic(topic="many", partitions=every)]
    )
    broker = start_broker(tmp_path, SETTINGS, before=few)
    try:
        with ExitStack() as peers, WireClient(broker.address) as client:
            librdkafka.create(broker.address, "many", count)
            librdkafka.create(broker.address, "other", 20)
            for index in range(count):
                assert client.produce("many", batch(size=20_000), partition=index).error_code == 0
            for _ in range(8):
                deaf = peers.enter_context(socket.socket())
                deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                deaf.connect((broker.host, broker.port))
                deaf.sendall(framed(request_bytes(request, 12)) * 20)
                assert deaf.recv(1)
            for index in range(20):
                assert client.produce("other", batch(), partition=index).error_code == 0
            parts = client.ask(request, 12).responses[0].partitions
            assert {part.error_code for part in parts} == {0}
            assert any(part.records for part in parts)
            with WireClient(broker.address) as late:
                assert late.produce("other", batch()).base_offset == 1
            librdkafka.create(broker.address, "new", 3)
        assert "Too many open files" not in broker.log
        assert "Traceback" not in broker.log
    finally:
        assert broker.stop() == 0
