"""Heartbeats, offset syncs and checkpoints as they are written to a cluster over TCP."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
import trio

from forward.clusters import open_peer
from leafcuttr.state.broker import Broker
from leafcuttr_forward.flows.positions import batch_of
from leafcuttr_forward.flows.report import Written
from leafcuttr_forward.mm2.emitting import CheckpointEmitter, SyncEmitter, beat, keep_up
from leafcuttr_forward.mm2.internal import records_of, writing
from leafcuttr_forward.mm2.plan import FlowPlan, HeartbeatPlan, MirrorPlan
from leafcuttr_forward.mm2.planning import read_plan
from leafcuttr_forward.mm2.records import Checkpoint, Heartbeat, OffsetSync
from leafcuttr_forward.mm2.syncs import SyncStore
from leafcuttr_forward.relay.running import CommandClock
from leafcuttr_sdk.errors import NotCoordinator, RequestTimedOut
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.peers import Peer
from leafcuttr_sdk.records import NewBatch
from leafcuttr_sdk.types import TopicPartition
from support.waiting import eventually

Serve = Callable[..., Awaitable[Broker]]
LOGGER = logging.getLogger("tests.forward.mm2")
CLOCK = CommandClock()
TEXT = (
    "clusters=a,b\na.bootstrap.servers=x:1\nb.bootstrap.servers=y:1\na->b.enabled=true\n"
    "offset-syncs.topic.location=target\n"
)
WORK, THERE = TopicPartition("work", 0), TopicPartition("a.work", 0)


def plan() -> MirrorPlan:
    found, said = read_plan(TEXT)
    assert found is not None, said
    return found


def flow() -> FlowPlan:
    return plan().flows[0]


def address(broker: Broker) -> str:
    listener = broker.listeners[0]
    return f"{listener.host}:{listener.port}"


def beats() -> HeartbeatPlan:
    return replace(plan().heartbeats[0], interval_s=0.01)


async def test_heartbeats_are_written_at_the_interval(serve: Serve, nursery: trio.Nursery) -> None:
    async with open_peer({"bootstrap.servers": address(await serve())}) as peer:
        silent = True
        written = 0

        def is_silent() -> bool:
            nonlocal written
            written += not silent
            return silent

        async def run() -> None:
            await beat(beats(), peer, clock=CLOCK, logger=LOGGER, silent=is_silent)

        nursery.start_soon(run)
        await eventually(lambda: peer_has(peer, "heartbeats"), "the topic")
        await trio.sleep(0.05)
        assert await records_of(peer, "heartbeats") == []
        silent = False
        await eventually(lambda: count_of(peer, "heartbeats", 2), "heartbeats")
        found = [Heartbeat.parse(key, value) for key, value in await records_of(peer, "heartbeats")]
        assert {one[:2] for one in found} == {("a", "b")}
        assert abs(found[0].timestamp - CLOCK.now_ms()) < 60_000
        config = (await peer.topic_configs(["heartbeats"]))["heartbeats"]
        assert config["cleanup.policy"] == "compact"
        assert (await peer.topics(["heartbeats"]))["heartbeats"].partitions == 1


async def peer_has(peer: Peer, topic: str) -> bool:
    return topic in await peer.topics([topic])


async def count_of(peer: Peer, topic: str, count: int) -> bool:
    return len(await records_of(peer, topic)) >= count


def wrote(first: int, count: int, down: int, *, source: int = 0, target: int = 0) -> Written:
    return Written(
        TopicPartition("work", source), first, first + count, TopicPartition("a.work", target), down, count, 0
    )


def emitter() -> SyncEmitter:
    found = flow()
    assert found.offset_syncs is not None
    return SyncEmitter(found.offset_syncs, remote=found.policy.remote, clock=CLOCK, logger=LOGGER)


async def test_offset_syncs_are_written_and_known_after_a_restart(serve: Serve) -> None:
    topic = "mm2-offset-syncs.a.internal"
    async with open_peer({"bootstrap.servers": address(await serve())}) as peer:
        first = emitter()
        first.on_written([wrote(0, 10, 0)])  # before it runs
        assert first.store.translate(WORK, 5) is None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(first.run, peer)
            await eventually(lambda: count_of(peer, topic, 2), "the first")
            first.on_written([wrote(10, 5, 10)])  # not due, but written in a while
            await eventually(lambda: count_of(peer, topic, 3), "what is not due")
            assert first.store.translate(WORK, 14) == 14
            nursery.cancel_scope.cancel()
        found = [OffsetSync.parse(key, value) for key, value in await records_of(peer, topic)]
        assert [(one.upstream, one.downstream) for one in found] == [(0, 0), (9, 9), (14, 14)]
        second = emitter()
        await second.load(peer)
        assert second.store.translate(WORK, 14) == 14


async def test_what_cannot_be_read_is_no_offset_sync(serve: Serve) -> None:
    async with open_peer({"bootstrap.servers": address(await serve())}) as peer:
        async with writing(peer, "mm2-offset-syncs.a.internal", 1, LOGGER) as writer:
            await writer.write(
                [(b"?", b"?"), (OffsetSync(WORK, 3, 2).key(), OffsetSync(WORK, 3, 2).value())], 1
            )
        found = emitter()
        await found.load(peer)
        assert found.store.translate(WORK, 3) == 2


async def test_a_partition_that_goes_to_one_of_another_number_has_no_syncs() -> None:
    found = emitter()
    found.on_written([wrote(0, 10, 0, source=1, target=0)])
    assert not found._due


async def test_what_went_to_another_topic_has_no_syncs() -> None:
    """Dead letters, and what a filter has routed: their offsets are others'."""
    found = emitter()
    found.on_written([wrote(0, 10, 0)._replace(target=TopicPartition("dead", 0))])
    assert not found._due
    found.on_written([wrote(0, 10, 0)])
    assert found._due


def checkpoints(store: SyncStore, owned: Callable[[], bool] = lambda: True) -> CheckpointEmitter:
    found = flow()
    assert found.checkpoints is not None
    emitted = replace(found.checkpoints, emit_s=0.02, refresh_s=0.02, sync_s=0.02)
    return CheckpointEmitter(found, emitted, store, clock=CLOCK, logger=LOGGER, owned=owned)


def store() -> SyncStore:
    made = SyncStore()
    made.add(OffsetSync(WORK, 0, 0))
    made.add(OffsetSync(WORK, 10, 7))
    return made


async def test_checkpoints_are_written_once_and_committed(serve: Serve) -> None:
    """Source and target are one broker here: groups are looked for in the one, and committed in the other."""
    topic = "a.checkpoints.internal"
    async with open_peer({"bootstrap.servers": address(await serve())}) as peer:
        for name in ("work", "a.work", "other"):
            await peer.create_topic(name, partitions=1)
        await peer.commit(
            "readers", {WORK: CommittedOffset(10, "m"), TopicPartition("other", 0): CommittedOffset(1)}
        )
        await peer.commit("console-consumer-1", {WORK: CommittedOffset(10)})
        owned = False
        async with trio.open_nursery() as nursery:
            nursery.start_soon(checkpoints(store(), lambda: owned).run, peer, peer)
            await eventually(lambda: peer_has(peer, topic), "the topic")
            await trio.sleep(0.1)
            assert await records_of(peer, topic) == []
            owned = True
            await eventually(lambda: count_of(peer, topic, 1), "the checkpoint")

            async def committed() -> bool:
                return (await peer.committed("readers")).get(THERE) == CommittedOffset(7, "m")

            await eventually(committed, "the commit")
            await peer.commit("readers", {WORK: CommittedOffset(11)})
            await eventually(lambda: count_of(peer, topic, 2), "the next one")
            nursery.cancel_scope.cancel()
        found = [Checkpoint.parse(key, value) for key, value in await records_of(peer, topic)]
        assert found == [Checkpoint("readers", THERE, 10, 7, "m"), Checkpoint("readers", THERE, 11, 8)]
        # Another process knows them.
        async with trio.open_nursery() as nursery:
            nursery.start_soon(checkpoints(store()).run, peer, peer)
            await trio.sleep(0.3)
            assert await count_of(peer, topic, 2) and not await count_of(peer, topic, 3)
            nursery.cancel_scope.cancel()


async def test_a_cluster_that_is_away_is_one_line(
    caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    calls = 0

    async def attempt() -> None:
        nonlocal calls
        calls += 1
        raise RequestTimedOut("nobody answers") if calls < 5 else NotCoordinator("something else")

    with trio.move_on_after(100):
        await keep_up(attempt, "heartbeats of a->b", LOGGER)
    assert calls > 6
    assert [record.getMessage() for record in caplog.records] == [
        "heartbeats of a->b: nobody answers; it is tried again",
        "heartbeats of a->b: something else; it is tried again",
    ]


async def test_what_was_aborted_is_no_record(serve: Serve) -> None:
    """MirrorMaker with exactly once writes its checkpoints in transactions."""
    async with open_peer({"bootstrap.servers": address(await serve())}) as peer:
        await peer.create_topic("t", partitions=1)
        async with peer.transaction("writer") as producer:
            for key in (b"1", b"2", b"3"):
                async with producer.begin() as transaction:
                    batch = batch_of({key: b"v"}, CLOCK.now_ms())
                    await transaction.append([NewBatch(TopicPartition("t", 0), batch)])
                    if key == b"2":
                        await transaction.abort()
        assert [key for key, _ in await records_of(peer, "t")] == [b"1", b"3"]
