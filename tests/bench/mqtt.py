#!/usr/bin/env python3
"""How fast MQTT is, beside Debian's mosquitto.

  mqtt.py [--runs 3] [--seconds 4] [--row NAME ...] [--only leafcuttr] [--json FILE] [-o NAME=VALUE ...]

The two brokers take turns, in each row of each run. Prints a table in Markdown: medians, and the ratio to mosquitto as
the median of the runs' ratios. The messages of the rows `qos` go into a Kafka topic, those of `fanout` into none.
mosquitto keeps all in memory and acknowledges before it stores. Needs mosquitto and a C compiler.
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
# An installed broker has its bytecode; who works on it may have told Python to write none.
ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
MAPPED = "bench"
CONNECT = b"\x10\x11\x00\x04MQTT\x04\x02\x00\x3c\x00\x05first"
PUBLISH = b"\x32\x10\x00\x08bench/t0\x00\x01" + b"data"
SIDES = "mosquitto", "leafcuttr"
Figures = dict[str, float]


class Failed(Exception):
    pass


@dataclass
class Server:
    """One broker: `port` is that of MQTT."""

    name: str
    process: subprocess.Popen[bytes]
    port: int
    folder: Path

    def cpu_s(self) -> float:
        """User and system time of all its threads."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / _TICKS

    def rss_mb(self) -> float:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * _PAGE / 1e6


def allow_many_files() -> None:
    """For the brokers too. A plugin's connections may take a share of the descriptors: 10,000 need 40,000."""
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (65_536, 65_536))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


@dataclass
class Bench:
    """What the command line says, and the load program."""

    load: Path
    seconds: float
    settings: list[str]

    @contextlib.contextmanager
    def mosquitto(self, mqtt: bool = True) -> Iterator[Server]:
        port = free_port()
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "mosquitto.conf"
            config.write_text(
                f"listener {port} 127.0.0.1\nallow_anonymous true\nset_tcp_nodelay true\n"
                "max_inflight_messages 0\nmax_queued_messages 0\n"
            )
            program = shutil.which("mosquitto", path=f"{os.environ['PATH']}:/usr/sbin")
            assert program, "mosquitto is not installed"
            with self._running("mosquitto", [program, "-c", str(config)], port, Path(folder)) as server:
                yield server

    @contextlib.contextmanager
    def leafcuttr(self, mqtt: bool = True) -> Iterator[Server]:
        port = free_port()
        with tempfile.TemporaryDirectory() as folder:
            options = [
                f"log.dirs={folder}/data",
                "listeners=PLAINTEXT://127.0.0.1:0",
                "lc.metrics.port=0",
                f"lc.mqtt.broker.enable={str(mqtt).lower()}",
                "mqtt.host=127.0.0.1",
                f"mqtt.port={port}",
                f"mqtt.topic.mapping.{MAPPED}/+={MAPPED}",
                "mqtt.max.connections=12000",
                *self.settings,
            ]
            command = [sys.executable, "-m", "leafcuttr", "serve"]
            command += ["--ready-file", f"{folder}/ready"]
            command += [word for option in options for word in ("-o", option)]
            with self._running("leafcuttr", command, port, Path(folder)) as server:
                yield server

    @contextlib.contextmanager
    def _running(self, name: str, command: list[str], port: int, folder: Path) -> Iterator[Server]:
        with (folder / "out.log").open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, env=ENVIRON, stdin=subprocess.DEVNULL)
        server = Server(name, process, port, folder)
        try:
            yield server
            if process.poll() is not None:
                raise Failed(f"{name} ended: {(folder / 'out.log').read_text()[-2000:]}")
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def started(self, name: str) -> "contextlib.AbstractContextManager[Server]":
        return self.mosquitto() if name == "mosquitto" else self.leafcuttr()

    def run_load(self, *words: object) -> Figures:
        """One call of mqttload. Raises Failed if something was refused or is missing."""
        done = subprocess.run(
            [str(self.load), *map(str, words)], capture_output=True, text=True, timeout=600, check=False
        )
        if done.returncode:
            raise Failed(f"mqttload {words[0]}: {done.stdout}{done.stderr}".strip())
        told: Figures = json.loads(done.stdout)
        return told


def first_acknowledged(server: Server) -> None:
    """Wait until a message with QoS 1 is acknowledged."""
    deadline = time.monotonic() + 30
    while server.process.poll() is None and time.monotonic() < deadline:
        with (
            contextlib.suppress(ConnectionError, TimeoutError),
            socket.create_connection(("127.0.0.1", server.port), timeout=20) as sock,
        ):
            sock.sendall(CONNECT + PUBLISH)
            got = b""
            while len(got) < 8 and (more := sock.recv(64)):
                got += more
            if got == b"\x20\x02\x00\x00\x40\x02\x00\x01":
                return
        time.sleep(0.002)
    raise Failed(f"{server.name} does not acknowledge: {(server.folder / 'out.log').read_text()[-2000:]}")


def publish(bench: Bench, server: Server, *, connections: int, window: int, qos: int) -> Figures:
    """Messages a second by mqtt_load.py, and what each costs the broker."""
    command = [sys.executable, str(HERE / "mqtt_load.py"), "publish", "127.0.0.1", str(server.port)]
    options = {"connections": connections, "window": window, "qos": qos, "seconds": bench.seconds}
    command += [word for name, value in options.items() for word in (f"--{name}", str(value))]
    before = server.cpu_s()
    done = subprocess.run(
        [*command, "--topic", f"{MAPPED}/t"], capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode:
        raise Failed(f"mqtt_load.py: {done.stderr[-500:]}")
    told = json.loads(done.stdout)
    return {
        "messages/s": told["messages_per_s"],
        "p99 of a window, ms": told["block_p99_ms"],
        "CPU, µs/message": (server.cpu_s() - before) / told["messages"] * 1e6,
    }


def fan_out(bench: Bench, server: Server, *, subscribers: int, qos: int, topic: str) -> Figures:
    messages = int(bench.seconds * 100_000 / subscribers)
    told = bench.run_load("fanout", "127.0.0.1", server.port, topic, subscribers, messages, 20, qos, 100)
    return {"deliveries/s": told["deliveries_per_s"]}


def delay(bench: Bench, server: Server, *, subscribers: int, qos: int, topic: str) -> Figures:
    """From publish to receipt, at 1,000 deliveries a second."""
    rate = 1000 / subscribers
    bench.run_load("latency", "127.0.0.1", server.port, topic, subscribers, rate, 1, qos)
    told = bench.run_load(
        "latency", "127.0.0.1", server.port, topic, subscribers, rate, 2 * bench.seconds, qos
    )
    return {"p50, ms": told["p50_ms"], "p99, ms": told["p99_ms"]}


def idle(bench: Bench, server: Server, *, connections: int, rate: int) -> Figures:
    """Connects at a rate; then what the connections cost while nothing happens."""
    command = [str(bench.load), "connect", "127.0.0.1", str(server.port), str(connections), str(rate)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as load:
        assert load.stdout
        assert load.stdin
        told = json.loads(load.stdout.readline())
        time.sleep(2)
        before, began = server.cpu_s(), time.monotonic()
        time.sleep(max(5, bench.seconds))
        cpu = (server.cpu_s() - before) / (time.monotonic() - began)
        resident = server.rss_mb()
        load.stdin.close()
        load.wait(60)
    return {
        "refused": told["refused"],
        "connects/s": told["connected"] / told["seconds"],
        "p99 of a connect, ms": told["p99_ms"],
        "resident, MB": resident,
        "idle CPU, %": cpu * 100,
        "ended meanwhile": float(load.returncode != 0) - float(told["refused"] > 0),
    }


def start(bench: Bench, name: str) -> Figures:
    began = time.perf_counter()
    with bench.started(name) as server:
        first_acknowledged(server)
        return {"s": time.perf_counter() - began}


def at_rest(bench: Bench, name: str) -> Figures:
    """What MQTT adds to a broker that has it on and nobody connected."""
    if name == "mosquitto":
        return {}
    found = {}
    for mqtt in (False, True):
        with bench.leafcuttr(mqtt) as server:
            while not (server.folder / "ready").exists():
                if server.process.poll() is not None:
                    raise Failed(f"it ended: {(server.folder / 'out.log').read_text()[-2000:]}")
                time.sleep(0.01)
            time.sleep(3)
            found[mqtt] = server.rss_mb()
    return {"resident, MB": found[True], "added by MQTT, MB": found[True] - found[False]}


@dataclass(frozen=True)
class Row:
    """One line or several of the table. `fresh` ones start the brokers themselves, by name."""

    name: str
    what: str
    measure: Callable[..., Figures]
    options: dict[str, Any]
    wanted: dict[str, tuple[str, float]]
    """By figure: `ratio>=`, `>=` or `<=` and the value."""
    fresh: bool = False


def row(
    name: str,
    what: str,
    measure: Callable[..., Figures],
    wanted: dict[str, tuple[str, float]],
    **options: Any,
) -> Row:
    return Row(name, what, measure, options, wanted, fresh=measure in (start, at_rest))


ROWS = (
    row(
        "qos1-window",
        "QoS 1, 8 connections, window 100",
        publish,
        {"messages/s": ("ratio>=", 1.3)},
        connections=8,
        window=100,
        qos=1,
    ),
    row(
        "qos1-devices",
        "QoS 1, 50 connections, window 1",
        publish,
        {"messages/s": ("ratio>=", 0.35)},
        connections=50,
        window=1,
        qos=1,
    ),
    row(
        "qos2",
        "QoS 2, 8 connections, window 100",
        publish,
        {"messages/s": ("ratio>=", 1.0)},
        connections=8,
        window=100,
        qos=2,
    ),
    row(
        "qos0",
        "QoS 0, 8 connections",
        publish,
        {"messages/s": ("ratio>=", 0.7)},
        connections=8,
        window=100,
        qos=0,
    ),
    row(
        "fanout",
        "1 publisher, 500 subscribers, QoS 0",
        fan_out,
        {"deliveries/s": (">=", 100_000)},
        subscribers=500,
        qos=0,
        topic="fan/out",
    ),
    row(
        "fanout-qos1",
        "1 publisher, 500 subscribers, QoS 1",
        fan_out,
        {},
        subscribers=500,
        qos=1,
        topic="fan/out",
    ),
    row(
        "latency",
        "publish to receipt, 1,000/s to 1 subscriber, QoS 1, mapped",
        delay,
        {"p99, ms": ("<=", 10)},
        subscribers=1,
        qos=1,
        topic=f"{MAPPED}/latency",
    ),
    row(
        "latency-fanout",
        "publish to receipt, 2/s to 500 subscribers, QoS 0",
        delay,
        {"p99, ms": ("<=", 10)},
        subscribers=500,
        qos=0,
        topic="fan/latency",
    ),
    row(
        "idle",
        "10,000 connections, at 2,000/s, then idle",
        idle,
        {"refused": ("<=", 0), "resident, MB": ("<=", 150), "idle CPU, %": ("<=", 2)},
        connections=10_000,
        rate=2000,
    ),
    row("start", "first acknowledged publish after the start of the process", start, {"s": ("<=", 0.7)}),
    row("at-rest", "nobody connected", at_rest, {"added by MQTT, MB": ("<=", 10)}),
)


def measure(bench: Bench, row: Row, name: str) -> Figures:
    if row.fresh:
        return row.measure(bench, name, **row.options)
    with bench.started(name) as server:
        first_acknowledged(server)
        return row.measure(bench, server, **row.options)


_MISSED = ": **no**"


def met(kind: str, limit: float, ours: float, ratio: float | None) -> bool | None:
    if kind == "ratio>=":
        return None if ratio is None else ratio >= limit
    return ours >= limit if kind == ">=" else ours <= limit


def table(found: dict[str, dict[str, list[Figures]]]) -> Iterator[str]:
    """`found`: by row and broker what each run has measured."""
    yield "| row | figure | LeafCuttr | mosquitto | ratio | wanted |"
    yield "|---|---|---:|---:|---:|---|"
    for row in ROWS:
        sides = found.get(row.name, {})
        runs = sides.get("leafcuttr") or sides.get("mosquitto") or []
        for figure in runs[0] if runs else ():
            cells: dict[str, list[float]] = {
                name: [run[figure] for run in measured if figure in run] for name, measured in sides.items()
            }
            ours, theirs = cells.get("leafcuttr", []), cells.get("mosquitto", [])
            pairs = [one / other for one, other in zip(ours, theirs, strict=False) if other]
            ratio = statistics.median(pairs) if pairs else None
            wanted = ""
            if figure in row.wanted:
                kind, limit = row.wanted[figure]
                reached = met(kind, limit, statistics.median(ours), ratio) if ours else None
                verdict = {None: "", True: ": yes", False: _MISSED}[reached]
                wanted = (
                    f"{kind.replace('>=', ' at least').replace('<=', 'at most').strip()} {limit:,g}{verdict}"
                )
            shown = (f"{statistics.median(cell):,.4g}" if cell else "-" for cell in (ours, theirs))
            by = "-" if ratio is None else f"{ratio:.2f}"
            yield f"| {row.what} | {figure} | {' | '.join(shown)} | {by} | {wanted} |"


def status(lines: list[str], failed: list[str]) -> int:
    """1 where a row could not be measured, or is not as good as is wanted."""
    return 1 if failed or any(_MISSED in line for line in lines) else 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--row", action="append", choices=[row.name for row in ROWS])
    parser.add_argument("--only", choices=SIDES)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("-o", dest="settings", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args()
    allow_many_files()
    found: dict[str, dict[str, list[Figures]]] = {}
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        load = Path(folder) / "mqttload"
        subprocess.run(["cc", "-O2", "-o", str(load), str(HERE / "mqttload.c")], check=True)
        bench = Bench(load, given.seconds, given.settings)
        names = [given.only] if given.only else list(SIDES)
        for row in ROWS:
            if given.row and row.name not in given.row:
                continue
            for number in range(given.runs):
                # Who begins changes: what a run leaves behind is not always the same one's burden.
                for name in names[:: 1 if number % 2 else -1]:
                    try:
                        figures = measure(bench, row, name)
                    except (Failed, subprocess.TimeoutExpired) as error:
                        failed.append(f"{row.name}, {name}: {error}")
                        continue
                    found.setdefault(row.name, {}).setdefault(name, []).append(figures)
                    print(f"{row.name}, {name}: {figures}", file=sys.stderr, flush=True)
    lines = list(table(found))
    print("\n".join(lines))
    for line in failed:
        print(f"failed: {line}")
    if given.json:
        given.json.write_text(json.dumps({"rows": found, "failed": failed}, indent=1) + "\n")
    sys.exit(status(lines, failed))


if __name__ == "__main__":
    main()
