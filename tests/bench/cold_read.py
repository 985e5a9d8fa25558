"""What a reader of cold data costs a neighbour: acknowledge latency on one topic while another topic is read.

    python tests/bench/cold_read.py [--gigabytes 5] [--seconds 10] [--rounds 3] [--directory DIR]

Four situations in turn, `rounds` times: nobody reads; a consumer reads data that is in the page cache; the same
data with its pages dropped before every pass; and, without the broker, `cat` reads the same dropped files. The second
one tells what the reader's CPU costs on this machine, the third what the disk adds, the fourth what the disk's work
costs on this machine whoever asks for it. The promise: p99 in the third is at most twice that of the first; where the
fourth is as slow as the third, the machine is what is measured. It prints JSON and asserts
nothing: it measures the machine too. Beside the latency stands what the broker's event loop waited for meanwhile: for
a CPU (the machine is busy) and for the disk (the loop was blocked: that is what must not be; it needs
`sysctl kernel.task_delayacct=1`, else it reads 0).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]

from load import kperf  # noqa: E402

from support.broker_process import BrokerProcess, running_broker  # noqa: E402

RATE = 1000
RECORD = 1000


class Reader(threading.Thread):
    """Reads the cold topic from its beginning again and again until told to stop; `before` comes before each pass."""

    def __init__(self, address: str, count: int, before: Callable[[], None]) -> None:
        super().__init__()
        self._address, self._count, self._before = address, count, before
        self._over = threading.Event()
        self.rates: list[float] = []
        self.reading = threading.Event()

    def run(self) -> None:
        while not self._over.is_set():
            self._before()
            self.reading.set()
            self.rates.append(kperf("consume", self._address, "cold", str(self._count))["mb_per_s"])

    def stop(self) -> None:
        self._over.set()
        self.join()


class Cat(threading.Thread):
    """Reads the dropped files past the broker, again and again until told to stop."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._over = threading.Event()
        self.rates: list[float] = []
        self.reading = threading.Event()

    def run(self) -> None:
        files = sorted(self._folder.glob("*.log"))
        size = sum(path.stat().st_size for path in files) / 1e6
        while not self._over.is_set():
            drop(self._folder)
            self.reading.set()
            began = time.monotonic()
            subprocess.run(["cat", *map(str, files)], stdout=subprocess.DEVNULL, check=True)
            self.rates.append(size / (time.monotonic() - began))

    def stop(self) -> None:
        self._over.set()
        self.join()


def drop(folder: Path) -> None:
    """Take the pages of a partition's files out of the cache."""
    for path in folder.glob("*.log"):
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)


def nothing() -> None:
    """A pass over what the last one has left in the cache."""


@contextmanager
def reading(make: Callable[[], Reader | Cat] | None) -> Iterator[Reader | Cat | None]:
    if make is None:
        yield None
        return
    reader = make()
    reader.start()
    reader.reading.wait()
    try:
        yield reader
    finally:
        reader.stop()


def loop_waits(broker: BrokerProcess) -> tuple[float, float]:
    """Seconds that the event loop's thread has waited for a CPU and for block devices since it began."""
    thread = Path(f"/proc/{broker.process.pid}/task/{broker.process.pid}")
    runnable = int((thread / "schedstat").read_text().split()[1]) / 1e9
    fields = (thread / "stat").read_text().rpartition(")")[2].split()
    return runnable, int(fields[39]) / os.sysconf("SC_CLK_TCK")


def latency(broker: BrokerProcess, seconds: float) -> dict[str, float]:
    figures = kperf("latency", broker.address, "hot", str(RATE), str(seconds))
    ack: dict[str, float] = figures["ack"]  # type: ignore[assignment]
    return {name: ack[name] for name in ("p50_ms", "p99_ms", "p999_ms") if name in ack}


def measure(broker: BrokerProcess, gigabytes: float, seconds: float, rounds: int) -> dict[str, object]:
    count = int(gigabytes * 1e9) // RECORD
    kperf("produce", broker.address, "cold", str(count), str(RECORD))
    kperf("latency", broker.address, "hot", str(RATE), "1")
    cold = broker.data / "cold-0"
    situations: dict[str, Callable[[], Reader | Cat] | None] = {
        "alone": None,
        "beside a warm read": lambda: Reader(broker.address, count, nothing),
        "beside a cold read": lambda: Reader(broker.address, count, lambda: drop(cold)),
        "beside a cold cat": lambda: Cat(cold),
    }
    kperf("consume", broker.address, "cold", str(count))
    found: dict[str, list[dict[str, float]]] = {name: [] for name in situations}
    for _ in range(rounds):
        for name, make in situations.items():
            with reading(make) as reader:
                cpu, disk = loop_waits(broker)
                figures = latency(broker, seconds)
                cpu_after, disk_after = loop_waits(broker)
                figures |= {
                    "loop_waits_for_cpu_s": cpu_after - cpu,
                    "loop_waits_for_disk_s": disk_after - disk,
                }
            if reader is not None:
                figures["reader_mb_per_s"] = statistics.median(reader.rates)
            figures["resident_mb"] = broker.resident_mb()
            found[name].append(figures)
    medians = {
        name: {key: round(statistics.median(one[key] for one in rows), 3) for key in rows[0]}
        for name, rows in found.items()
    }
    ratio = medians["beside a cold read"]["p99_ms"] / medians["alone"]["p99_ms"]
    return {
        "gigabytes": gigabytes,
        "rounds": found,
        "medians": medians,
        "p99 ratio cold/alone": round(ratio, 2),
        "p99 ratio cold/cold cat": round(
            medians["beside a cold read"]["p99_ms"] / medians["beside a cold cat"]["p99_ms"], 2
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=5.0)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--directory", type=Path, help="on the disk to measure; default: the temporary directory"
    )
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(dir=given.directory, prefix="cold-read-") as folder,
        running_broker(Path(folder)) as broker,
    ):
        print(json.dumps(measure(broker, given.gigabytes, given.seconds, given.rounds), indent=2))


if __name__ == "__main__":
    main()
