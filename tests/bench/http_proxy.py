#!/usr/bin/env python3
"""How fast the HTTP proxy produces, beside a bare application on the same server.

  http_proxy.py [--runs 3] [--seconds 5]

Prints a table in Markdown, each line a median over the runs, in which the servers take turns. Needs wrk (Debian: wrk).
The load is one thread of wrk with 8 connections, each with one request under way.
"""

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
ONE = {"records": [{"key": "someKeyText", "value": {"name": "testUser", "pad": "x" * 70}}]}
# 100 bytes of value each.
HUNDRED = {
    "records": [{"key": f"k{number}", "value": {"n": number, "pad": "x" * 82}} for number in range(100)]
}
REQUEST = (
    b"POST /topics/first HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b'Content-Length: 26\r\n\r\n{"records":[{"value":"1"}]}'
).replace(b": 26", b": 27")


# An installed broker has its bytecode; who works on it may have told Python to write none.
ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def wrk(port: int, body: object, seconds: float) -> float:
    """Requests a second. Raises for an answer that is an error."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(
            'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\n'
            f"wrk.body = [==[{json.dumps(body, separators=(',', ':'))}]==]\n"
        )
        script.flush()
        told = subprocess.run(
            ["wrk", "-t1", "-c8", f"-d{seconds:.0f}s", "-s", script.name, f"http://127.0.0.1:{port}/topics/bench"],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
    if "Non-2xx" in told or "Socket errors" in told:
        raise SystemExit(told)
    found = re.search(r"Requests/sec:\s+([\d.]+)", told)
    assert found
    return float(found[1])


@contextmanager
def bare() -> Iterator[int]:
    port = free_port()
    process = subprocess.Popen([sys.executable, str(HERE / "http_bare.py"), str(port)])
    try:
        first_answer(port)
        yield port
    finally:
        process.terminate()
        process.wait()


@contextmanager
def broker(enabled: bool = True) -> Iterator[tuple[subprocess.Popen[bytes], int, int]]:
    """The process, and the ports of the proxy and of Kafka's protocol."""
    port, kafka = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        options = {
            "log.dirs": folder,
            "listeners": f"PLAINTEXT://127.0.0.1:{kafka}",
            "lc.metrics.port": "0",
            "lc.http.proxy.enable": str(enabled).lower(),
            "lc.http.proxy.port": str(port),
        }
        given = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
        process = subprocess.Popen(
            [sys.executable, "-m", "leafcuttr", "serve", *given],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRON,
        )  # fmt: skip
        try:
            yield process, port, kafka
        finally:
            process.terminate()
            process.wait()


def first_answer(port: int) -> None:
    """Wait until a record is acknowledged."""
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
                sock.sendall(REQUEST)
                if sock.recv(4096).startswith(b"HTTP/1.1 200"):
                    return
        except ConnectionError:
            time.sleep(0.002)


def start() -> tuple[float, float]:
    """Seconds from the start of the process to the first acknowledgement, and resident MB at rest."""
    began = time.perf_counter()
    with broker() as (process, port, _):
        first_answer(port)
        took = time.perf_counter() - began
        time.sleep(3)
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
        return took, pages * 4096 / 1e6


def kafka(enabled: bool) -> float:
    """Records a second that a Kafka client produces."""
    with broker(enabled) as (_, _, port):
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionError:
                time.sleep(0.01)
        told = subprocess.run(
            [
                sys.executable, "-m", "leafcuttr", "perf", "produce", "--topic", "bench", "--num-records", "1000000",
                "--record-size", "100", "--throughput", "-1", "--bootstrap-server", f"127.0.0.1:{port}", "--json",
            ],
            check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
    return float(json.loads(told.strip().splitlines()[-1])["records_per_s"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    given = parser.parse_args()
    figures: dict[str, list[float]] = {}

    def note(name: str, value: float) -> None:
        figures.setdefault(name, []).append(value)

    start()  # for the bytecode
    for _ in range(given.runs):
        with bare() as port:
            note("bare application, POST/s", wrk(port, ONE, given.seconds))
        with broker() as (_, port, _):
            first_answer(port)
            note("one record a POST, POST/s", wrk(port, ONE, given.seconds))
            note("100 records a POST, records/s", wrk(port, HUNDRED, given.seconds) * 100)
        took, resident = start()
        note("first acknowledgement after the start of the process, s", took)
        note("resident at rest, MB", resident)
        note("Kafka client without the proxy, records/s", kafka(False))
        note("Kafka client beside the idle proxy, records/s", kafka(True))
    print("| what | median | runs |\n|---|---:|---|")
    for name, values in figures.items():
        digits = 0 if "/s" in name else 2
        runs = ", ".join(f"{value:,.{digits}f}" for value in values)
        print(f"| {name} | {statistics.median(values):,.{digits}f} | {runs} |")
    ratio = statistics.median(figures["one record a POST, POST/s"]) / statistics.median(
        figures["bare application, POST/s"]
    )
    print(f"| one record a POST, by the bare application | {ratio:.2f} | |")


if __name__ == "__main__":
    main()
