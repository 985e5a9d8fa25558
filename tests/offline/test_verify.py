"""Verify finds each kind of damage, names the place, and calls a directory that a real Kafka closed clean."""

import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from leafcuttr.log.layout.checkpoints import read_topic_id, write_leader_epochs, write_offsets, write_topic_id
from leafcuttr.log.layout.partition_state import PartitionState, SegmentState, encode_entry, write_state
from leafcuttr.offline.findings import Severity
from leafcuttr.offline.verify import KnownTopic, Verified, verify_directory
from leafcuttr.wire.batch import parse
from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk import TopicPartition

FIXTURE = Path(__file__).parents[1] / "log" / "fixtures" / "kafka-4.3.1"
FIRST = "segments-0/00000000000000000000"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A copy of what Kafka wrote."""
    return Path(shutil.copytree(FIXTURE, tmp_path / "data"))


def patch(path: Path, position: int, content: bytes) -> None:
    whole = bytearray(path.read_bytes())
    whole[position : position + len(content)] = content
    path.write_bytes(whole)


def problems(data: Path, **options: object) -> list[str]:
    checked = verify_directory(data, **options)  # type: ignore[arg-type]
    return [f"{finding.path.relative_to(data)}: {finding.text}" for finding in checked.problems]


def notes(checked: Verified) -> list[str]:
    return [finding.text for finding in checked.findings if finding.severity is Severity.NOTE]


@pytest.mark.parametrize("deep", [False, True])
def test_what_kafka_closed_is_clean(data: Path, deep: bool) -> None:
    seen: list[tuple[int, int]] = []
    checked = verify_directory(data, deep=deep, progress=lambda done, total: seen.append((done, total)))
    assert checked.problems == []
    assert notes(checked) == ["offsets 0 to 54 are not there"]  # the compacted topic
    assert checked.clean_stop
    assert (checked.partitions, checked.segments) == (15, 20)
    assert seen[-1] == (checked.bytes, checked.bytes)
    assert checked.bytes == sum(log.stat().st_size for log in data.glob("*/*.log"))


def test_nothing_is_changed(data: Path) -> None:
    before = {
        path: (path.stat().st_mtime_ns, path.read_bytes()) for path in data.rglob("*") if path.is_file()
    }
    verify_directory(data, deep=True)
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in data.rglob("*") if path.is_file()}
    assert before == after


def test_every_flipped_byte_of_a_log_is_found(data: Path) -> None:
    """The leader epoch alone, four bytes a batch, is under no checksum."""
    log = data / f"{FIRST}.log"
    whole = log.read_bytes()
    size = parse(whole).size
    for position in range(size, 2 * size):
        if 12 <= position - size < 16:
            continue
        log.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
        assert problems(data), f"byte {position}"


def test_all_damaged_batches_are_named_not_only_the_first(data: Path) -> None:
    log = data / f"{FIRST}.log"
    size = parse(log.read_bytes()).size
    patch(log, size - 1, b"!")
    patch(log, 3 * size - 1, b"!")
    found = [finding for finding in verify_directory(data).problems if finding.path == log]
    assert [finding.position for finding in found] == [0, 2 * size]
    assert {finding.text for finding in found} == {"the CRC of the batch does not match"}


def test_a_log_that_ends_early(data: Path) -> None:
    log = data / "segments-0/00000000000000000033.log"
    log.write_bytes(log.read_bytes()[:-10])
    found = problems(data)
    assert re.search(r"a batch of \d+ bytes goes past the end", found[0])
    assert any("recovery point 40 of segments-0 is behind its log end offset 39" in text for text in found)


def test_the_ragged_end_that_a_kill_leaves_is_a_note(data: Path) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    log = data / "segments-0/00000000000000000033.log"
    whole = log.read_bytes()
    for ragged in (whole + whole[:30], whole + bytes(500)):
        log.write_bytes(ragged)
        checked = verify_directory(data)
        assert checked.problems == []
        assert any("the next start cuts the last" in text for text in notes(checked))


def test_a_missing_segment_is_a_problem_of_a_topic_that_is_not_compacted(data: Path) -> None:
    for file in (data / "segments-0").glob("00000000000000000011.*"):
        file.unlink()
    topic_id = read_topic_id(data / "segments-0" / "partition.metadata")
    assert topic_id is not None
    for compact, expected in ((True, 0), (False, 1)):
        topics = {"segments": KnownTopic(topic_id, 1, compact)}
        assert sum("11 to 21" in text for text in problems(data, topics=topics)) == expected


def test_offsets_that_go_back(data: Path) -> None:
    log = data / f"{FIRST}.log"
    size = parse(log.read_bytes()).size
    patch(log, 3 * size, (1).to_bytes(8, "big"))
    assert any("base offset 1, 3 is due; the batch is sound" in text for text in problems(data))


@pytest.mark.parametrize(
    ("suffix", "damage", "says"),
    [
        (".index", lambda data: data[:-3], "not a multiple of 8"),
        (".index", lambda data: data[:4] + struct.pack(">i", 77) + data[8:], "where no batch begins"),
        (".index", lambda data: struct.pack(">i", 0) + data[4:], "where the batch 1 to 1 begins"),
        (".index", lambda data: data + struct.pack(">ii", 500, 99_999), "points behind the end"),
        (".index", lambda data: data[:8] + data[:8] + data[8:], "does not ascend"),
        (".timeindex", lambda data: data[:-3], "not a multiple of 12"),
        (".timeindex", lambda data: struct.pack(">q", 5) + data[8:], "but 1700000001000 is"),
        (
            ".timeindex",
            lambda data: data + struct.pack(">qi", 1_800_000_000_000, 500),
            "points behind the end",
        ),
        (".timeindex", lambda data: data[12:24] + data[:12] + data[24:], "does not ascend"),
        (".index", None, "the file is missing"),
        (".timeindex", None, "the file is missing"),
    ],
)
def test_damaged_indexes(data: Path, suffix: str, damage: Callable[[bytes], bytes] | None, says: str) -> None:
    path = data / f"{FIRST}{suffix}"
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(path.read_bytes()))
    found = problems(data)
    assert len(found) == 1
    assert found[0].startswith(f"{FIRST}{suffix}: ")
    assert says in found[0]


def test_preallocated_indexes_of_a_killed_kafka_are_a_note(data: Path) -> None:
    for suffix in (".index", ".timeindex"):
        path = data / f"segments-0/00000000000000000033{suffix}"
        path.write_bytes(path.read_bytes().ljust(12_000, b"\0"))
    checked = verify_directory(data)
    assert checked.problems == []
    assert sum("unused preallocation" in text for text in notes(checked)) == 2


def test_damaged_snapshots(data: Path) -> None:
    path = data / "segments-0/00000000000000000040.snapshot"
    patch(path, 20, b"\xff")
    assert problems(data) == [f"{path.relative_to(data)}: the CRC of the producer snapshot does not match"]
    path.rename(path.with_name("00000000000000000099.snapshot"))
    shutil.copy(
        FIXTURE / "segments-0/00000000000000000040.snapshot",
        data / "segments-0/00000000000000000099.snapshot",
    )
    assert problems(data) == [
        "segments-0/00000000000000000099.snapshot: is of an offset behind the log end offset 40"
    ]


def test_checkpoints_beyond_the_end(data: Path) -> None:
    write_offsets(data / "recovery-point-offset-checkpoint", {TopicPartition("segments", 0): 41})
    write_offsets(data / "log-start-offset-checkpoint", {TopicPartition("segments", 0): 50})
    write_leader_epochs(data / "segments-0/leader-epoch-checkpoint", [(0, 0), (1, 60)])
    assert problems(data) == [
        "segments-0/leader-epoch-checkpoint: epoch 1 starts at 60, behind the log end offset 40",
        "recovery-point-offset-checkpoint: recovery point 41 of segments-0 is behind its log end offset 40",
        "log-start-offset-checkpoint: log start offset 50 of segments-0 is behind its log end offset 40",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "segments-0/leader-epoch-checkpoint",
        "segments-0/partition.metadata",
    ],
)
def test_text_files_that_do_not_parse(data: Path, name: str) -> None:
    (data / name).write_text("7\n1\nwhat\n")
    assert [text.partition(": ")[0] for text in problems(data)] == [name]


@pytest.mark.parametrize("same", [True, False])
def test_what_the_soft_checkpoint_says_of_an_earlier_topic_of_that_name_says_nothing_of_this_one(
    data: Path, same: bool
) -> None:
    """A topic is deleted, made again, and the broker killed before it has written the next soft checkpoint."""
    (data / ".kafka_cleanshutdown").unlink()
    topic_id = read_topic_id(data / "segments-0" / "partition.metadata")
    assert topic_id is not None
    log = data / "segments-0/00000000000000000033.log"
    size = log.stat().st_size
    log.write_bytes(log.read_bytes() + bytes(500))
    segments = (SegmentState(0, 1, -1), SegmentState(33, size + 200, -1))
    state = PartitionState(topic_id if same else bytes(range(16)), 0, 60, 0, 0, segments, [])
    write_state(data, [encode_entry(TopicPartition("segments", 0), state)], clean=False, sync=False)
    found = problems(data, topics={"segments": KnownTopic(topic_id, 1, False)})
    assert any("zeros" in text for text in found) == same


def test_topics_of_the_metadata_and_folders(data: Path) -> None:
    topic_id = read_topic_id(data / "segments-0" / "partition.metadata")
    assert topic_id is not None
    topics = {"segments": KnownTopic(topic_id, 3, False), "java-none": KnownTopic(bytes(16), 1, False)}
    write_offsets(data / "recovery-point-offset-checkpoint", {TopicPartition("segments", 1): 5})
    found = problems(data, topics=topics)
    assert "segments-1: the metadata has it, the folder is missing" in found
    assert not any(text.startswith("segments-2") for text in found), (
        "it was never synced: the next start makes it"
    )
    assert any(text.startswith("java-none-0/partition.metadata: topic id ") for text in found)
    assert (
        sum("the metadata does not know it" in text for text in notes(verify_directory(data, topics=topics)))
        == 13
    )


@pytest.mark.parametrize("begun", [(), ("partition.metadata.tmp",), ("partition.metadata",)])
def test_the_folder_of_an_empty_partition_whose_making_was_cut_short_is_a_note(
    data: Path, begun: tuple[str, ...]
) -> None:
    """A topic is created, the broker killed before its folders have their names, and again in the start that makes
    them anew."""
    topic_id = read_topic_id(data / "segments-0" / "partition.metadata")
    assert topic_id is not None
    topics = {"segments": KnownTopic(topic_id, 2, False)}
    (data / "segments-1").mkdir()
    for name in begun:
        (data / "segments-1" / name).write_bytes((data / "segments-0" / "partition.metadata").read_bytes())
    assert [text for text in problems(data, topics=topics) if text.startswith("segments-1")] == []
    found = notes(verify_directory(data, topics=topics))
    assert "is empty and has no segment yet; the next start makes it" in found
    # What had records is damaged without its segments.
    write_offsets(data / "recovery-point-offset-checkpoint", {TopicPartition("segments", 1): 5})
    assert "segments-1: has no segment" in problems(data, topics=topics)


def test_folders_that_wait_for_deletion_are_left_out(data: Path) -> None:
    (data / "segments-0").rename(data / f"segments-0.{'0123456789abcdef' * 2}-delete")
    (data / "recovery-point-offset-checkpoint").unlink()
    checked = verify_directory(data)
    assert checked.problems == []
    assert checked.partitions == 14


def test_only_deep_sees_records_that_no_reader_can_use(data: Path) -> None:
    whole = encode_batch([Record(0, 0, b"k", b"v"), Record(0, 0, b"k", b"v")], last_offset_delta=1)
    write_log(data / "poison-0", bytes(whole))
    assert problems(data) == []
    assert problems(data, deep=True) == [
        "poison-0/00000000000000000000.log: a record has offset 0, in a batch up to 1, behind 0"
    ]


def write_log(folder: Path, content: bytes) -> None:
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(content)
    for suffix in (".index", ".timeindex"):
        (folder / f"00000000000000000000{suffix}").touch()
    write_topic_id(folder / "partition.metadata", bytes(range(16)))


def test_beside_a_running_broker_only_lasting_damage_counts(data: Path) -> None:
    log = data / "segments-0/00000000000000000033.log"
    log.write_bytes(log.read_bytes()[:-10])
    assert problems(data)
    assert problems(data, online=True) == []
    patch(data / f"{FIRST}.log", 100, b"!")
    assert len(problems(data, online=True)) == 1
