"""`leafcuttr dump` as a person runs it, on files that Kafka wrote."""

import json
from pathlib import Path

import pytest

from leafcuttr.wire.records import Record, encode_batch
from support.data_directories import FIRST, run


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
