#!/usr/bin/env python3
"""Where the broker's CPU goes for a lone request: one client, one request under way, 100 bytes.

  lone.py [--seconds 5] [--only produce|fetch] [--top 15]

Four looks, each on a broker that does nothing else; every figure is for one request, in microseconds or as a count:

  CPU          user and system time and switches of the process, as the kernel counts them, undisturbed
  perf         where the samples fell, by library and by symbol, kernel included; shares of that CPU
  strace       how many system calls of each kind
  cProfile     Python functions, by the CPU time of their thread; the profiler makes them slower, those with many calls
               most, so all times are scaled to the undisturbed CPU

Needs perf and strace; a look whose tool is missing is left out and said so. Nothing here has a peer to compare with.
"""

from __future__ import annotations

import argparse
import pstats
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from peers import LeafCuttr
from rawclient import RawClient, batch_of, framed, produce_request, seconds_to_first_ack

TOPIC = "lone"
VALUE = bytes(97 + i % 26 for i in range(100))
_FETCH = 1


def fetch_request() -> bytes:
    """Fetch v4 of the first batch, at once."""
    name = TOPIC.encode()
    body = struct.pack(">iiiibi", -1, 0, 1, 1 << 20, 0, 1) + struct.pack(">h", len(name)) + name
    return framed(_FETCH, 4, body + struct.pack(">iiqi", 1, 0, 0, 1))


REQUESTS: dict[str, Callable[[], bytes]] = {
    "produce": lambda: produce_request(TOPIC, batch_of(VALUE)),
    "fetch": fetch_request,
}


class Client:
    """Sends a request, waits for its answer, and again, in a thread that takes the time."""

    def __init__(self, port: int, request: bytes) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._request = request
        self._stop = False
        self.count = 0
        self.took: list[float] = []
        self.size = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        answer = bytearray(1 << 16)
        while not self._stop:
            began = time.perf_counter()
            self._socket.sendall(self._request)
            got = self._socket.recv_into(answer)
            while got < 4 or got < 4 + struct.unpack_from(">i", answer)[0]:
                more = self._socket.recv_into(memoryview(answer)[got:])
                if not more:
                    raise ConnectionError("the broker closed the connection")
                got += more
            self.took.append(time.perf_counter() - began)
            self.size = got
            self.count += 1

    def stop(self) -> None:
        self._stop = True
        self._thread.join()
        self._socket.close()


class Usage(NamedTuple):
    """What the kernel has counted for a process so far."""

    user_s: float
    system_s: float
    waits: int
    preempted: int

    @classmethod
    def of(cls, peer: LeafCuttr) -> Usage:
        """The sum of both times has nanoseconds, its parts are told apart by ticks."""
        stat = Path(f"/proc/{peer.pid}/stat").read_text().rpartition(")")[2].split()
        waits = preempted = 0
        for status in Path(f"/proc/{peer.pid}/task").glob("*/status"):
            found = dict(line.split(":\t") for line in status.read_text().splitlines() if "ctxt" in line)
            waits += int(found["voluntary_ctxt_switches"])
            preempted += int(found["nonvoluntary_ctxt_switches"])
        user, system = int(stat[11]), int(stat[12])
        return cls(user / 100, system / 100, waits, preempted)


def looked_at(peer: LeafCuttr, kind: str, during: Callable[[], None]) -> int:
    """How many requests were answered while `during` ran, after a second of warming up."""
    client = Client(peer.port, REQUESTS[kind]())
    try:
        time.sleep(1)
        before = client.count
        during()
        return client.count - before
    finally:
        client.stop()


def undisturbed(peer: LeafCuttr, kind: str, seconds: float) -> tuple[float, float]:
    """User and system microseconds of a request, printed with the rest."""
    client = Client(peer.port, REQUESTS[kind]())
    time.sleep(1)
    at, first, began, cpu = Usage.of(peer), client.count, time.perf_counter(), peer.cpu_s()
    time.sleep(seconds)
    then, count, passed = Usage.of(peer), client.count - first, time.perf_counter() - began
    whole = (peer.cpu_s() - cpu) / count * 1e6
    client.stop()
    ticks = (then.user_s - at.user_s, then.system_s - at.system_s)
    user = whole * ticks[0] / (sum(ticks) or 1)
    took = sorted(client.took[first:])
    print(f"\n== {kind}: {count} requests in {passed:.1f} s, answers of {client.size} bytes")
    print(f"   {count / passed:8.0f} requests/s; round trip p50 {took[len(took) // 2] * 1e6:.0f} us")
    print(f"   {whole:8.1f} us CPU of the broker: user {user:.1f}, system {whole - user:.1f}")
    print(
        f"   {(then.waits - at.waits) / count:8.2f} waits (the process sleeps and is woken), "
        f"{(then.preempted - at.preempted) / count:.2f} preemptions"
    )
    return user, whole - user


def by_perf(peer: LeafCuttr, kind: str, seconds: float, cpu_us: float, top: int, folder: Path) -> None:
    if not shutil.which("perf"):
        print("-- perf is not here")
        return
    file = str(folder / "perf.data")
    record = [
        "perf",
        "record",
        "-q",
        "-o",
        file,
        "-F",
        "1999",
        "-p",
        str(peer.pid),
        "--",
        "sleep",
        str(seconds),
    ]
    looked_at(peer, kind, lambda: _quietly(record))
    for title, sort in (("library", "dso"), ("symbol", "dso,symbol")):
        report = _quietly(
            ["perf", "report", "-i", file, "--stdio", "-q", "--no-children", "--sort", sort, "-w", "30,60"]
        )
        print(f"-- perf, by {title}: us of {cpu_us:.1f}")
        shown = 0
        for line in report.splitlines():
            found = re.match(r"\s*([0-9.]+)%\s+(.*\S)", line)
            if found and shown < top:
                shown += 1
                part, name = float(found[1]) / 100, " ".join(found[2].split()).rstrip(" -")
                print(f"   {part * cpu_us:8.2f}  {part:6.1%}  {name}")


def by_strace(peer: LeafCuttr, kind: str, seconds: float) -> None:
    if not shutil.which("strace"):
        print("-- strace is not here")
        return
    words = ["timeout", "-s", "INT", str(seconds), "strace", "-c", "-f", "-p", str(peer.pid)]
    out: list[str] = []
    count = looked_at(peer, kind, lambda: out.append(_quietly(words)))
    print(f"-- strace: system calls a request ({count} requests)")
    for line in out[0].splitlines():
        found = re.match(r"\s*[0-9.]+\s+[0-9.]+\s+\d+\s+(\d+)\s+(\d+\s+)?(\w+)$", line)
        if found and found[3] != "total" and int(found[1]) > count / 100:
            failed = f", {int(found[2]) / count:.2f} of them fail" if found[2] else ""
            print(f"   {int(found[1]) / count:8.2f}  {found[3]}{failed}")


_PROFILED = """
import cProfile, runpy, sys, time
file, sys.argv = sys.argv[1], sys.argv[3:]
profile = cProfile.Profile(time.thread_time)
try:
    profile.runcall(runpy.run_module, "leafcuttr", run_name="__main__", alter_sys=True)
finally:
    profile.dump_stats(file)
"""


def by_cprofile(folder: Path, kind: str, seconds: float, cpu_us: float, top: int) -> None:
    file = folder / f"{kind}.pstats"
    peer = LeafCuttr("profiled", folder / f"profiled-{kind}", python=("-c", _PROFILED, str(file)))
    peer.start()
    try:
        _fill(peer)
        client = Client(peer.port, REQUESTS[kind]())
        time.sleep(seconds)
        client.stop()
    finally:
        peer.stop()
    count = client.count
    rows = [
        (own, whole, calls, name)
        for name, (_, calls, own, whole, _) in pstats.Stats(str(file)).stats.items()  # type: ignore[attr-defined]
        if calls > count / 20  # the others are of the start, or of loops in the background
    ]
    total = sum(own for own, *_ in rows)
    print(f"-- cProfile: {total / count * 1e6:.1f} us under it stand for {cpu_us:.1f}")
    ours = [row for row in rows if "/leafcuttr/" in row[3][0]]
    for title, chosen, by in (("by own time", rows, 0), ("of ours, with what they call", ours, 1)):
        print(f"   {title}:\n        own  with callees  calls")
        for row in sorted(chosen, key=lambda row: -row[by])[:top]:
            own, whole, calls, name = row
            shares = own / total * cpu_us, whole / total * cpu_us, calls / count
            print(f"   {shares[0]:8.2f}  {shares[1]:12.2f}  {shares[2]:5.2f}  {_place(name)}")


def _place(name: tuple[str, int, str]) -> str:
    file, line, function = name
    if file == "~":
        return function
    parts = Path(file).parts
    start = next((at for at, part in enumerate(parts) if part in ("leafcuttr", "trio")), len(parts) - 1)
    return f"{'/'.join(parts[start:])}:{line} {function}"


def _fill(peer: LeafCuttr) -> None:
    seconds_to_first_ack(peer.port, "first", time.monotonic())
    client = RawClient(peer.port)
    client.create_topic(TOPIC)
    while client.produce(TOPIC, VALUE):
        time.sleep(0.02)
    client.close()


def _quietly(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout + (done.stderr if words[0] == "timeout" else "")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="for each look")
    parser.add_argument("--only", choices=REQUESTS, help="one kind of request")
    parser.add_argument("--top", type=int, default=15, help="lines of each list")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="leafcuttr-lone-") as scratch:
        folder = Path(scratch)
        for kind in [options.only] if options.only else REQUESTS:
            peer = LeafCuttr("leafcuttr", folder / kind)
            peer.start()
            try:
                _fill(peer)
                user, system = undisturbed(peer, kind, options.seconds)
                by_perf(peer, kind, options.seconds, user + system, options.top, folder)
                by_strace(peer, kind, options.seconds)
            finally:
                peer.stop()
            by_cprofile(folder, kind, options.seconds, user + system, options.top)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
