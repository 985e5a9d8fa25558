"""Kafka's own DumpLogSegments reads what we encode, in every codec and kind of batch."""

import re
import subprocess
from pathlib import Path

import pytest

from leafcuttr.offline.repair_steps import rebuild_indexes
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record, encode_batch
from support import jars
from support.real_kafka import VERSION

RECORD = re.compile(
    r"\| offset: (\d+) .*?keySize: (-?\d+) valueSize: (-?\d+).*?(?:headerKeys: \[(.*?)\])(.*)"
)


@pytest.mark.long
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
def test_dump_log_segments_reads_every_codec(tmp_path: Path) -> None:
    written: dict[Path, list[Record]] = {}
    for codec in Codec:
        for kind, fields in (
            ("plain", {}),
            ("producer", {"producer_id": 5, "producer_epoch": 1, "base_sequence": 0}),
            ("append-time", {"log_append_time": 1_700_000_000_000}),
        ):
            folder = tmp_path / f"{codec.name.lower()}.{kind}-0"
            folder.mkdir()
            records: list[Record] = []
            content = b""
            for base in range(0, 60, 20):
                some = [
                    Record(at, 1_600_000_000_000 + at, b"key-%d" % at if at % 3 else None,
                           b"leaf cut " * 400 * (at % 5) if at % 4 else None, (("h", b"x"), ("n", None))[: at % 3])
                    for at in range(base, base + 20)
                ]  # fmt: skip
                content += encode_batch(
                    some, base_offset=base, codec=codec, partition_leader_epoch=0,
                    **({**fields, "base_sequence": base} if "base_sequence" in fields else fields),
                )  # type: ignore[arg-type]  # fmt: skip
                records += some
            log = folder / "00000000000000000000.log"
            log.write_bytes(content)
            rebuild_indexes(folder, 0)
            written[log] = records
    files = ",".join(
        str(path)
        for log in written
        for path in (log, log.with_suffix(".index"), log.with_suffix(".timeindex"))
    )
    command = jars.java(
        VERSION, "org.apache.kafka.tools.DumpLogSegments", "--print-data-log", "--files", files
    )
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Mismatches" not in done.stdout + done.stderr
    assert "Found" not in done.stdout, done.stdout
    dumps = done.stdout.split("Dumping ")[1:]
    read = {Path(part.split("\n", 1)[0]): part for part in dumps}
    for log, records in written.items():
        lines = [line for line in read[log].splitlines() if line.startswith("| offset:")]
        assert len(lines) == len(records)
        assert read[log].count("isvalid: true") == 3
        codec = log.parent.name.partition(".")[0]
        assert read[log].count(f"compresscodec: {codec}") == 3
        for line, record in zip(lines, records, strict=True):
            match = RECORD.match(line)
            assert match is not None, line
            assert int(match[1]) == record.offset
            assert int(match[2]) == (-1 if record.key is None else len(record.key))
            assert int(match[3]) == (-1 if record.value is None else len(record.value))
            assert match[4] == ",".join(name for name, _ in record.headers)
            if record.key:
                assert f"key: {record.key.decode()}" in match[5]
            if record.value:
                assert record.value.decode().rstrip() in line
