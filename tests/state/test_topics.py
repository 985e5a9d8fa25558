"""Topics on a real log manager and a real metadata file: created, found, deleted, enlarged, configured,
reopened."""

import base64
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from leafcuttr.config.settings import Settings
from leafcuttr.errors import (
    BrokerError,
    InvalidConfig,
    InvalidPartitions,
    InvalidTopic,
    StorageError,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from leafcuttr.log.manager import LogManager, LogSpec
from leafcuttr.runtime.clock import SystemClock
from leafcuttr.runtime.runtime import Runtime
from leafcuttr.state.metadata import MetadataStore
from leafcuttr.state.topics import ZERO_ID, Topic, Topics, new_topic_id
from leafcuttr_sdk import TopicPartition
from support.topics import alter_config


class Stored:
    """The parts that topics stand on, opened together on one directory."""

    def __init__(self, directory: Path, **settings: str) -> None:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        self.directory = directory
        self.settings = Settings({"log.dirs": str(directory), "node.id": "1", **given})
        self._open()

    def _open(self) -> None:
        clock = SystemClock()
        self.logs = LogManager.open(
            self.directory, runtime=Runtime.new(clock), settings=self.settings, node_id=1
        )
        self.metadata = MetadataStore.open(self.directory)
        self.topics = Topics(
            settings=self.settings, metadata=self.metadata, logs=self.logs, clock=clock, node_id=1
        )
        self.topics.load()

    def close(self) -> None:
        self.logs.close()
        self.metadata.close()

    def reopen(self) -> Topics:
        self.close()
        self._open()
        return self.topics

    def folders(self) -> list[str]:
        names = (path.name for path in self.directory.iterdir() if path.is_dir())
        return sorted(name for name in names if not name.endswith("-delete"))


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Stored]:
    stored = Stored(tmp_path / "data", num_partitions="2", offsets_topic_num_partitions="3")
    yield stored
    stored.close()


async def test_a_created_topic_is_found_and_survives_a_restart(stored: Stored) -> None:
    topic = await stored.topics.create("orders", 3, {"retention.ms": "1000"})

    assert stored.topics.find("orders") is topic
    assert stored.topics.by_id[topic.id] is topic
    assert [part.index for part in topic.partitions] == [0, 1, 2]
    assert topic.config.retention_ms == 1000
    assert not topic.internal
    assert stored.topics.partition(TopicPartition("orders", 2)).log.config is topic.config
    assert stored.folders() == ["orders-0", "orders-1", "orders-2"]

    again = stored.reopen().by_name["orders"]
    assert (again.id, len(again.partitions), dict(again.overrides)) == (topic.id, 3, {"retention.ms": "1000"})
    assert again.partitions[1].log.config.retention_ms == 1000


@pytest.mark.parametrize("index", [-1, 1])
async def test_a_partition_that_is_not_there(stored: Stored, index: int) -> None:
    await stored.topics.create("orders", 1, {})
    with pytest.raises(UnknownTopicOrPartition):
        stored.topics.partition(TopicPartition("orders", index))
    with pytest.raises(UnknownTopicOrPartition):
        stored.topics.partition(TopicPartition("missing", 0))


@pytest.mark.parametrize(
    ("name", "partitions", "overrides", "error"),
    [
        ("bad name", 1, {}, InvalidTopic),
        ("orders", 1, {}, TopicAlreadyExists),
        ("a_b", 1, {}, InvalidTopic),
        ("new", 0, {}, InvalidPartitions),
        ("new", 1, {"retention.ms": "soon"}, InvalidConfig),
        ("new", 1, {"no.such.setting": "1"}, InvalidConfig),
    ],
)
async def test_a_refused_creation_leaves_nothing(
    stored: Stored, name: str, partitions: int, overrides: dict[str, str], error: type[BrokerError]
) -> None:
    await stored.topics.create("orders", 1, {})
    await stored.topics.create("a.b", 1, {})
    with pytest.raises(error):
        await stored.topics.create(name, partitions, overrides)
    assert sorted(stored.topics.by_name) == ["a.b", "orders"]
    assert stored.folders() == ["a.b-0", "orders-0"]
    assert sorted(stored.reopen().by_name) == ["a.b", "orders"]


@pytest.mark.parametrize("names", [["orders"] * 5, ["a.b", "a_b", "a.b", "a_b"]])
async def test_of_creations_at_once_one_wins(stored: Stored, names: list[str]) -> None:
    won: list[Topic] = []
    refused: list[BrokerError] = []

    async def create(name: str) -> None:
        try:
            won.append(await stored.topics.create(name, 2, {}))
        except BrokerError as error:
            refused.append(error)

    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(create, name)

    assert list(stored.topics.by_name.values()) == won
    assert len(won) == 1
    assert len(refused) == len(names) - 1
    assert not stored.topics._turns


async def test_a_deleted_topic_is_gone_and_its_name_is_free(stored: Stored) -> None:
    first = await stored.topics.create("orders", 2, {})
    told: list[Topic] = []
    stored.topics.on_deleted.append(told.append)

    await stored.topics.delete("orders")

    assert told == [first]
    assert stored.topics.find("orders") is None
    assert first.id not in stored.topics.by_id
    assert "orders-0" not in stored.folders()
    second = await stored.topics.create("orders", 1, {})
    assert second.id != first.id
    assert [topic.id for topic in stored.reopen().by_name.values()] == [second.id]


async def test_a_deletion_frees_the_names_that_collided(stored: Stored) -> None:
    await stored.topics.create("a.b", 1, {})
    await stored.topics.delete("a.b")
    await stored.topics.create("a_b", 1, {})


async def test_deleting_what_is_not_there(stored: Stored) -> None:
    await stored.topics.create("orders", 1, {})
    with pytest.raises(UnknownTopicOrPartition):
        await stored.topics.delete("missing")
    with pytest.raises(UnknownTopicId):
        await stored.topics.delete("orders", topic_id=new_topic_id())
    assert "orders" in stored.topics.by_name


async def test_a_topic_grows(stored: Stored) -> None:
    topic = await stored.topics.create("orders", 1, {"retention.ms": "5"})
    await stored.topics.add_partitions("orders", 4)
    assert [part.index for part in topic.partitions] == [0, 1, 2, 3]
    assert topic.partitions[3].log.config is topic.config
    assert len(stored.reopen().by_name["orders"].partitions) == 4


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (2, "Topic already has 2 partition(s)."),
        (1, "The topic orders currently has 2 partition(s); 1 would not be an increase."),
    ],
)
async def test_a_topic_does_not_shrink(stored: Stored, count: int, message: str) -> None:
    await stored.topics.create("orders", 2, {})
    with pytest.raises(InvalidPartitions) as refused:
        await stored.topics.add_partitions("orders", count)
    assert refused.value.message == message


async def test_a_changed_setting_reaches_every_log_and_survives(stored: Stored) -> None:
    topic = await stored.topics.create("orders", 2, {"retention.ms": "1000", "segment.bytes": "2000000"})
    await alter_config(stored.topics, "orders", {"retention.ms": "77", "segment.bytes": None})
    assert dict(topic.overrides) == {"retention.ms": "77"}
    assert [part.log.config.retention_ms for part in topic.partitions] == [77, 77]
    assert topic.config.segment_bytes == stored.settings.int("log.segment.bytes")
    assert dict(stored.reopen().by_name["orders"].overrides) == {"retention.ms": "77"}


async def test_every_change_is_told_once_it_can_be_seen(stored: Stored) -> None:
    topics, told = stored.topics, list[tuple[str, int]]()

    def tell(name: str) -> None:
        topic = topics.find(name)
        told.append((name, len(topic.partitions) if topic else 0))

    topics.on_changed.append(tell)
    await topics.create("t", 1, {})
    await topics.add_partitions("t", 3)
    await alter_config(topics, "t", {"retention.ms": "1000"})
    await topics.delete("t")
    assert told == [("t", 1), ("t", 3), ("t", 3), ("t", 0)]


async def test_a_refused_setting_changes_nothing(stored: Stored) -> None:
    topic = await stored.topics.create("orders", 1, {"retention.ms": "1000"})
    config = topic.config
    with pytest.raises(InvalidConfig):
        await alter_config(stored.topics, "orders", {"retention.ms": "77", "cleanup.policy": "burn"})
    assert topic.config is config
    assert dict(stored.reopen().by_name["orders"].overrides) == {"retention.ms": "1000"}


async def test_edits_at_once_build_on_each_other(stored: Stored) -> None:
    topic = await stored.topics.create("orders", 1, {"retention.ms": "0"})

    async def count_up() -> None:
        await stored.topics.edit_config(
            "orders", lambda now: {"retention.ms": str(int(now["retention.ms"]) + 1)}
        )

    async with trio.open_nursery() as nursery:
        for _ in range(8):
            nursery.start_soon(count_up)

    assert topic.config.retention_ms == 8


async def test_a_change_of_the_brokers_default_reaches_topics_without_their_own(stored: Stored) -> None:
    own = await stored.topics.create("own", 1, {"retention.ms": "1000"})
    plain = await stored.topics.create("plain", 2, {})
    stored.settings.replace_dynamic({"log.retention.ms": "55"}, cluster=True)
    assert own.partitions[0].log.config.retention_ms == 1000
    assert [part.log.config.retention_ms for part in plain.partitions] == [55, 55]
    later = await stored.topics.create("later", 1, {})
    assert later.config.retention_ms == 55


async def test_ensure_creates_once_with_the_brokers_defaults(stored: Stored) -> None:
    found: list[Topic] = []

    async def ensure() -> None:
        found.append(await stored.topics.ensure("orders"))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(ensure)

    assert len(set(map(id, found))) == 1
    assert len(found[0].partitions) == 2
    with pytest.raises(InvalidTopic):
        await stored.topics.ensure("bad name")


async def test_internal_topics_have_their_own_shape(stored: Stored) -> None:
    topic = await stored.topics.ensure("__consumer_offsets")
    assert topic.internal
    assert len(topic.partitions) == 3
    assert topic.config.compact
    assert topic.config.segment_bytes == stored.settings.int("offsets.topic.segment.bytes")


async def test_a_cancelled_creation_leaves_nothing(stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    scope = trio.CancelScope()
    prepare = LogManager.prepare

    def prepare_and_cancel(logs: LogManager, spec: LogSpec) -> None:
        prepare(logs, spec)
        if spec.topic_partition.partition == 100:
            trio.from_thread.run_sync(scope.cancel)

    monkeypatch.setattr(LogManager, "prepare", prepare_and_cancel)
    with scope:
        await stored.topics.create("orders", 300, {})

    assert scope.cancelled_caught
    assert stored.topics.by_name == {}
    assert stored.metadata.topics() == []
    assert stored.folders() == []
    await stored.topics.create("orders", 1, {})


async def test_a_disk_that_takes_nothing_changes_nothing(stored: Stored) -> None:
    kept = await stored.topics.create("kept", 1, {"retention.ms": "5"})
    stored.metadata._connection.execute("PRAGMA query_only = ON")
    for change in (
        lambda: stored.topics.create("new", 1, {}),
        lambda: stored.topics.delete("kept"),
        lambda: stored.topics.add_partitions("kept", 3),
        lambda: alter_config(stored.topics, "kept", {"retention.ms": "9"}),
    ):
        with pytest.raises(StorageError, match=r"metadata\.sqlite"):
            await change()
    assert stored.topics.by_name == {"kept": kept}
    assert (len(kept.partitions), kept.config.retention_ms) == (1, 5)
    assert stored.folders() == ["kept-0"]
    stored.metadata._connection.execute("PRAGMA query_only = OFF")
    await stored.topics.create("new", 1, {})


async def test_others_run_while_many_partitions_come_and_go(stored: Stored) -> None:
    turns = 0

    async def work() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
        await stored.topics.create("orders", 300, {})
        created, turns = turns, 0
        await stored.topics.delete("orders")
        nursery.cancel_scope.cancel()

    assert created > 20
    assert turns > 10


async def test_a_reader_waits_for_no_creation(stored: Stored) -> None:
    """While a topic is made, others are found and created."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stored.topics.create, "big", 200, {})
        await wait_all_tasks_blocked()
        await stored.topics.create("small", 1, {})
        assert stored.topics.find("small") is not None
    assert stored.topics.find("big") is not None


def test_topic_ids_suit_a_command_line() -> None:
    ids = [new_topic_id() for _ in range(2000)]
    assert not any(base64.urlsafe_b64encode(each).startswith(b"-") for each in ids)
    assert len(set(ids)) == len(ids)
    assert ZERO_ID not in ids


KILLED = """
import sys
from pathlib import Path
import trio
from leafcuttr.config.settings import Settings
from leafcuttr.log.manager import LogManager
from leafcuttr.runtime.clock import SystemClock
from leafcuttr.runtime.runtime import Runtime
from leafcuttr.state.metadata import MetadataStore
from leafcuttr.state.topics import Topics

directory, clock = Path(sys.argv[1]), SystemClock()
settings = Settings({"log.dirs": str(directory), "node.id": "1"})
logs = LogManager.open(directory, runtime=Runtime.new(clock), settings=settings, node_id=1)
topics = Topics(settings=settings, metadata=MetadataStore.open(directory), logs=logs, clock=clock, node_id=1)
topics.load()

async def main():
    await topics.create("orders", 3, {})
    await topics.delete("orders")

trio.run(main)
"""


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("point", "left"),
    [
        ("topic-create.folders", []),
        ("metadata.committed", ["orders"]),
        ("topic-create.committed", ["orders"]),
        ("topic-create.adopted", ["orders"]),
        ("topic-delete.committed", []),
        ("topic-delete.renamed", []),
    ],
)
async def test_a_kill_leaves_the_topic_whole_or_gone(tmp_path: Path, point: str, left: list[str]) -> None:
    directory = tmp_path / "data"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(directory)],
        env={**os.environ, "LEAFCUTTR_CRASH_POINT": point},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL

    stored = Stored(directory)
    assert list(stored.topics.by_name) == left
    if left:
        assert all(part.log.offline is None for part in stored.topics.by_name["orders"].partitions)
        await stored.topics.delete("orders")
    again = await stored.topics.create("orders", 3, {})
    assert [part.log.log_end_offset for part in again.partitions] == [0, 0, 0]
    stored.close()
