"""What `leafcuttr dump` has of kafka-dump-log, compared with it on files that Kafka wrote."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from leafcuttr.cli.root import cli
from leafcuttr.wire.records import Record, encode_batch
from support import jars
from support.data_directories import KAFKA_FILES

SEGMENT = "00000000000000000000"
FOLDERS = ("transactions-0", "java-zstd-0", "librdkafka-gzip-0", "compacted-0", "segments-0")
FIELDS = {"keySize": "key_size", "valueSize": "value_size", "sequence": "sequence", "payload": "value"}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["dump", *map(str, arguments)])


def rows(*arguments: object) -> list[dict[str, Any]]:
    done = run("--json", *arguments)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.output.splitlines()]


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
def test_kafkas_tool_and_we_see_the_same_records() -> None:
    files = [KAFKA_FILES / folder / f"{SEGMENT}.log" for folder in FOLDERS]
    words = ("--deep-iteration", "--print-data-log", "--files", ",".join(map(str, files)))
    command = jars.java("4.3.1", "org.apache.kafka.tools.DumpLogSegments", *words)
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    theirs: dict[str, list[dict[str, Any]]] = {}
    for line in told.splitlines():
        if line.startswith("Dumping "):
            found = theirs.setdefault(line.removeprefix("Dumping "), [])
        elif line.startswith("| offset: "):
            found.append(dict(re.findall(r"(\w+): (\[.*?\]|.*?)(?= \w+: |$)", line)))
    for file in files:
        sizes = [record for row in rows("--files", file) for record in row["records"]]
        contents = [record for row in rows("--print-data-log", file) for record in row["records"]]
        assert len(theirs[str(file)]) == len(sizes) == len(contents) > 0
        for their, size, content in zip(theirs[str(file)], sizes, contents, strict=True):
            ours = {"sequence": -1} | size | content
            assert int(their["offset"]) == ours["offset"]
            assert int(their["CreateTime"]) == ours["timestamp"]
            assert int(their["sequence"]) == ours["sequence"]
            if "endTxnMarker" in their:
                assert their["endTxnMarker"].lower() == ours["control"]
                continue
            assert (int(their["keySize"]), int(their["valueSize"])) == (ours["key_size"], ours["value_size"])
            assert their["payload"].strip() == str(ours["value"] or "").strip()


def test_the_records_of_transactions_are_decoded(tmp_path: Path) -> None:
    log = KAFKA_FILES / "__transaction_state-0" / f"{SEGMENT}.log"
    by_name = [record for row in rows("-r", log) for record in row["records"]]
    assert by_name[0]["key"] == {"version": 0, "transactional_id": by_name[0]["key"]["transactional_id"]}
    states = [one["value"]["transaction_status"] for one in by_name]
    assert states[0] == "Empty"
    assert {"Ongoing", "PrepareCommit", "CompleteCommit"} <= set(states)
    elsewhere = shutil.copy(log, tmp_path / f"{SEGMENT}.log")
    assert "transactional_id" not in run("-r", elsewhere).output
    decoded = [record for row in rows("--transaction-log-decoder", elsewhere) for record in row["records"]]
    assert decoded == by_name
    assert run("--transaction-log-decoder", "--offsets-decoder", log).exit_code == 2


def test_how_deep(kafka: Path) -> None:
    log = kafka / "transactions-0" / f"{SEGMENT}.log"
    batches = rows("--batches", log)
    assert all("records" not in row for row in batches)
    assert [{key: row[key] for key in row if key != "records"} for row in rows(log)] == batches
    alone = [record for row in rows("-r", "--skip-record-metadata", log) for record in row["records"]]
    assert alone[0] == {"key": "t", "value": "0.0", "headers": []}
    assert len(alone) == sum(row["count"] for row in batches if not row["control"])
    few = rows("--batches", "--max-bytes", "173", log)
    assert few == batches[:3]


def test_damage_inside_a_batch_is_found_by_decoding_it(tmp_path: Path) -> None:
    from leafcuttr.wire.batch import parse
    from leafcuttr.wire.compression import Codec

    log = tmp_path / f"{SEGMENT}.log"
    batch = bytearray(encode_batch([Record(0, 5, b"k", b"v" * 500)], codec=Codec.GZIP))
    batch[80:90] = b"\0" * 10
    import crc32c

    batch[17:21] = crc32c.crc32c(memoryview(batch)[21:]).to_bytes(4, "big")
    assert parse(batch).size == len(batch)
    log.write_bytes(batch)
    assert run("--batches", log).exit_code == 0
    done = run(log)
    assert done.exit_code == 1
    assert "damage=" in done.output


@pytest.mark.parametrize("zeros", [30_000, 30])
def test_zeros_after_the_last_batch_are_no_damage(tmp_path: Path, zeros: int) -> None:
    """A running broker leaves it behind synced writes."""
    log = tmp_path / f"{SEGMENT}.log"
    batch = encode_batch([Record(0, 5, b"k", b"v")])
    log.write_bytes(batch + bytes(zeros))
    written, note = rows(log)
    assert (written["size"], note["position"]) == (len(batch), len(batch))
    assert note["note"].startswith(f"{zeros} bytes of zeros")
    log.write_bytes(batch + bytes(zeros) + batch)
    assert run(log).exit_code == 1


def test_formats(tmp_path: Path) -> None:
    log = tmp_path / f"{SEGMENT}.log"
    log.write_bytes(encode_batch([Record(0, 5, b"k", b'{"a": 1.5}'), Record(1, 5, None, b"\xff")]))
    first, second = rows("-r", "--format", "json", "--key-format", "hex", log)[0]["records"]
    assert (first["key"], first["value"]) == ("6b", {"a": 1.5})
    assert (second["key"], second["value"]) == (None, {"base64": "/w=="})
    assert run("-r", "--format", "jsn", log).exit_code == 2


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_indexes_are_checked_and_not_printed(kafka: Path, suffix: str) -> None:
    index = kafka / "segments-0" / f"{SEGMENT}{suffix}"
    entry = 8 if suffix == ".index" else 12
    sound = index.read_bytes()
    entries = len(rows(index))
    assert entries > 1
    for option in ("--index-sanity-check", "--verify-index-only"):
        assert rows(option, index) == [{"file": str(index), "entries": entries, "sound": True}]
    # An entry that stands where it could, but says what the log does not.
    index.write_bytes(sound[: entry - 1] + bytes([sound[entry - 1] + 1]) + sound[entry:])
    assert run("--index-sanity-check", index).exit_code == 0
    wrong = run("--verify-index-only", index)
    assert wrong.exit_code == 1
    assert "damage=" in wrong.output
    index.write_bytes(sound[entry : 2 * entry] + sound[:entry] + sound[2 * entry :])
    for option in ("--index-sanity-check", "--verify-index-only"):
        wrong = run(option, index)
        assert wrong.exit_code == 1
        assert "does not ascend" in wrong.output


def test_wrong_usage(tmp_path: Path) -> None:
    assert run().exit_code == 2
    assert run(tmp_path / f"{SEGMENT}.log").exit_code == 2
    (tmp_path / "x.index").touch()
    assert run("--verify-index-only", tmp_path / "x.index").exit_code == 2
