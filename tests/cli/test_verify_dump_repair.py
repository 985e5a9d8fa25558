"""The offline commands as a person runs them, on a directory that Kafka wrote and on one of our own."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from leafcuttr.cli.root import cli
from leafcuttr.config.settings import Settings
from leafcuttr.log.layout.directory import DataDirectory
from leafcuttr.state.broker import Broker, open_broker
from leafcuttr.wire.batch import parse
from leafcuttr.wire.records import Record, decode_records, encode_batch
from leafcuttr_sdk import TopicPartition

FIXTURE = Path(__file__).parents[1] / "log" / "fixtures" / "kafka-4.3.1"
FIRST = "segments-0/00000000000000000000"
LINES = [b"value number %d " % number + b"leaf " * (number % 40) for number in range(100)]


class Clock:
    """Stands still."""

    def now_ms(self) -> int:
        return 1_800_000_000_000

    def monotonic(self) -> float:
        return 1.0


@pytest.fixture
def kafka(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FIXTURE, tmp_path / "kafka"))


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def open_at(directory: Path) -> Broker:
    return open_broker(Settings({"log.dirs": str(directory), "node.id": "1"}), Clock())


def close(broker: Broker) -> None:
    broker.logs.close()
    broker.metadata.close()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Path]:
    """An empty directory of our own, closed in good order."""
    directory = tmp_path / "own"
    close(open_at(directory))
    yield directory


def records_of(broker: Broker, topic: str, partition: int = 0) -> list[Record]:
    log = broker.logs.logs[TopicPartition(topic, partition)]
    found: list[Record] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        region = log.read(offset, 1 << 20, at_least_one=True).region
        assert region is not None
        content, at = region.read(), 0
        while at < len(content):
            header = parse(content, at)
            if not header.is_control:
                found += decode_records(content[at : at + header.size])
            offset = header.next_offset
            at += header.size
    return found


def test_verify_says_what_it_read(kafka: Path) -> None:
    done = run("verify", kafka)
    assert done.exit_code == 0
    assert "15 partitions, 20 segments, 101 batches" in done.output
    assert done.output.endswith("no problems found\n")


def test_verify_fails_on_damage_and_json_says_where(kafka: Path) -> None:
    log = kafka / f"{FIRST}.log"
    log.write_bytes(log.read_bytes()[:100] + b"!" + log.read_bytes()[101:])
    done = run("verify", "--json", kafka)
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert not report["clean"]
    (problem,) = (one for one in report["findings"] if one["severity"] == "problem")
    assert problem["path"] == str(log)
    assert problem["position"] == 0
    assert "CRC" in problem["text"]


def test_a_directory_in_use_is_left_alone(own: Path) -> None:
    holder = DataDirectory.open(own, node_id=1)
    try:
        for arguments in (("verify", own), ("repair", own), ("repair", "--adopt", own)):
            done = run(*arguments)
            assert done.exit_code == 2
            assert done.stderr.count("\n") == 1
            assert "in use by another broker" in done.stderr
        assert run("verify", "--online", own).exit_code == 0
    finally:
        holder.close()
    assert run("verify", own).exit_code == 0


def test_metadata_that_cannot_be_used_is_a_problem(own: Path) -> None:
    (own / "metadata.sqlite").write_bytes(b"SQLite format 3\0" + bytes(5000))
    done = run("verify", own)
    assert done.exit_code == 1
    assert f"{own}/metadata.sqlite" in done.output
    assert run("repair", own).exit_code == 2


def test_what_the_broker_writes_is_clean_before_and_after_a_restart(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    broker = open_at(directory)
    trio_run(broker, "orders")
    log = broker.logs.logs[TopicPartition("orders", 0)]
    for number in range(50):
        log.append(
            encode_batch([Record(0, 1_800_000_000_000, b"k", b"%d" % number * 200)]), 1_800_000_000_000
        )
    # As a kill would leave it.
    shutil.copytree(directory, tmp_path / "killed")
    close(broker)
    for place in (directory, tmp_path / "killed"):
        done = run("verify", "--deep", place)
        assert done.exit_code == 0, done.output
        assert "1 partitions, 1 segments, 50 batches" in done.output
    done = run("dump", "--json", "-r", directory / "orders-0" / "00000000000000000000.log")
    rows = [json.loads(line) for line in done.output.splitlines()]
    assert [row["records"][0]["value"] for row in rows] == [str(number) * 200 for number in range(50)]
    for name in ("leafcuttr.partitions", "recovery-point-offset-checkpoint", "orders-0/partition.metadata"):
        assert run("dump", directory / name).exit_code == 0, name


def trio_run(broker: Broker, topic: str) -> None:
    import trio

    trio.run(broker.topics.create, topic, 1, {})


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (f"{FIRST}.index", "offset=1 position="),
        (f"{FIRST}.timeindex", "timestamp=1700000001000 offset=1"),
        ("segments-0/00000000000000000040.snapshot", "last_sequence=39"),
        ("transactions-0/00000000000000000000.txnindex", "first_offset=8"),
        ("transactions-0/leader-epoch-checkpoint", "leader_epoch=0 start_offset=0"),
        ("replication-offset-checkpoint", 'topic="segments" partition=0 offset=40'),
        ("segments-0/partition.metadata", 'topic_id="'),
        ("librdkafka-lz4-0/00000000000000000000.log", 'codec="lz4"'),
        ("transactions-0/00000000000000000000.log", "control=yes"),
    ],
)
def test_dump_knows_every_file(kafka: Path, name: str, says: str) -> None:
    done = run("dump", kafka / name)
    assert done.exit_code == 0
    assert says in done.output


def test_dump_prints_records_that_do_not_move_the_cursor(kafka: Path, tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(encode_batch([Record(0, 5, b"\x1b[2J", b"\xff\x00", (("h", None),))]))
    done = run("dump", "-r", path)
    assert (
        '  offset=0 timestamp=5 key="\\u001b[2J" value={"base64": "/wA="} headers=[["h", null]]'
        in done.output
    )


def test_dump_goes_on_behind_damage(kafka: Path) -> None:
    log = kafka / f"{FIRST}.log"
    log.write_bytes(log.read_bytes()[:100] + b"!" + log.read_bytes()[101:])
    done = run("dump", "--batches", log)
    assert done.exit_code == 1
    lines = done.output.splitlines()
    assert lines[0] == 'position=0 damage="the CRC of the batch does not match"'
    assert len(lines) == 11


def test_dump_of_what_it_does_not_know(kafka: Path, tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.touch()
    for path, says in ((other, "not a file of a data directory"), (kafka / f"{FIRST}.snapshot", "")):
        path.touch()
        done = run("dump", path)
        assert done.exit_code == 2
        assert says in done.stderr
        assert done.stderr.count("\n") == 1


def test_dump_decodes_committed_offsets(tmp_path: Path) -> None:
    from leafcuttr.state.groups.records import group_key, offset_key

    folder = tmp_path / "__consumer_offsets-3"
    folder.mkdir()
    path = folder / "00000000000000000000.log"
    records = [
        Record(0, 1, offset_key("readers", "orders", 2), None),
        Record(1, 1, group_key("readers"), None),
    ]
    path.write_bytes(encode_batch([*records, Record(2, 1, b"\x00\x63x", b"?")]))
    (row,) = (json.loads(line) for line in run("dump", "--json", "-r", path).output.splitlines())
    assert row["records"][0]["key"] == {"version": 1, "group": "readers", "topic": "orders", "partition": 2}
    assert row["records"][1]["key"] == {"version": 2, "group": "readers"}
    assert row["records"][2]["value"] == "?"


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
        broker = open_at(kafka)
        check_adopted(broker)
        close(broker)
    log = TopicPartition("segments", 0)
    broker = open_at(kafka)
    assert broker.logs.logs[log].append(encode_batch([Record(0, 1, b"40", b"")]), 1_800_000_000_000) == 40
    close(broker)
    assert run("verify", "--deep", kafka).exit_code == 0
    again = run("repair", "--adopt", kafka)
    assert (again.exit_code, again.output) == (0, "nothing to adopt\n")


def test_folders_are_copied_from_elsewhere(kafka: Path, own: Path) -> None:
    before = {path: path.read_bytes() for path in kafka.rglob("*") if path.is_file()}
    done = run("repair", "--adopt", "--from", kafka, "--execute", "-c", "retention.ms=-1", own)
    assert done.exit_code == 0, done.output
    assert {path: path.read_bytes() for path in kafka.rglob("*") if path.is_file()} == before
    assert not list(own.rglob("*.deleted"))
    broker = open_at(own)
    check_adopted(broker)
    assert broker.topics.by_name["segments"].config.retention_ms == -1
    close(broker)
    assert run("verify", "--deep", own).exit_code == 0


def test_one_topic_by_name_or_by_its_folder(kafka: Path, own: Path) -> None:
    done = run("repair", "--adopt", "--from", kafka, "--topic", "segments", "--execute", own)
    assert "1 topics adopted" in done.output
    done = run("repair", "--adopt", "--from", kafka / "java-lz4-0", "--execute", own)
    assert "adopting java-lz4: 1 partitions, 100 records" in done.output
    broker = open_at(own)
    assert sorted(broker.topics.by_name) == ["java-lz4", "segments"]
    close(broker)


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
    broker = open_at(kafka)
    assert [record.key for record in records_of(broker, "segments")] == [b"%d" % at for at in range(39)]
    close(broker)
    assert run("verify", kafka).exit_code == 0


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
        broker = open_at(own)
        trio_run(broker, "transactions")
        close(broker)
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
        ("verify",),
        ("dump",),
        ("repair", "--topic", "x", own),
        ("repair", "--adopt", "-c", "x=1", own),
    ):
        assert run(*arguments).exit_code == 2
