"""A crowd of MQTT clients in a process of its own, to be stopped or killed by signals: none of them says goodbye.

mqtt_crowd.py PORT COUNT KEEP_ALIVE     `ready` on standard output once all are connected; then it waits

They are in equal parts: subscribers of one topic; with a session that outlives its connection, for a second, and a
message in the middle of QoS 2; with a will; in the middle of a PUBLISH; in the middle of CONNECT; without a byte.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from mqtt.conformance import wire

KINDS = 6
ACCEPTED = 4
"""Kinds that the broker lets in."""
PERSISTENT = 1
TOPIC = "crowd/all"
WILLS = "crowd/wills"
TOGETHER = 200
"""Clients that connect at about the same time."""
SETTLED_S = 60
"""How long an answer may take."""


@contextmanager
def mqtt_crowd(folder: Path, port: int, count: int, keep_alive: int) -> Iterator[subprocess.Popen[bytes]]:
    """A crowd that is connected; killed at the end if it has not ended."""
    command = [sys.executable, __file__, str(port), str(count), str(keep_alive)]
    with (folder / "crowd.log").open("ab") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors)
    assert process.stdout is not None
    try:
        said = process.stdout.readline()
        assert said == b"ready\n", (folder / "crowd.log").read_text()[-2000:]
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def packets_of(number: int, keep_alive: int) -> tuple[list[bytes], int]:
    """What a client sends, each behind the answer to the one before, and how many of these are answered."""
    kind, version = number % KINDS, 4 + number // KINDS % 2
    name = f"crowd-{number}"
    connect = wire.connect(version, name, keep_alive=keep_alive)
    if kind == 0:
        return [connect, wire.subscribe(version, 1, [(TOPIC, 0)])], 2
    if kind == PERSISTENT:
        expiry = [("session_expiry", 1)]
        connect = wire.connect(5, name, clean=False, keep_alive=keep_alive, properties=expiry)
        message = wire.publish(5, TOPIC, b"once", qos=2, packet_id=1)
        return [connect, wire.subscribe(5, 1, [(f"crowd/{number}", 1)]), message], 3
    if kind == 2:
        return [wire.connect(version, name, keep_alive=keep_alive, will=wire.Will(WILLS, name.encode()))], 1
    if kind == 3:
        return [connect, wire.publish(version, TOPIC, bytes(1000), qos=1, packet_id=1)[:500]], 1
    if kind == 4:
        return [connect[:10]], 0
    return [], 0


def main() -> None:
    port, count, keep_alive = map(int, sys.argv[1:])
    held: list[socket.socket] = []
    for start in range(0, count, TOGETHER):
        numbers = range(start, min(start + TOGETHER, count))
        plans = [packets_of(number, keep_alive) for number in numbers]
        socks = [socket.create_connection(("127.0.0.1", port), SETTLED_S) for _ in numbers]
        for at in range(max(len(packets) for packets, _ in plans)):
            for sock, (packets, _) in zip(socks, plans, strict=True):
                if at < len(packets):
                    sock.sendall(packets[at])
            for number, sock, (_, answers) in zip(numbers, socks, plans, strict=True):
                if at < answers:
                    assert sock.recv(4096), f"client {number} was refused"
        held += socks
    print("ready", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
