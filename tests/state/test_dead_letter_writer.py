"""Dead letters on their way: what counts as written, what as lost, and what happens to those posted after the stop."""

import errno
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from leafcuttr.log.append import commit
from leafcuttr.log.append.chain.dead_letters import Letter, Letters
from leafcuttr.log.log import Log
from leafcuttr.state.broker import Broker
from leafcuttr.state.dead_letter_writer import DeadLetterWriter
from leafcuttr.wire.compression import Codec
from leafcuttr_sdk import TopicPartition
from leafcuttr_sdk.records import Record

Start = Callable[..., Broker]


def post(writer: DeadLetterWriter, *values: bytes, offset: int = 7) -> Letters:
    """Post the dead letters of one batch for the topic `dead`."""
    letters = [Letter(at, Record(value), "dead", "no", "sieve") for at, value in enumerate(values)]
    posted = Letters(TopicPartition("t", 0), offset, letters, Codec.NONE, writer.post)
    posted.post()
    return posted


async def synced_topic(broker: Broker) -> Log:
    """`dead`, in topic sync mode: a worker thread writes, and the write is in flight meanwhile."""
    topic = await broker.topics.create("dead", 1, {"lc.log.sync.always": "true", "segment.bytes": "1048576"})
    return topic.partitions[0].log


def fail_write(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The write of this number, from 1 on, finds no space."""
    written, calls = commit.write_all, 0

    def write(fd: int, views: list[memoryview | bytearray], position: int, size: int) -> None:
        nonlocal calls
        calls += 1
        if calls == number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written(fd, views, position, size)

    monkeypatch.setattr(commit, "write_all", write)


@asynccontextmanager
async def running(writer: DeadLetterWriter) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(writer.run)
        try:
            yield
        finally:
            writer.stop()


async def until_finished(letters: Letters) -> None:
    finished = trio.Event()
    letters.when_finished(finished.set)
    with trio.fail_after(30):
        if not letters.finished:
            await finished.wait()


async def test_letters_whose_write_in_flight_fails_are_lost(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broker = start()
    writer, log = broker.dead_letters, await synced_topic(broker)
    async with running(writer):
        fail_write(monkeypatch, 1)
        await until_finished(post(writer, b"1", b"2"))
        assert (writer.written, writer.lost, log.log_end_offset) == ({}, {"dead": 2}, 0)
        assert "No space left on device" in writer.trouble["dead"]
        assert (
            "2 dead letters of t-0, from offset 7 on, cannot be written to dead and are lost" in caplog.text
        )
        await until_finished(post(writer, b"3"))
        assert (writer.written, writer.lost, log.log_end_offset) == ({"dead": 1}, {"dead": 2}, 1)
        assert writer.trouble == {}


async def test_letters_before_the_failure_in_the_same_flight_are_written(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each fills a segment. The first flies alone, the other two together, and the last of them fails."""
    broker = start()
    writer, log = broker.dead_letters, await synced_topic(broker)
    async with running(writer):
        fail_write(monkeypatch, 3)
        await until_finished(post(writer, *(bytes(600_000) for _ in range(3))))
        assert (writer.written, writer.lost, log.log_end_offset) == ({"dead": 2}, {"dead": 1}, 2)


async def test_letters_posted_after_the_stop_are_lost_and_not_waited_for(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    broker = start()
    writer, log = broker.dead_letters, await synced_topic(broker)
    async with running(writer):
        await until_finished(post(writer, b"1"))
    letters = post(writer, b"2", b"3", offset=9)
    assert letters.finished, "a batch is answered once its dead letters are finished"
    assert (writer.written, writer.lost, log.log_end_offset) == ({"dead": 1}, {"dead": 2}, 1)
    assert writer.trouble == {"dead": "the broker has stopped"}
    assert "2 dead letters of t-0, from offset 9 on" in caplog.text
    await writer.write_posted()
    assert log.log_end_offset == 1


async def test_letters_posted_before_the_stop_are_written_by_it(start: Start) -> None:
    broker = start()
    writer, log = broker.dead_letters, await synced_topic(broker)
    writer.stop()
    letters = post(writer, b"1", b"2")
    assert not letters.finished
    with trio.fail_after(30):
        await writer.run()
    assert letters.finished
    assert (writer.written, writer.lost, log.log_end_offset) == ({"dead": 2}, {}, 2)
