"""Broker settings of the coordinators' topics and of how they are written and read: each acts, seen in the files, in
the answers, or in what a start reads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.log.files.region import FileRegion
from leafcuttr.state.groups.committing import Committer, NewOffset
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.messages.init_producer_id import InitProducerIdRequest
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from leafcuttr.wire.messages.offset_fetch import OffsetFetchRequest
from leafcuttr_sdk import TopicPartition
from support import librdkafka
from support.groups import commit_request
from support.live_broker import LiveBroker
from support.waiting import until
from support.wire_client import WireClient

OFFSETS, STATE = "__consumer_offsets", "__transaction_state"
MIB = 1 << 20
# Else it begins at the start, and on a slow machine it leaves less to be read.
NO_CLEANER = {"log.cleaner.enable": "false"}
NOT_YET_S = 0.3
"""So long a test watches for what must not happen; it is no measure of speed."""


def commit(client: WireClient, group: str, offset: int) -> int:
    answer = client.ask(commit_request(group, {0: offset}), 8)
    return int(answer.topics[0].partitions[0].error_code)


def committed(client: WireClient, group: str) -> int:
    found = client.ask(OffsetFetchRequest(group_id=group, topics=None), 7).topics
    return int(found[0].partitions[0].committed_offset) if found else -1


def prepared(broker: LiveBroker) -> None:
    """A topic, and a coordinator that takes commits for it."""
    librdkafka.create(broker.address, "t")
    with WireClient(broker.address) as client:
        until(lambda: commit(client, "first", 1) == 0, "the coordinator")


def partitions(broker: LiveBroker, topic: str) -> int:
    with WireClient(broker.address) as client:
        (found,) = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 9).topics
        return len(found.partitions)


def begin_transactions(broker: LiveBroker) -> Any:
    """An id that is ready, as (error, producer id, epoch)."""
    with WireClient(broker.address) as client:
        request = InitProducerIdRequest(transactional_id="id", transaction_timeout_ms=60_000)
        until(lambda: client.ask(request, 4).error_code == 0, "the coordinator of transactions")
        return client.ask(request, 4)


@contextmanager
def released(event: threading.Event) -> Iterator[None]:
    """However a test ends, what waits for this goes on: the broker could not stop otherwise."""
    try:
        yield
    finally:
        event.set()


# The topics


@pytest.mark.setting("offsets.topic.num.partitions")
def test_offsets_topic_num_partitions(serve: Any) -> None:
    with serve({"offsets.topic.num.partitions": "7"}) as broker:
        prepared(broker)
        assert partitions(broker, OFFSETS) == 7
    with serve({"offsets.topic.num.partitions": "9"}) as broker:
        assert partitions(broker, OFFSETS) == 7, "fixed once it exists"


@pytest.mark.setting("transaction.state.log.num.partitions")
def test_transaction_state_log_num_partitions(serve: Any) -> None:
    with serve({"transaction.state.log.num.partitions": "7"}) as broker:
        begin_transactions(broker)
        assert partitions(broker, STATE) == 7


@pytest.mark.setting("offsets.topic.compression.codec")
def test_offsets_topic_compression_codec(serve: Any) -> None:
    with serve() as broker:
        prepared(broker)
        assert {header.codec for header in broker.stored(OFFSETS)} == {Codec.NONE}
    with serve({"offsets.topic.compression.codec": "4"}) as broker:
        with WireClient(broker.address) as client:
            until(lambda: commit(client, "second", 2) == 0, "the coordinator")
            assert committed(client, "first") == 1
        assert broker.stored(OFFSETS)[-1].codec == Codec.ZSTD
    with serve() as broker, WireClient(broker.address) as client:
        until(lambda: committed(client, "second") == 2, "the offsets, read back")


def sizes_after_commits(broker: LiveBroker) -> list[int]:
    """The sizes of the segments of some megabytes of commits."""

    async def commits() -> None:
        topic, offsets = broker.broker.topics.by_name["t"], broker.broker.groups.offsets
        for offset in range(2000):
            new = NewOffset("t", topic.id, 0, offset, -1, "m" * 3900)
            assert offsets.commit("g", Committer(), [new]) == [ErrorCode.NONE]

    prepared(broker)
    broker.run(commits)
    return [path.stat().st_size for path in broker.files(OFFSETS)]


@pytest.mark.setting("offsets.topic.segment.bytes")
def test_offsets_topic_segment_bytes(serve: Any) -> None:
    with serve({"offsets.topic.segment.bytes": str(MIB)}, directory="small") as broker:
        assert max(sizes_after_commits(broker)) <= MIB
    with serve() as broker:
        assert max(sizes_after_commits(broker)) > 2 * MIB


def sizes_after_transactions(broker: LiveBroker) -> list[int]:
    given = begin_transactions(broker)
    some = [TopicPartition("t", number) for number in range(2000)]

    async def transactions() -> None:
        for number in range(600):
            more = [*some, TopicPartition("t", 2000 + number)]
            assert not broker.broker.transactions.add("id", given.producer_id, given.producer_epoch, more, 2)

    broker.run(transactions)
    return [path.stat().st_size for path in broker.files(STATE)]


@pytest.mark.long
@pytest.mark.setting("transaction.state.log.segment.bytes")
def test_transaction_state_log_segment_bytes(serve: Any) -> None:
    one = {"transaction.state.log.num.partitions": "1"}
    settings = {**one, "transaction.state.log.segment.bytes": str(MIB)}
    with serve(settings, directory="small") as broker:
        assert max(sizes_after_transactions(broker)) <= MIB
    with serve(one) as broker:
        assert max(sizes_after_transactions(broker)) > 2 * MIB


# What a start reads at once


@contextmanager
def reads(monkeypatch: pytest.MonkeyPatch, folder: str) -> Iterator[Callable[[], list[int]]]:
    """How much was read at once of the logs in a folder."""
    found: list[int] = []
    read = FileRegion.read

    def noted(self: FileRegion) -> bytes:
        data = read(self)
        if Path(self._file.path).parent.name == folder:
            found.append(len(data))
        return data

    with monkeypatch.context() as patch:
        patch.setattr(FileRegion, "read", noted)
        yield lambda: found


@pytest.mark.long
@pytest.mark.setting("offsets.load.buffer.size")
def test_offsets_load_buffer_size(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(NO_CLEANER) as broker:
        size = sum(sizes_after_commits(broker))
    small = {**NO_CLEANER, "offsets.load.buffer.size": "20000"}
    for settings, most in ((NO_CLEANER, 5 * MIB), (small, 20_000)):
        with reads(monkeypatch, f"{OFFSETS}-0") as found, serve(settings) as broker:
            with WireClient(broker.address) as client:
                until(lambda: committed(client, "g") == 1999, "the offsets, read back")
            assert sum(found()) >= size
            assert most / 2 < max(found()) <= most
            assert len(found()) >= size / most


@pytest.mark.long
@pytest.mark.setting("transaction.state.log.load.buffer.size")
def test_transaction_state_log_load_buffer_size(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    one = {**NO_CLEANER, "transaction.state.log.num.partitions": "1"}
    with serve(one) as broker:
        size = sum(sizes_after_transactions(broker))
    small = {**one, "transaction.state.log.load.buffer.size": "20000"}
    for settings, least, most in ((one, MIB, 5 * MIB), (small, 10_000, 20_000)):
        with reads(monkeypatch, f"{STATE}-0") as found, serve(settings) as broker:
            until(lambda: not broker.call(lambda: broker.broker.transactions.loading), "the ids")
            assert sum(found()) >= size
            assert least < max(found()) <= most


@pytest.mark.setting("group.coordinator.threads")
def test_group_coordinator_threads(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of eight partitions with something in them so many are read at once."""
    eight = {"offsets.topic.num.partitions": "8"}
    names = [f"g{number}" for number in range(40)]
    with serve(eight) as broker:
        prepared(broker)
        with WireClient(broker.address) as client:
            assert {commit(client, name, 3) for name in names} == {0}
        assert all(broker.files(OFFSETS, partition=number)[0].stat().st_size for number in range(8))
    read, go_on, reading = FileRegion.read, threading.Event(), set[str]()

    def held(self: FileRegion) -> bytes:
        folder = Path(self._file.path).parent.name
        if folder.startswith(OFFSETS):
            reading.add(folder)
            go_on.wait()
        return read(self)

    monkeypatch.setattr(FileRegion, "read", held)
    for threads in (1, 3):
        go_on.clear()
        reading.clear()
        with serve({**eight, "group.coordinator.threads": str(threads)}) as broker, released(go_on):
            until(lambda: len(reading) == threads, "the first partitions")  # noqa: B023
            threading.Event().wait(NOT_YET_S)
            assert len(reading) == threads, "the others have their turn later"
            go_on.set()
            with WireClient(broker.address) as client:
                for name in names:
                    until(lambda: committed(client, name) == 3, "the offsets, read back")  # noqa: B023


# How a commit is written


@pytest.mark.setting("group.coordinator.append.linger.ms")
def test_group_coordinator_append_linger_ms(serve: Any) -> None:
    def batches(broker: LiveBroker, first: int) -> int:
        """How many were written for ten commits that came together."""
        prepared(broker)
        before = len(broker.stored(OFFSETS))
        with ExitStack() as stack:
            clients = [stack.enter_context(WireClient(broker.address)) for _ in range(10)]
            requests = [commit_request(f"g{number}", {0: first + number}) for number in range(10)]
            for client, request in zip(clients, requests, strict=True):
                client.send(request, 8)
            for client, request in zip(clients, requests, strict=True):
                assert client.take(request, 8).topics[0].partitions[0].error_code == 0
            assert [committed(clients[0], f"g{number}") for number in range(10)] == [
                *range(first, first + 10)
            ]
        return len(broker.stored(OFFSETS)) - before

    with serve() as broker:
        assert batches(broker, 100) == 10
        librdkafka.delete(broker.address, "t")
    with serve({"group.coordinator.append.linger.ms": "1000"}) as broker:
        assert batches(broker, 200) < 10
    with serve() as broker, WireClient(broker.address) as client:
        until(lambda: committed(client, "g9") == 209, "the offsets, read back")


def test_what_lingers_when_the_broker_stops_is_written(serve: Any) -> None:
    with serve() as broker:
        prepared(broker)
    with (
        serve({"group.coordinator.append.linger.ms": "600000"}) as broker,
        WireClient(broker.address) as client,
    ):
        until(lambda: committed(client, "first") == 1, "the coordinator")
        client.send(commit_request("g", {0: 7}), 8)
        entry = broker.broker.groups.offsets
        until(lambda: broker.call(lambda: bool(entry._log._gathered)), "the commit")
        assert not broker.call(entry.fetch, "g").get("t")
    with serve() as broker, WireClient(broker.address) as client:
        until(lambda: committed(client, "g") == 7, "the offset")


@pytest.mark.setting("offsets.commit.timeout.ms")
def test_offsets_commit_timeout_ms(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk holds a commit up: the client gets a retriable error, and the commit counts once it is written."""
    fdatasync, stuck, go_on = os.fdatasync, threading.Event(), threading.Event()

    def slow(fd: int) -> None:
        if OFFSETS in str(Path(f"/proc/self/fd/{fd}").readlink()) and stuck.is_set():
            go_on.wait()
        fdatasync(fd)

    monkeypatch.setattr(os, "fdatasync", slow)
    for number, (timeout, told) in enumerate((("100", True), ("600000", False)), 5):
        stuck.clear()
        go_on.clear()
        with (
            serve({"offsets.commit.timeout.ms": timeout}) as broker,
            released(go_on),
            WireClient(broker.address) as client,
        ):
            if number == 5:
                prepared(broker)
                librdkafka.alter(broker.address, "topic", OFFSETS, {"flush.messages": "1"})
            until(lambda: commit(client, "g", 1) == 0, "the coordinator")
            stuck.set()
            if told:
                codes: list[int] = []

                def fifteen_times(client: WireClient = client, codes: list[int] = codes) -> bool:
                    codes.append(commit(client, "g", 5))
                    return len(codes) == 15

                # By default each takes five seconds, all of them more than `until` waits.
                until(fifteen_times, "answers to commits that are held up")
                assert set(codes) == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
                assert committed(client, "g") == 1
                go_on.set()
                until(lambda: committed(client, "g") == 5, "the commit")
            else:
                request = commit_request("g", {0: number})
                client.send(request, 8)
                client.socket.settimeout(NOT_YET_S)
                with pytest.raises(TimeoutError):
                    client.socket.recv(1)
                client.socket.settimeout(60)
                go_on.set()
                assert client.take(request, 8).topics[0].partitions[0].error_code == 0
