#!/usr/bin/env python3
"""What a scrape of very many partitions costs, and what it costs a producer beside it.

  scrape.py [--partitions 10000] [--seconds 6]

One producer sends a record every two milliseconds, first alone, then while another process scrapes without a pause.
One JSON object on standard output.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic
from rawclient import batch_of, produce_request

_EACH = 1000
_PAUSE_S = 0.002


def scrape(address: str) -> int:
    request = urllib.request.Request(f"http://{address}/metrics", headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return len(answer.read())


def scrape_on(address: str, seconds: float) -> None:
    """The program of the other process."""
    until, count, size = time.monotonic() + seconds, 0, 0
    while time.monotonic() < until:
        size = scrape(address)
        count += 1
    print(json.dumps({"scrape_s": seconds / count, "gzip_bytes": size}))


def load(sock: socket.socket, request: bytes, seconds: float) -> dict[str, float]:
    took: list[float] = []
    until = time.perf_counter() + seconds
    while (began := time.perf_counter()) < until:
        sock.sendall(request)
        sock.recv(4096)
        took.append(time.perf_counter() - began)
        time.sleep(_PAUSE_S)
    took.sort()
    return {
        "p50_ms": took[len(took) // 2] * 1e3,
        "p99_ms": took[int(len(took) * 0.99)] * 1e3,
        "max_ms": took[-1] * 1e3,
    }


def resident_mb(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(pid: int, kafka: str, metrics: str, partitions: int, seconds: float) -> dict[str, object]:
    admin = AdminClient({"bootstrap.servers": kafka})
    for number in range(0, partitions, _EACH):
        topic = NewTopic(f"many-{number}", min(_EACH, partitions - number), 1)
        admin.create_topics([topic], request_timeout=60)[topic.topic].result(60)
    admin.create_topics([NewTopic("one", 1, 1)])["one"].result(60)
    host, _, port = kafka.rpartition(":")
    sock = socket.create_connection((host, int(port)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    request = produce_request("one", batch_of(b"x" * 100))
    before_mb = resident_mb(pid)
    scrape(metrics)
    load(sock, request, 1)
    alone = load(sock, request, seconds)
    words = [sys.executable, __file__, "--scrape", metrics, "--seconds", str(seconds)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as other:
        beside = load(sock, request, seconds)
        text, _ = other.communicate()
    return {
        "alone": alone,
        "scraped": beside,
        **json.loads(text),
        "resident_mb_before": before_mb,
        "resident_mb_after": resident_mb(pid),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--scrape", metavar="HOST:PORT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.scrape:
        scrape_on(options.scrape, options.seconds)
        return
    with tempfile.TemporaryDirectory(prefix="scrape-") as folder:
        ready = Path(folder) / "ready.json"
        settings = ("listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={folder}/data", "lc.metrics.port=0")
        broker = subprocess.Popen(
            [sys.executable, "-m", "leafcuttr", "serve", "--ready-file", str(ready)]
            + [word for setting in settings for word in ("-o", setting)],
            stdout=subprocess.DEVNULL,
        )
        try:
            while not ready.exists():
                time.sleep(0.01)
            about = json.loads(ready.read_text())
            kafka = next(iter(about["listeners"].values()))
            print(
                json.dumps(measure(broker.pid, kafka, about["metrics"], options.partitions, options.seconds))
            )
        finally:
            broker.send_signal(signal.SIGTERM)
            broker.wait()


if __name__ == "__main__":
    main()
