"""`leafcuttr repair` as a person runs it, on a directory that Kafka wrote and on one of our own."""

import json
import shutil
from pathlib import Path

import pytest

from leafcuttr.log.layout.checkpoints import LOG_START_OFFSETS, write_offsets
from leafcuttr.state.broker import Broker
from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk import TopicPartition
from support.data_directories import FIRST, broker_on, create, records_of, run
from support.logs import append

LINES = [b"value number %d " % number + b"leaf " * (number % 40) for number in range(100)]


def test_repair_shows_the_plan_and_does_it_when_told(kafka: Path) -> None:
    index = kafka / f"{FIRST}.index"
    index.unlink()
    plan = run("repair", kafka)
    assert plan.exit_code == 1
    assert f"would do: {index}: build the indexes anew" in plan.output
    assert not index.exists()
    assert run("repair", "--execute", kafka).exit_code == 0
    assert index.exists()
    done = run("repair", kafka)
    assert (done.exit_code, done.output) == (0, "nothing to repair\n")


def test_repair_tells_programs_the_same(kafka: Path) -> None:
    index = kafka / f"{FIRST}.index"
    index.unlink()
    plan = run("repair", "--json", kafka)
    told = json.loads(plan.output)
    assert plan.exit_code == 1
    assert (told["executed"], told["done"], told["refused"]) == (False, False, [])
    assert [problem["path"] for problem in told["problems"]] == [str(index)]
    assert told["steps"][0] == f"{index}: build the indexes anew"
    assert json.loads(run("repair", "--json", "--execute", kafka).output)["steps"] == told["steps"]
    assert json.loads(run("repair", "--json", kafka).output) == {
        "directory": str(kafka),
        "executed": False,
        "done": True,
        "problems": [],
        "steps": [],
        "refused": [],
    }
    adopted = run("repair", "--json", "--adopt", "--topic", "segments", "--topic", "no-such", kafka)
    told = json.loads(adopted.stdout)
    assert adopted.exit_code == 1
    assert told["steps"][0].startswith("adopt segments: 1 partitions, 40 records")
    assert told["refused"] == [f"no-such: no folder of it in {kafka}"]
    assert adopted.stderr == ""


def check_adopted(broker: Broker) -> None:
    for client in ("librdkafka", "java"):
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            assert [record.value for record in records_of(broker, f"{client}-{codec}")] == LINES
    for partition in (0, 1):
        values = [record.value for record in records_of(broker, "transactions", partition)]
        assert values == [b"%d.%d" % (number, step) for number in range(6) for step in range(3)]
    assert [record.key for record in records_of(broker, "segments")] == [b"%d" % at for at in range(40)]
    compacted = records_of(broker, "compacted")
    assert compacted[-1].value == b"more"
    assert len(compacted) == 8
    assert broker.topics.by_name["compacted"].config.compact
    assert all(log.offline is None for log in broker.logs.logs.values())


def test_a_kafka_directory_is_adopted_where_it_is(kafka: Path) -> None:
    assert run("repair", "--adopt", kafka).exit_code == 1
    assert not (kafka / "metadata.sqlite").exists()
    done = run("repair", "--adopt", "--execute", kafka)
    assert done.exit_code == 0, done.output
    assert "13 topics adopted" in done.output
    for _ in range(2):  # the second start is one after a clean stop
        with broker_on(kafka) as broker:
            check_adopted(broker)
    log = TopicPartition("segments", 0)
    with broker_on(kafka) as broker:
        assert (
            append(broker.logs.logs[log], encode_batch([Record(0, 1, b"40", b"")]), 1_800_000_000_000) == 40
        )
    assert run("verify", "--deep", kafka).exit_code == 0
    again = run("repair", "--adopt", kafka)
    assert (again.exit_code, again.output) == (0, "nothing to adopt\n")


def test_folders_are_copied_from_elsewhere(kafka: Path, own: Path) -> None:
    before = {path: path.read_bytes() for path in kafka.rglob("*") if path.is_file()}
    done = run("repair", "--adopt", "--from", kafka, "--execute", "-c", "retention.ms=-1", own)
    assert done.exit_code == 0, done.output
    assert {path: path.read_bytes() for path in kafka.rglob("*") if path.is_file()} == before
    assert not list(own.rglob("*.deleted"))
    with broker_on(own) as broker:
        check_adopted(broker)
        assert broker.topics.by_name["segments"].config.retention_ms == -1
    assert run("verify", "--deep", own).exit_code == 0


def test_one_topic_by_name_or_by_its_folder(kafka: Path, own: Path) -> None:
    done = run("repair", "--adopt", "--from", kafka, "--topic", "segments", "--execute", own)
    assert "1 topics adopted" in done.output
    done = run("repair", "--adopt", "--from", kafka / "java-lz4-0", "--execute", own)
    assert "adopting java-lz4: 1 partitions, 100 records" in done.output
    with broker_on(own) as broker:
        assert sorted(broker.topics.by_name) == ["java-lz4", "segments"]


def test_a_kafka_that_was_killed(kafka: Path) -> None:
    """Its indexes are still as long as they were preallocated, and its last batch is half written."""
    for suffix in (".index", ".timeindex"):
        path = kafka / f"segments-0/00000000000000000033{suffix}"
        path.write_bytes(path.read_bytes().ljust(10_000 - 10_000 % 24, b"\0"))
    log = kafka / "segments-0/00000000000000000033.log"
    log.write_bytes(log.read_bytes()[:-7])
    (kafka / ".kafka_cleanshutdown").unlink()
    done = run("repair", "--adopt", "--execute", "--topic", "segments", kafka)
    assert done.exit_code == 0, done.output
    assert "end in half a batch" in done.output
    with broker_on(kafka) as broker:
        assert [record.key for record in records_of(broker, "segments")] == [b"%d" % at for at in range(39)]
    assert run("verify", kafka).exit_code == 0


def test_where_a_log_begins_comes_along(kafka: Path, own: Path) -> None:
    """Records before it were deleted by the other broker's clients."""
    log = TopicPartition("segments", 0)
    write_offsets(kafka / LOG_START_OFFSETS, {log: 25})
    done = run("repair", "--adopt", "--from", kafka, "--topic", "segments", "--execute", own)
    assert done.exit_code == 0, done.output
    with broker_on(own) as broker:
        assert [record.key for record in records_of(broker, "segments")] == [
            b"%d" % at for at in range(25, 40)
        ]


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        ("clash", "the broker has another topic of that name"),
        ("hole", "partitions [1] are there, 0 to 1 are needed"),
        ("id", "partition.metadata is missing"),
        ("ids", "its partitions have different topic ids"),
        ("crc", "a damaged batch, and sound ones behind it"),
    ],
)
def test_what_cannot_be_adopted_is_refused_with_the_reason(
    kafka: Path, own: Path, damage: str, says: str
) -> None:
    first = kafka / "transactions-0"
    if damage == "clash":
        with broker_on(own) as broker:
            create(broker, "transactions")
    elif damage == "hole":
        shutil.rmtree(first)
    elif damage == "id":
        (first / "partition.metadata").unlink()
    elif damage == "ids":
        shutil.copy(kafka / "segments-0/partition.metadata", first / "partition.metadata")
    else:
        log = first / "00000000000000000000.log"
        log.write_bytes(log.read_bytes()[:70] + b"!" + log.read_bytes()[71:])
    done = run("repair", "--adopt", "--from", kafka, "--topic", "transactions", "--execute", own)
    assert done.exit_code == 1
    assert says in done.stderr
    assert damage == "clash" or not list(own.glob("transactions-*"))


def test_wrong_usage(own: Path) -> None:
    for arguments in (
        ("repair", "--topic", "x", own),
        ("repair", "--adopt", "-c", "x=1", own),
    ):
        assert run(*arguments).exit_code == 2
