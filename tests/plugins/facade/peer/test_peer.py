"""This broker as a cluster: its topics, offsets and groups."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest
from trio.testing import MockClock

from leafcuttr.log.layout.checkpoints import LEADER_EPOCHS, write_leader_epochs
from leafcuttr_sdk import EARLIEST, LATEST, CommittedOffset, Record, TopicPartition
from leafcuttr_sdk.errors import (
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicationFactor,
    InvalidTopic,
    PluginError,
    StorageError,
    TopicAlreadyExists,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from plugins.facade.peer.conftest import Live

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NONE = TopicPartition("none", 0)

Run = Callable[..., AbstractAsyncContextManager[Live]]


async def test_what_it_is(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live:
        peer = live.peer
        assert (peer.name, peer.in_process, peer.trouble) == ("this broker", True, None)
        assert await peer.cluster_id() == live.core.cluster_id
        assert await peer.node_count() == 1
        assert await peer.has_transactions()


async def test_topics(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live:
        found = await live.peer.topics(["t", "none"])
        info = live.view.topics.get("t")
        assert info is not None
        assert list(found) == ["t"]
        assert (found["t"].topic_id, found["t"].leader_epochs, found["t"].partitions) == (
            info.topic_id,
            [0, 0],
            2,
        )
        assert not found["t"].internal
        await live.core.groups.ready()
        everything = await live.peer.topics()
        assert everything["__consumer_offsets"].internal
        assert everything["t"] == found["t"]


async def test_a_topic_is_created_and_changed(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live:
        peer = live.peer
        await peer.create_topic("new", partitions=3, replication_factor=1, configs={"retention.ms": "1000"})
        assert (await peer.topics(["new"]))["new"].partitions == 3
        assert await peer.topic_configs(["new", "none"]) == {"new": {"retention.ms": "1000"}}
        await peer.alter_topic("new", {"retention.ms": None, "max.message.bytes": "99"})
        assert await peer.topic_configs(["new"]) == {"new": {"max.message.bytes": "99"}}
        await peer.add_partitions("new", 5)
        assert (await peer.topics(["new"]))["new"].partitions == 5
        with pytest.raises(InvalidPartitions):
            await peer.add_partitions("new", 5)
        for change in (peer.alter_topic("none", {"retention.ms": "1"}), peer.add_partitions("none", 5)):
            with pytest.raises(UnknownTopicOrPartition):
                await change
        with pytest.raises(InvalidConfig):
            await peer.alter_topic("new", {"retention.ms": "soon"})


@pytest.mark.parametrize(
    ("name", "options", "kind"),
    [
        ("t", {"partitions": 1}, TopicAlreadyExists),
        ("a/b", {"partitions": 1}, InvalidTopic),
        ("new", {"partitions": 0}, InvalidPartitions),
        ("new", {"partitions": 1, "replication_factor": 2}, InvalidReplicationFactor),
        ("new", {"partitions": 1, "configs": {"no.such": "1"}}, InvalidConfig),
    ],
)
async def test_topics_that_cannot_be_created(
    run: Run, autojump_clock: MockClock, name: str, options: dict[str, int], kind: type[Exception]
) -> None:
    async with run() as live:
        with pytest.raises(kind):
            await live.peer.create_topic(name, **options)  # type: ignore[arg-type]


async def test_offsets(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live:
        peer = live.peer
        records = [Record(b"a", timestamp=1000), Record(b"b", timestamp=2000), Record(b"c", timestamp=3000)]
        await live.view.produce_batch("t", records, partitions=[0, 0, 0])
        await live.view.topics.delete_records("t", 0, 1)
        assert await peer.offsets({T0: EARLIEST, T1: EARLIEST, NONE: EARLIEST}) == {T0: 1, T1: 0}
        assert await peer.offsets({T0: LATEST}) == {T0: 3}
        assert await peer.offsets({T0: 2500, T1: 2500}) == {T0: 2, T1: 0}
        assert await peer.offsets({T0: 4000}) == {T0: 3}
        async with peer.transaction("mine") as producer, producer.begin() as transaction:
            await transaction.produce_batch("t", [Record(b"d", timestamp=5000)], partitions=[0])
            assert await peer.offsets({T0: LATEST}) == {T0: 4}
            assert await peer.offsets({T0: LATEST}, committed=True) == {T0: 3}
            assert await peer.offsets({T0: 5000}) == {T0: 3}
            assert await peer.offsets({T0: 2500}, committed=True) == {T0: 2}
            assert await peer.offsets({T0: 9000}, committed=True) == {T0: 3}
            await transaction.abort()


async def test_where_an_epoch_ended(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live:
        await live.view.produce_batch("t", [Record(b"a")] * 5, partitions=[0] * 5)
        assert await live.peer.epoch_end({T0: 0, T1: 0, NONE: 0}) == {T0: (0, 5), T1: (0, 0)}
        assert await live.peer.epoch_end({T0: 7}) == {T0: (-1, -1)}
        log = live.core.topics.partition(T0).log
        write_leader_epochs(log.directory / LEADER_EPOCHS, [(0, 0), (2, 3)])
        log.leader_epoch = 2
        assert await live.peer.epoch_end({T0: 0}) == {T0: (0, 3)}
        assert await live.peer.epoch_end({T0: 1}) == {T0: (0, 3)}
        assert await live.peer.epoch_end({T0: 2}) == {T0: (2, 5)}
        assert (await live.peer.topics(["t"]))["t"].leader_epochs == [2, 0]


async def test_groups(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live:
        peer = live.peer
        assert await peer.groups() == []
        await peer.commit("simple", {T0: CommittedOffset(7, "note")})
        assert await peer.groups() == ["simple"]
        assert await peer.committed("simple") == {T0: CommittedOffset(7, "note")}
        assert await peer.committed("none") == {}
        assert not await peer.group_is_active("simple")
        assert not await peer.group_is_active("none")
        async with peer.claim("owner"), live.view.consumer("readers", ["t"]) as consumer:
            await consumer.poll(wait_s=1)
            assert await peer.groups() == ["readers", "simple"], "a claim is no group of consumers"
            assert await peer.group_is_active("readers")
            with pytest.raises(UnknownMemberId):
                await peer.commit("readers", {T0: CommittedOffset(1)})
        assert not await peer.group_is_active("readers")
        with pytest.raises(UnknownTopicOrPartition):
            await peer.commit("simple", {NONE: CommittedOffset(1)})


async def test_what_is_offline_is_trouble(run: Run, autojump_clock: MockClock) -> None:
    async with run() as live:
        live.core.topics.partition(T1).log.take_offline("the disk is broken")
        assert live.peer.trouble == "t-1 is offline: the disk is broken"
        with pytest.raises(StorageError):
            await live.peer.offsets({T1: LATEST})


async def test_a_topic_that_the_broker_may_create(run: Run, autojump_clock: MockClock) -> None:
    async with run(num_partitions="3") as live:
        assert (await live.peer.ensure_topic("made")).partitions == 3
        assert await live.peer.ensure_topic("made") == (await live.peer.topics(["made"]))["made"]
    async with run(auto_create_topics_enable="false") as live:
        with pytest.raises(UnknownTopicOrPartition):
            await live.peer.ensure_topic("more")


async def test_other_clusters_are_named_by_properties(
    run: Run, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with run() as live:
        wrong = {"bootstrap.servers": "localhost:1", "security.protocol": "SSH"}
        with pytest.raises(PluginError, match=r"^security\.protocol=SSH: expected one of "):
            async with live.view.peer(wrong):
                pytest.fail("it was entered")
        unknown = {"bootstrap.servers": "localhost:1", "no.such": "1"}
        with pytest.raises(PluginError, match=r"no\.such"):
            async with live.view.peer(unknown, strict=True):
                pytest.fail("it was entered")
        assert not caplog.records
        async with live.view.peer(unknown) as peer:
            assert (peer.name, peer.in_process, peer.trouble) == ("localhost:1", False, None)
        assert [record.getMessage() for record in caplog.records] == [
            "the client of localhost:1 does not know the settings no.such"
        ]
