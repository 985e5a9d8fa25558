"""What no CRC covers, base offsets and leader epochs, is put right where the neighbours say what it was; and a log in
which a sync has failed stays in doubt after a repair."""

import shutil
import subprocess
from pathlib import Path

import pytest

from leafcuttr.log.files.failed_sync import MARK
from leafcuttr.log.layout.checkpoints import (
    read_leader_epochs,
    read_offsets,
    read_topic_id,
    write_leader_epochs,
)
from leafcuttr.offline.repair import plan_repair
from leafcuttr.offline.verify import KnownTopic, verify_directory
from leafcuttr.wire.batch import parse
from leafcuttr_sdk import TopicPartition
from support import jars

FIXTURE = Path(__file__).parents[1] / "log" / "fixtures" / "kafka-4.3.1"
FIRST = "segments-0/00000000000000000000.log"
LAST = "segments-0/00000000000000000033.log"
EPOCHS = "segments-0/leader-epoch-checkpoint"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURE, tmp_path / "data"))


def topics_of(compact: bool = False) -> dict[str, KnownTopic]:
    topic_id = read_topic_id(FIXTURE / "segments-0" / "partition.metadata")
    assert topic_id is not None
    return {"segments": KnownTopic(topic_id, 1, compact)}


def logs(data: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (data / "segments-0").glob("*.log*")}


def repaired(data: Path, compact: bool = False) -> None:
    for action in plan_repair(data, topics=topics_of(compact)).actions:
        action.apply()
    assert verify_directory(data, deep=True, topics=topics_of(compact)).problems == []
    assert plan_repair(data, topics=topics_of(compact)).actions == []


def positions(log: Path) -> list[int]:
    content, at, found = log.read_bytes(), 0, []
    while at < len(content):
        found.append(at)
        at += parse(content, at).size
    return found


def write_at(log: Path, position: int, value: int, size: int) -> None:
    with log.open("r+b") as file:
        file.seek(position)
        file.write(value.to_bytes(size, "big", signed=True))


def displace(log: Path, number: int, by: int) -> None:
    at = positions(log)[number]
    write_at(log, at, parse(log.read_bytes(), at).base_offset + by, 8)


@pytest.mark.one_in(9)
@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("by", [1, 300, 1 << 40, -1, -(1 << 40)])
@pytest.mark.parametrize("numbers", [(0,), (4,), (10,), (2, 5), (4, 5)])
def test_a_displaced_batch_gets_its_base_offset_back(
    data: Path, numbers: tuple[int, ...], by: int, compact: bool
) -> None:
    before, log = logs(data), data / FIRST
    for number in reversed(numbers):
        displace(log, number, by)
    found = verify_directory(data, topics=topics_of(compact)).problems
    named = [each for each in found if f"{numbers[0]} is due" in each.text and each.path == log]
    assert "`leafcuttr repair --execute` gives it back" in named[0].text
    repaired(data, compact)
    assert logs(data) == before


@pytest.mark.parametrize("by", [5, -5])
def test_the_last_batch_of_the_log_after_a_clean_stop(data: Path, by: int) -> None:
    before = logs(data)
    displace(data / LAST, -1, by)
    repaired(data)
    assert logs(data) == before


@pytest.mark.parametrize("by", [5, -5])
def test_the_last_batch_after_a_loss_of_power_may_be_anything(data: Path, by: int) -> None:
    (data / ".kafka_cleanshutdown").unlink()
    (data / "recovery-point-offset-checkpoint").write_text("0\n1\nsegments 0 33\n")
    last = positions(data / LAST)[-1]
    displace(data / LAST, -1, by)
    taken = (data / LAST).read_bytes()[last:]
    repaired(data)
    assert (data / LAST).stat().st_size == last
    assert (data / f"{LAST}.damaged").read_bytes() == taken


def test_displaced_beside_damaged(data: Path) -> None:
    log = data / FIRST
    at = positions(log)
    sound = log.read_bytes()
    displace(log, 7, 300)
    write_at(log, at[3] + 80, 0x11, 1)
    repaired(data)
    whole = log.read_bytes()
    assert [parse(whole, at).base_offset for at in positions(log)] == list(range(11))
    assert whole.endswith(sound[at[4] :])


def test_gaps_of_compaction_stay_and_a_batch_beyond_those_behind_it_goes(data: Path) -> None:
    log = data / FIRST
    for number in range(4, 11):  # as if 4 and 5 had been compacted away
        at = positions(log)[number]
        write_at(log, at, number + 2, 8)
    (data / "segments-0/00000000000000000011.log").unlink()  # its base would lie in the batches before
    for suffix in (".index", ".timeindex", ".snapshot"):
        (data / "segments-0" / f"00000000000000000011{suffix}").unlink(missing_ok=True)
    repaired(data, compact=True)
    gapped = log.read_bytes()
    at = positions(log)
    assert [parse(gapped, each).base_offset for each in at] == [0, 1, 2, 3, *range(6, 13)]
    write_at(log, at[4], 500, 8)  # nothing says where in the gap it belonged
    taken = log.read_bytes()[at[4] : at[5]]
    repaired(data, compact=True)
    left = log.read_bytes()
    assert gapped[at[5] :] in left and taken in (data / f"{FIRST}.damaged").read_bytes()


@pytest.mark.one_in(6)
@pytest.mark.parametrize("epoch", [1, 0x40000000, -(1 << 31), -7])
@pytest.mark.parametrize("segment", [FIRST, LAST])
@pytest.mark.parametrize("number", [0, 3, -1])
def test_a_damaged_leader_epoch_is_put_right(data: Path, segment: str, number: int, epoch: int) -> None:
    before, log = logs(data), data / segment
    write_at(log, positions(log)[number] + 12, epoch, 4)
    found = verify_directory(data, topics=topics_of()).problems
    assert [each.text.partition(";")[0] for each in found] == [f"leader epoch {epoch}, 0 is due"]
    assert (found[0].path, found[0].position) == (log, positions(log)[number])
    repaired(data)
    assert logs(data) == before
    assert read_leader_epochs(data / EPOCHS) == [(0, 0)]


def test_the_epochs_of_the_checkpoint_are_each_kept_to(data: Path) -> None:
    write_leader_epochs(data / EPOCHS, [(2, 0), (5, 8), (9, 33)])
    for log in (data / "segments-0").glob("*.log"):
        for at in positions(log):
            offset = parse(log.read_bytes(), at).base_offset
            write_at(log, at + 12, 2 if offset < 8 else 5 if offset < 33 else 9, 4)
    assert verify_directory(data, topics=topics_of()).problems == []
    before, log = logs(data), data / FIRST
    write_at(log, positions(log)[7] + 12, 5, 4)
    write_at(log, positions(log)[8] + 12, 2, 4)
    repaired(data)
    assert logs(data) == before
    # Without the checkpoint the batches say it, and damaged ones are not believed.
    (data / EPOCHS).write_text("rubbish\n")
    write_at(log, positions(log)[4] + 12, 700, 4)
    repaired(data)
    assert logs(data) == before
    assert read_leader_epochs(data / EPOCHS) == [(2, 0), (5, 8), (9, 33)]
    # A checkpoint that has not got the newest line, as after the death of a broker, is the one that is wrong.
    write_leader_epochs(data / EPOCHS, [(2, 0), (5, 8)])
    repaired(data)
    assert logs(data) == before
    assert read_leader_epochs(data / EPOCHS) == [(2, 0), (5, 8), (9, 33)]


def test_a_failed_sync_is_reported_and_the_recovery_point_stays(data: Path) -> None:
    (data / "recovery-point-offset-checkpoint").write_text("0\n2\nsegments 0 20\njava-none 0 1\n")
    (data / "segments-0" / MARK).touch()
    checked = verify_directory(data, topics=topics_of())
    assert any("a sync has failed" in each.text and "offset 20 on" in each.text for each in checked.findings)
    (data / "segments-0/00000000000000000033.index").unlink()
    repaired(data)
    points = read_offsets(data / "recovery-point-offset-checkpoint")
    assert points[TopicPartition("segments", 0)] == 20
    assert points[TopicPartition("java-none", 0)] > 1
    assert (data / "segments-0" / MARK).exists()


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
def test_kafka_reads_what_was_repaired(data: Path) -> None:
    log = data / FIRST
    write_at(log, positions(log)[2] + 12, 77, 4)
    write_at(log, positions(log)[4] + 80, 0x11, 1)
    displace(log, 7, 300)
    displace(data / LAST, 1, -20)
    repaired(data)
    command = jars.java(
        "4.3.1", "org.apache.kafka.tools.DumpLogSegments", "--deep-iteration",
        "--files", f"{log},{data / LAST},{log.with_suffix('.index')},{log.with_suffix('.timeindex')}",
    )  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    said = (done.stdout + done.stderr).lower()
    assert done.returncode == 0
    assert not [
        word for word in ("mismatch", "isvalid: false", "exception", "not consecutive") if word in said
    ]
    batches = [line for line in done.stdout.splitlines() if line.startswith("baseOffset")]
    assert [int(line.split()[1]) for line in batches] == [*range(11), *range(33, 40)]
    assert all("partitionLeaderEpoch: 0 " in line for line in batches)
