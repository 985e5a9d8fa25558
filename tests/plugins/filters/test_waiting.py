"""A caller that waits for a filter or for dead letters is always answered in the end: when writes cross, when the
broker stops; and no other caller waits for them."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import trio

from leafcuttr.config.topic import TopicConfig
from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.state.chains import Instance, Tables
from leafcuttr_sdk import BrokerError, DeadLetter, NewBatch, Plugin, Record
from leafcuttr_sdk.types import TopicPartition
from support.live_broker import live_broker, serve_here
from support.logs import batch, begin_write, stage_here, would_wait
from support.waiting import eventually


def refuse_own(record: Record) -> Any:
    """Records of producers are dead letters; it gets no others."""
    return DeadLetter("no")


def made(_: str, __: TopicConfig) -> Instance:
    return Instance("tests", refuse_own)


TABLES = Tables({"all": made}, {})


def test_dead_letters_that_share_their_write_with_those_of_clients(tmp_path: Path) -> None:
    """Each of two topics is the other's dead-letter topic. A write that holds dead letters of one also holds batches
    that have left some for the other: neither may wait for the other."""
    with live_broker(tmp_path) as live:
        live.call(live.broker.chains.equip, TABLES)
        view = make_broker_view(live.broker, Plugin("p", 1, "Produces."))

        async def produce() -> None:
            for topic, other in (("a", "b"), ("b", "a")):
                config = {
                    "lc.filters": "all",
                    "lc.filters.dead.letter.topic": other,
                    "lc.log.sync.always": "true",
                }
                await view.topics.create(topic, partitions=1, configs=config)

            async def some(topic: str) -> None:
                for _ in range(20):
                    await view.produce(topic, b"x")

            with trio.fail_after(60):
                async with trio.open_nursery() as nursery:
                    for topic in ("a", "b") * 10:
                        nursery.start_soon(some, topic)
            assert live.broker.dead_letters.written == {"a": 200, "b": 200}

        live.run(produce)


async def test_a_broker_that_is_cancelled_while_a_producer_waits(tmp_path: Path) -> None:
    """The write lands after the cancellation; a caller that cannot be cancelled meanwhile is still told of its dead
    letters."""
    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            broker = await serve_here(nursery, tmp_path)
            broker.chains.equip(TABLES)
            await make_broker_view(broker, Plugin("p", 1, "Produces.")).topics.create(
                "t", configs={"lc.filters": "all"}
            )
            log = broker.topics.by_name["t"].partitions[0].log
            stage_here(log, memoryview(batch(3)))
            assert would_wait(log)
            pending = begin_write(log)
            assert pending is not None
            nursery.cancel_scope.cancel()
            await pending.wait()
            assert pending.failure is None
    assert broker.dead_letters.written.get("t.dlq", 0) + broker.dead_letters.lost.get("t.dlq", 0) == 3


def test_a_filter_that_hangs_holds_up_its_topic_only(tmp_path: Path) -> None:
    """Many producers of one topic wait for a filter that does not end: others' batches are taken apart meanwhile."""
    hangs, end = threading.Event(), threading.Event()

    def hang(record: Record) -> Any:
        hangs.set()
        assert end.wait(60)
        return record

    tables = Tables({"hang": lambda *_: Instance("tests", hang)}, {})
    with live_broker(tmp_path) as live:
        live.call(live.broker.chains.equip, tables)
        view = make_broker_view(live.broker, Plugin("p", 1, "Produces."))
        large = bytes(batch(2000))  # of which a worker takes care

        async def append(topic: str) -> None:
            (answer,) = await view.append([NewBatch(TopicPartition(topic, 0), large)])
            assert not isinstance(answer, BrokerError)

        async def produce() -> None:
            await view.topics.create("hung", partitions=1, configs={"lc.filters": "hang"})
            await view.topics.create("fine", partitions=1, configs={"compression.type": "zstd"})
            try:
                with trio.fail_after(60):
                    async with trio.open_nursery() as nursery:
                        for _ in range(10):
                            nursery.start_soon(append, "hung")
                        await eventually(hangs.is_set, "the filter that hangs")
                        await append("fine")
                        end.set()
            finally:
                end.set()

        live.run(produce)
        assert live.log("hung").log_end_offset == 10 * 2000
