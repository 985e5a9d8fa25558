"""`leafcuttr verify` as a person runs it, on a directory that Kafka wrote and on one of our own."""

import json
import shutil
from pathlib import Path

from leafcuttr.log.layout.directory import DataDirectory
from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk import TopicPartition
from support.data_directories import FIRST, broker_on, create, run
from support.logs import append


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
    with broker_on(directory) as broker:
        create(broker, "orders")
        log = broker.logs.logs[TopicPartition("orders", 0)]
        for number in range(50):
            append(
                log,
                encode_batch([Record(0, 1_800_000_000_000, b"k", b"%d" % number * 200)]),
                1_800_000_000_000,
            )
        # As a kill would leave it.
        shutil.copytree(directory, tmp_path / "killed")
    for place in (directory, tmp_path / "killed"):
        done = run("verify", "--deep", place)
        assert done.exit_code == 0, done.output
        assert "1 partitions, 1 segments, 50 batches" in done.output
    done = run("dump", "--json", "-r", directory / "orders-0" / "00000000000000000000.log")
    rows = [json.loads(line) for line in done.output.splitlines()]
    assert [row["records"][0]["value"] for row in rows] == [str(number) * 200 for number in range(50)]
    for name in ("leafcuttr.partitions", "recovery-point-offset-checkpoint", "orders-0/partition.metadata"):
        assert run("dump", directory / name).exit_code == 0, name


def test_wrong_usage() -> None:
    assert run("verify").exit_code == 2
