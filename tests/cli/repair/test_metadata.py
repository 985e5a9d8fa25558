"""A damaged metadata file stops the start; the command that the refusal names brings the topics back."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from leafcuttr.errors import StartError
from leafcuttr.log.layout.checkpoints import PARTITION_METADATA
from leafcuttr.state.metadata import FILE_NAME
from leafcuttr_sdk import TopicPartition
from support.data_directories import broker_on, run
from support.logs import NOW, append, batch

PRODUCER = 4_711


@pytest.fixture
def filled(tmp_path: Path) -> dict[str, bytes]:
    """Two topics with records in `tmp_path / "data"`, closed; their ids."""

    async def fill() -> None:
        for name, partitions in (("orders", 3), ("events", 1)):
            topic = await broker.topics.create(name, partitions, {"segment.bytes": "1048576"})
            for partition in topic.partitions:
                append(partition.log, batch(2, producer_id=PRODUCER, producer_epoch=0, base_sequence=0), NOW)

    with broker_on(tmp_path / "data") as broker:
        trio.run(fill)
        return {name: topic.id for name, topic in broker.topics.by_name.items()}


def zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def garbage(path: Path) -> None:
    path.write_bytes(os.urandom(path.stat().st_size))


def garbage_behind_the_head(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)


def zeros_behind_the_head(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    path.write_bytes(content)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 5000)


def cut_in_the_head(path: Path) -> None:
    os.truncate(path, 60)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


DAMAGES = [zeros, garbage, garbage_behind_the_head, zeros_behind_the_head, cut, cut_in_the_head, emptied]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("damage", DAMAGES)
def test_the_command_that_the_refusal_names_works(
    tmp_path: Path, filled: dict[str, bytes], damage: Callable[[Path], None]
) -> None:
    directory = tmp_path / "data"
    damage(directory / FILE_NAME)
    damaged = (directory / FILE_NAME).read_bytes()

    with pytest.raises(StartError) as refusal, broker_on(directory):
        pass
    line = str(refusal.value)
    assert "\n" not in line
    assert str(directory / FILE_NAME) in line
    named = re.search(r"leafcuttr (repair .*)", line)
    assert named is not None

    done = run(*shlex.split(named[1]))
    assert done.exit_code == 0, done.output
    assert "settings of topics" in done.output
    assert (directory / f"{FILE_NAME}.damaged").read_bytes() == damaged

    with broker_on(directory) as broker:
        topics = broker.topics.by_name
        assert {name: topic.id for name, topic in topics.items()} == filled
        assert {name: len(topic.partitions) for name, topic in topics.items()} == {"orders": 3, "events": 1}
        assert {log.log_end_offset for log in broker.logs.logs.values()} == {2}
        assert [log.offline for log in broker.logs.logs.values()] == [None] * 4
        assert topics["orders"].config.retention_ms == -1
        assert broker.metadata.take_producer_ids(1)[0] > PRODUCER


def test_what_is_sound_is_left_alone(tmp_path: Path, filled: dict[str, bytes]) -> None:
    done = run("repair", "--metadata", "--execute", tmp_path / "data")
    assert (done.exit_code, "is sound" in done.output) == (2, True)


def test_a_plan_changes_nothing(tmp_path: Path, filled: dict[str, bytes]) -> None:
    directory = tmp_path / "data"
    zeros(directory / FILE_NAME)
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    done = run("repair", "--metadata", directory)
    assert done.exit_code == 1
    assert "would rebuild orders: 3 partitions" in done.output
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before


def test_folders_that_lack_the_id_get_it_and_lost_ones_are_made(
    tmp_path: Path, filled: dict[str, bytes]
) -> None:
    directory = tmp_path / "data"
    (directory / FILE_NAME).unlink()
    (directory / "orders-0" / PARTITION_METADATA).write_bytes(bytes(40))
    shutil.rmtree(directory / "orders-1")
    (directory / "events-0" / PARTITION_METADATA).unlink()
    done = run("repair", "--metadata", "--execute", directory)
    assert done.exit_code == 0, done.output
    assert "without a folder, and made anew: 1" in done.output
    with broker_on(directory) as broker:
        assert broker.topics.by_name["orders"].id == filled["orders"]
        logs = broker.logs.logs
        assert [logs[TopicPartition("orders", number)].log_end_offset for number in (0, 2)] == [2, 2]
        # What was synced is not taken for an empty log: that one says what is missing.
        assert "is missing" in str(logs[TopicPartition("orders", 1)].offline)
        assert logs[TopicPartition("events", 0)].log_end_offset == 2


def test_folders_of_different_topics_are_not_made_one(tmp_path: Path, filled: dict[str, bytes]) -> None:
    directory = tmp_path / "data"
    zeros(directory / FILE_NAME)
    shutil.copy(directory / "events-0" / PARTITION_METADATA, directory / "orders-2" / PARTITION_METADATA)
    done = run("repair", "--metadata", "--execute", directory)
    assert (done.exit_code, "cannot rebuild orders" in done.output) == (1, True)
    with broker_on(directory) as broker:
        assert set(broker.topics.by_name) == {"events"}


def test_an_invented_producer_id_leaves_ids_for_others(tmp_path: Path, filled: dict[str, bytes]) -> None:
    """Behind the last long there is none; ids that a broker gave are far from it."""
    directory = tmp_path / "data"
    with broker_on(directory) as broker:
        log = broker.logs.logs[TopicPartition("orders", 0)]
        append(log, batch(1, producer_id=2**63 - 1, producer_epoch=0, base_sequence=0), NOW)
    cut(directory / FILE_NAME)
    assert run("repair", "--metadata", "--execute", directory).exit_code == 0
    with broker_on(directory) as broker:
        assert PRODUCER < broker.metadata.take_producer_ids(1)[0] < 2**62
