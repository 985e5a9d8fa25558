"""What docs/how-to/edge-box.md promises: the unit is one, the settings are good, and 256 MB are enough."""

from __future__ import annotations

import contextlib
import itertools
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from leafcuttr.config.load import examine
from support import librdkafka
from support.broker_process import BrokerProcess, start_broker
from support.pages import DOCS
from support.waiting import until

UNIT = DOCS / "how-to" / "leafcuttr.service"
SETTINGS = DOCS / "how-to" / "edge.properties"
LIMIT_MB = 256
CLIENTS = 8


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not here")
    text = UNIT.read_text()
    # Only the program is another: the one of the page is not installed here.
    program = tmp_path / "leafcuttr"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert "/opt/leafcuttr/bin/leafcuttr serve" in text
    (tmp_path / "leafcuttr.service").write_text(text.replace("/opt/leafcuttr/bin/leafcuttr", str(program)))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", tmp_path / "leafcuttr.service"],
        capture_output=True,
        text=True,
    )
    said = [line for line in done.stderr.splitlines() if "leafcuttr" in line]
    assert (done.returncode, said) == (0, [])
    (tmp_path / "wrong.service").write_text(text.replace("Restart=on-failure", "Restart=perhaps"))
    wrong = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / "wrong.service"], capture_output=True, text=True
    )
    assert "restart specifier" in wrong.stderr, "it would have noticed"


def test_the_settings_are_good() -> None:
    _, findings = examine(SETTINGS, {})
    assert [one.line for one in findings] == []


def test_the_page_shows_the_files() -> None:
    page = (DOCS / "how-to" / "edge-box.md").read_text()
    given = dict(re.findall(r"^([a-z.]+)=(.*)$", SETTINGS.read_text(), re.M))
    for name in re.findall(r"^\| `([a-z.]+)` \|", page, re.M):
        assert name in given
    assert "MemoryMax=256M" in UNIT.read_text()


@contextmanager
def edge_broker(folder: Path) -> Iterator[BrokerProcess]:
    """With the page's settings but for the place, in a process whose own memory the kernel holds to the limit."""
    broker = start_broker(
        folder,
        {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "advertised.listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(folder / "data"),
            "log.cleaner.backoff.ms": "200",
        },
        config=SETTINGS,
        before=("prlimit", f"--data={LIMIT_MB << 20}"),
    )
    try:
        yield broker
        assert broker.stop() == 0, broker.log
    finally:
        if broker.alive():
            broker.process.kill()
            broker.process.wait()


def memory_mb(pid: int) -> dict[int, float]:
    """The peak of the process and of each of its children, without the files that they map."""
    pids = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():  # any thread may have started a child
        with contextlib.suppress(OSError):
            pids += map(int, (task / "children").read_text().split())
    found = {}
    for one in pids:
        try:
            text = Path(f"/proc/{one}/status").read_text()
        except OSError:
            continue
        peak = re.search(r"^VmHWM:\s+(\d+) kB", text, re.M)
        if peak:
            found[one] = int(peak[1]) / 1024
    return found


@pytest.mark.long
def test_load_within_256_megabytes(tmp_path: Path) -> None:
    """Eight producers of different codecs, a compacted topic, readers of everything, under the limit."""
    if not shutil.which("prlimit"):
        pytest.skip("prlimit is not here")
    codecs = ["none", "none", "gzip", "snappy", "lz4", "zstd", "none", "zstd"]
    count, size = 8000, 1000
    peaks: dict[int, float] = {}
    with edge_broker(tmp_path) as broker:
        librdkafka.create(broker.address, "load", CLIENTS)
        librdkafka.create(
            broker.address,
            "kept",
            1,
            cleanup_policy="compact",
            segment_bytes="1048576",
            min_cleanable_dirty_ratio="0.01",
        )
        outcomes: list[list[int | str]] = [[] for _ in codecs]

        def produce(number: int) -> None:
            values = (b"%08d" % at + bytes(size - 8) for at in range(count))
            outcomes[number] = librdkafka.send(
                broker.address,
                "load",
                values,
                timestamp=-1,
                partition=number,
                compression_type=codecs[number],
                linger_ms=20,
                queue_buffering_max_kbytes=65536,
            )

        def overwrite() -> None:
            for key in itertools.islice(itertools.cycle(range(20)), 100):
                librdkafka.send(broker.address, "kept", [bytes(200_000)], timestamp=-1, key=b"%d" % key)

        threads = [threading.Thread(target=produce, args=(number,)) for number in range(CLIENTS)]
        threads.append(threading.Thread(target=overwrite))
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            peaks |= memory_mb(broker.process.pid)
            threads[0].join(0.05)
            threads[-1].join(0.05)
        assert [len(set(offsets)) for offsets in outcomes] == [count] * CLIENTS
        assert all(isinstance(offset, int) for offsets in outcomes for offset in offsets)

        def cleaned() -> bool:
            peaks.update(memory_mb(broker.process.pid))
            with contextlib.suppress(FileNotFoundError):  # the cleaner puts a file in the place of others
                sizes = [path.stat().st_size for path in (broker.data / "kept-0").glob("*.log")]
                return 0 < sum(sizes) < 8 << 20
            return False

        until(cleaned, "compaction")
        for partition in range(CLIENTS):
            read = librdkafka.read(broker.address, "load", count, partition=partition, check_crcs=True)
            assert [int(message.value()[:8]) for message in read] == list(range(count))
        peaks |= memory_mb(broker.process.pid)
    # The cleaner's process is short-lived; what of it was seen is added to the broker's own peak.
    assert peaks[broker.process.pid] + max(
        [v for k, v in peaks.items() if k != broker.process.pid], default=0
    ) < (LIMIT_MB), peaks
    print(f"peak of the broker {peaks[broker.process.pid]:.0f} MB, all {peaks}", file=sys.stderr)
