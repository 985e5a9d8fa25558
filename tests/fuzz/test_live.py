"""Hostile bytes at a running broker: it lives on, small, and its other clients do not notice.

The slice of the gate is some hundred hostile connections, `--long` ten minutes of them (`LEAFCUTTR_FUZZ_SECONDS`
overrides both). The seed is printed; `LEAFCUTTR_FUZZ_SEED` repeats a run.
"""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from fuzz.capture import tapped, use_real_clients
from fuzz.mutate import mutate, on_the_wire
from support.broker_process import BrokerProcess, running_broker, start_broker

HERE = Path(__file__).parent
# What a process has in memory is looked at.
pytestmark = pytest.mark.alone
MEMORY_MB = 100
P99_MS = 50.0
LEAST_ATTACKS = 400


class Neighbour:
    """The measured client; `figures` ends it."""

    def __init__(self, port: int) -> None:
        command = [sys.executable, str(HERE / "neighbour.py"), str(port), "neighbour"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def figures(self) -> dict[str, float]:
        out, _ = self._process.communicate("", timeout=120)
        assert self._process.returncode == 0, "the neighbour met an error"
        found: dict[str, float] = json.loads(out)
        return found


def attack(port: int, frames: list[bytes], rng: random.Random) -> None:
    """One hostile connection: some damaged frames, in pieces, with or without waiting for answers."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as sock:
        sock.settimeout(0.02)
        for _ in range(rng.randint(1, 12)):
            data = on_the_wire(rng, mutate(rng, frames))
            cut = rng.randrange(len(data) + 1) if rng.random() < 0.3 else len(data)
            sock.sendall(data[:cut])
            if rng.random() < 0.5:
                with suppress(TimeoutError):
                    if not sock.recv(65536):
                        return
            sock.sendall(data[cut:])


@pytest.mark.timeout(0)  # its own clock ends it
def test_hostile_frames(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    long = request.config.getoption("--long")
    seconds = float(os.environ.get("LEAFCUTTR_FUZZ_SECONDS", "600" if long else "0"))
    seed = int(os.environ.get("LEAFCUTTR_FUZZ_SEED", str(random.randrange(1 << 32))))
    print(f"LEAFCUTTR_FUZZ_SEED={seed}")
    rng = random.Random(seed)
    with tapped() as tap:
        settings = {"advertised.listeners": f"PLAINTEXT://127.0.0.1:{tap.port}"}
        with running_broker(tmp_path, settings) as broker:
            tap.target = broker.port
            use_real_clients(f"127.0.0.1:{tap.port}")
            frames = list(tap.frames)
            keys = {int.from_bytes(frame[:2], "big") for frame in frames}
            assert len(keys) >= 18, f"the clients sent too few kinds of requests: {sorted(keys)}"
            largest, attacks = run_attacks(broker, frames, rng, seconds, long)
    print(f"{attacks} hostile connections, largest resident size {largest:.0f} MB")


def run_attacks(
    broker: BrokerProcess, frames: list[bytes], rng: random.Random, seconds: float, strict: bool
) -> tuple[float, int]:
    neighbour = Neighbour(broker.port)
    until, largest, attacks = time.monotonic() + seconds, 0.0, 0
    while attacks < LEAST_ATTACKS or time.monotonic() < until:
        attack(broker.port, frames, rng)
        attacks += 1
        assert broker.alive(), broker.log[-3000:]
        largest = max(largest, broker.resident_mb())
        assert largest < MEMORY_MB, f"{largest:.0f} MB resident"
    figures = neighbour.figures()
    print(f"the neighbour: {figures}")
    assert figures["n"] > 10
    if strict:
        assert figures["p99_ms"] < P99_MS
    assert "Traceback" not in broker.log, broker.log[-5000:]
    return largest, attacks


@pytest.fixture
def broker(tmp_path: Path) -> object:
    made = start_broker(tmp_path)
    yield made
    assert made.stop() == 0


def answers(port: int) -> None:
    """The broker serves: ApiVersions v0 comes back."""
    with socket.create_connection(("127.0.0.1", port), 60) as sock:
        sock.sendall(b"\0\0\0\x0c" + b"\0\x12\0\0" + b"\0\0\0\x07" + b"\0\x02hi")
        assert sock.recv(8)[4:8] == b"\0\0\0\x07"


def test_a_claim_of_two_gibibytes_costs_nothing(broker: BrokerProcess) -> None:
    before = broker.resident_mb()
    with socket.create_connection(("127.0.0.1", broker.port), 60) as liar:
        liar.sendall(b"\x7f\xff\xff\xff")
        assert liar.recv(1) == b"", "the connection closes"
    claims = [socket.create_connection(("127.0.0.1", broker.port), 60) for _ in range(50)]
    for sock in claims:
        sock.sendall((100 << 20).to_bytes(4, "big") + b"\0\0\0\x09")
    answers(broker.port)
    assert broker.resident_mb() < before + 20
    for sock in claims:
        sock.close()


def test_a_byte_at_a_time_and_a_close_in_the_middle_harm_nobody(broker: BrokerProcess) -> None:
    slow = socket.create_connection(("127.0.0.1", broker.port), 60)
    request = b"\0\0\0\x0c" + b"\0\x12\0\0" + b"\0\0\0\x07" + b"\0\x02hi"
    for byte in request[:-1]:
        slow.sendall(bytes([byte]))
        with socket.create_connection(("127.0.0.1", broker.port), 60) as rude:
            rude.sendall(request[:7])
        answers(broker.port)
    slow.sendall(request[-1:])
    assert slow.recv(8)[4:8] == b"\0\0\0\x07"
    slow.close()


def test_a_peer_that_does_not_read_meets_back_pressure(broker: BrokerProcess) -> None:
    request = b"\0\0\0\x0c" + b"\0\x12\0\0" + b"\0\0\0\x07" + b"\0\x02hi"
    before = broker.resident_mb()
    with socket.create_connection(("127.0.0.1", broker.port), 60) as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.settimeout(1.0)
        sent = 0
        with suppress(TimeoutError):
            while sent < 200 << 20:
                sent += deaf.send(request * 4096)
        assert sent < 200 << 20, "the broker stopped reading"
        answers(broker.port)
        assert broker.resident_mb() < before + 20
