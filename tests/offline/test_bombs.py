"""Batches that decompress to more than any batch may: the tools say so, and do not take the memory for it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from leafcuttr.wire.batch import parse
from leafcuttr.wire.compression import Codec
from leafcuttr.wire.records import Record, encode_batch

FIXTURE = Path(__file__).parents[1] / "log" / "fixtures" / "kafka-4.3.1"
BOMB = 101 << 20
# The limit for a batch is 100 MB; the tools themselves take some 40.
MOST_MB = 190


@pytest.fixture(scope="module")
def bombed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory in which each of four partitions ends in a bomb, by codec."""
    data = Path(shutil.copytree(FIXTURE, tmp_path_factory.mktemp("bombs") / "data"))
    for codec in (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD):
        log = data / f"java-{codec.name.lower()}-0" / f"{0:020}.log"
        last = parse(log.read_bytes())
        bomb = encode_batch(
            [Record(last.next_offset, last.max_timestamp, b"k", bytes(BOMB))],
            base_offset=last.next_offset,
            codec=codec,
            level=None if codec is Codec.SNAPPY else 1,
            partition_leader_epoch=0,
        )
        with log.open("ab") as file:
            file.write(bomb)
    return data


# Says at its end how much memory it had at most; what the kernel tells its parent begins with the parent's own.
_PROGRAM = """
import atexit, pathlib, runpy
atexit.register(lambda: print(pathlib.Path("/proc/self/status").read_text()))
runpy.run_module("leafcuttr", run_name="__main__", alter_sys=True)
"""


def ran(*words: str) -> tuple[str, float]:
    """What a command said, and the most megabytes that it had in memory."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *words], capture_output=True, text=True, timeout=120
    )
    text = done.stdout + done.stderr
    assert "Traceback" not in text, text[-3000:]
    peak = next(line for line in text.splitlines() if line.startswith("VmHWM"))
    return text, int(peak.split()[1]) / 1000


@pytest.mark.long
def test_verify_names_each(bombed: Path) -> None:
    text, most_mb = ran("verify", "--deep", str(bombed))
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        assert f"{codec}: decompresses to more than" in text
    assert most_mb < MOST_MB


@pytest.mark.one_in(3)
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_dump_goes_on(bombed: Path, codec: str) -> None:
    text, most_mb = ran("dump", "--records", str(bombed / f"java-{codec}-0" / f"{0:020}.log"))
    assert "decompresses to more than" in text
    assert most_mb < MOST_MB
