"""Repair makes sound what verify complained of, keeps what it takes out, and touches nothing before it is told to."""

import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from leafcuttr.log.layout.checkpoints import read_leader_epochs, read_offsets, read_topic_id
from leafcuttr.offline.repair import Plan, plan_repair
from leafcuttr.offline.sound_ranges import sound_ranges
from leafcuttr.offline.verify import KnownTopic, segment_offsets, verify_directory
from leafcuttr.wire.batch import parse
from leafcuttr.wire.records import decode_records
from leafcuttr_sdk import TopicPartition

FIXTURE = Path(__file__).parents[1] / "log" / "fixtures" / "kafka-4.3.1"
FIRST = "segments-0/00000000000000000000"
LAST = "segments-0/00000000000000000033"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURE, tmp_path / "data"))


def topics_of(data: Path) -> dict[str, KnownTopic]:
    topic_id = read_topic_id(FIXTURE / "segments-0" / "partition.metadata")
    assert topic_id is not None
    return {"segments": KnownTopic(topic_id, 1, False)}


def repaired(data: Path) -> Plan:
    plan = plan_repair(data, topics=topics_of(data))
    for action in plan.actions:
        action.apply()
    return plan


def snapshot_of(data: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}


def keys(folder: Path) -> list[int]:
    found = []
    for base in segment_offsets(folder):
        content, at = (folder / f"{base:020d}.log").read_bytes(), 0
        while at < len(content):
            size = parse(content, at).size
            found += [int(record.key or b"-1") for record in decode_records(content[at : at + size])]
            at += size
    return found


def patch(path: Path, position: int, content: bytes) -> None:
    whole = bytearray(path.read_bytes())
    whole[position : position + len(content)] = content
    path.write_bytes(whole)


def batch_sizes(log: Path) -> list[int]:
    content, at, sizes = log.read_bytes(), 0, []
    while at < len(content):
        sizes.append(parse(content, at).size)
        at += sizes[-1]
    return sizes


def test_a_sound_directory_needs_nothing(data: Path) -> None:
    before = snapshot_of(data)
    plan = repaired(data)
    assert (plan.actions, plan.beyond) == ([], [])
    assert snapshot_of(data) == before


def test_a_plan_changes_nothing(data: Path) -> None:
    patch(data / f"{FIRST}.log", 90, b"!!")
    (data / f"{LAST}.index").unlink()
    before = snapshot_of(data)
    assert plan_repair(data, topics=topics_of(data)).actions
    assert snapshot_of(data) == before


def test_a_damaged_batch_in_the_middle_costs_itself_only(data: Path) -> None:
    log = data / f"{FIRST}.log"
    size = batch_sizes(log)[0]
    damaged = bytearray(log.read_bytes()[size : 2 * size])
    damaged[70] ^= 0xFF
    patch(log, size, bytes(damaged))
    repaired(data)
    assert verify_directory(data, deep=True, topics=topics_of(data)).problems == []
    assert keys(data / "segments-0") == [0, *range(2, 40)]
    assert log.with_name(log.name + ".damaged").read_bytes() == bytes(damaged)


@pytest.mark.parametrize("segment", [FIRST, LAST])
def test_a_torn_end(data: Path, segment: str) -> None:
    log = data / f"{segment}.log"
    lost = log.read_bytes()[-40:]
    whole = batch_sizes(log)
    log.write_bytes(log.read_bytes()[:-10])
    repaired(data)
    assert verify_directory(data, deep=True, topics=topics_of(data)).problems == []
    last = 10 if segment == FIRST else 39
    assert keys(data / "segments-0") == [number for number in range(40) if number != last]
    kept = log.with_name(log.name + ".damaged").read_bytes()
    assert len(kept) == whole[-1] - 10
    assert kept.endswith(lost[:-10])
    points = read_offsets(data / "recovery-point-offset-checkpoint")
    assert points[TopicPartition("segments", 0)] == (40 if segment == FIRST else 39)


def test_nothing_of_a_log_is_sound(data: Path) -> None:
    for segment in (FIRST, LAST):
        log = data / f"{segment}.log"
        log.write_bytes(b"\xee" * log.stat().st_size)
    repaired(data)
    assert verify_directory(data, topics=topics_of(data)).problems == []
    assert keys(data / "segments-0") == list(range(11, 33))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(10))
def test_random_damage_is_always_repaired(data: Path, seed: int) -> None:
    """And what was sound before is there after it, in order."""
    chance = random.Random(seed)
    for log in sorted((data / "segments-0").glob("*.log")):
        whole = bytearray(log.read_bytes())
        for _ in range(chance.randint(0, 3)):
            at = chance.randrange(len(whole))
            whole[at : at + chance.randint(1, 40)] = chance.randbytes(chance.randint(1, 40))
        log.write_bytes(whole[: chance.randint(len(whole) // 2, len(whole))])
    sound = sum(
        one.next_offset - one.first_offset
        for base in segment_offsets(data / "segments-0")
        for one in sound_ranges(data / "segments-0" / f"{base:020d}.log", base)
    )
    repaired(data)
    checked = verify_directory(data, deep=True, topics=topics_of(data))
    assert checked.problems == []
    found = keys(data / "segments-0")
    assert found == sorted(set(found))
    assert len(found) >= min(sound, 1)
    assert plan_repair(data, topics=topics_of(data)).actions == []


@pytest.mark.parametrize(
    ("suffix", "damage"),
    [
        (".index", lambda content: content[:-3]),
        (".index", lambda content: content[:4] + struct.pack(">i", 77) + content[8:]),
        (".timeindex", lambda content: struct.pack(">q", 5) + content[8:]),
        (".timeindex", lambda content: content.ljust(12_000, b"\0")),
        (".index", None),
        (".timeindex", None),
    ],
)
def test_indexes_are_built_anew(data: Path, suffix: str, damage: Callable[[bytes], bytes] | None) -> None:
    path = data / f"{FIRST}{suffix}"
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage(path.read_bytes()))
    log = (data / f"{FIRST}.log").read_bytes()
    repaired(data)
    checked = verify_directory(data, topics=topics_of(data))
    assert [str(finding) for finding in checked.findings if "segments" in str(finding.path)] == []
    assert (data / f"{FIRST}.log").read_bytes() == log
    # The interval is Kafka's default, and the segment is smaller than that; but the end of time is always indexed.
    timestamp, relative = struct.unpack(">qi", (data / f"{FIRST}.timeindex").read_bytes()[-12:])
    assert (timestamp, relative) == (1_700_000_010_000, 10)


def test_snapshots_epochs_ids_and_checkpoints(data: Path) -> None:
    folder = data / "segments-0"
    patch(folder / "00000000000000000022.snapshot", 10, b"\xff")
    (folder / "leader-epoch-checkpoint").write_text("rubbish\n")
    (folder / "partition.metadata").unlink()
    (data / "recovery-point-offset-checkpoint").write_text("0\n1\nsegments 0 4000\n")
    (data / "log-start-offset-checkpoint").write_text("0\n2\nsegments 0 3000\njava-none 0 3\n")
    plan = repaired(data)
    assert plan.beyond == []
    assert verify_directory(data, topics=topics_of(data)).problems == []
    assert not (folder / "00000000000000000022.snapshot").exists()
    assert read_leader_epochs(folder / "leader-epoch-checkpoint") == [(0, 0)]
    assert read_offsets(data / "log-start-offset-checkpoint") == {
        TopicPartition("segments", 0): 40,
        TopicPartition("java-none", 0): 3,
    }


def test_a_missing_folder_begins_where_the_log_ended(data: Path) -> None:
    shutil.rmtree(data / "segments-0")
    plan = repaired(data)
    assert "empty, beginning at offset 40" in str(plan.actions[0])
    assert verify_directory(data, topics=topics_of(data)).problems == []
    assert (data / "segments-0" / "00000000000000000040.log").read_bytes() == b""


def test_what_cannot_be_repaired_is_said(data: Path) -> None:
    shutil.copy(data / "java-none-0/partition.metadata", data / "segments-0/partition.metadata")
    (data / "java-gzip-0/partition.metadata").unlink()
    plan = repaired(data)
    assert any("belongs to another topic" in text for text in plan.beyond)
    assert any("the metadata does not know the topic either" in text for text in plan.beyond)
