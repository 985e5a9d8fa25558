#!/usr/bin/env python3
"""Many event streams on one topic: does each get every record, how late, and what does it cost the broker?

  streams.py [--streams 200] [--rate 100] [--seconds 20] [--kind sse|websocket] [--idle 1000] [--stuck 200]

A broker with the HTTP proxy in a process of its own, the readers in another, records with the time of their making
produced over the Kafka protocol. `--idle`: then so many streams are opened on a topic where nothing happens, and the
memory of each is told. `--stuck`: and so many whose clients read nothing, while 200 MB go by.
"""

import argparse
import base64
import json
import multiprocessing
import os
import re
import selectors
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.broker_process import BrokerProcess, running_broker

TIME = re.compile(rb'"value":\{"at":(\d+),"n":(\d+)\}')
REQUEST = "GET /topics/{topic}/stream HTTP/1.1\r\nHost: x\r\n{more}\r\n"
UPGRADE = (
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    f"Sec-WebSocket-Key: {base64.b64encode(b'0' * 16).decode()}\r\n"
)


def connect(port: int, topic: str, kind: str) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.sendall(REQUEST.format(topic=topic, more=UPGRADE if kind == "websocket" else "").encode())
    head = b""
    while b"retry" not in head and b"heartbeat" not in head:
        head += sock.recv(65536)
    sock.setblocking(False)
    return sock


def read(port: int, kind: str, streams: int, records: int, results: "multiprocessing.Queue[object]") -> None:
    """Read until every stream has every record; tell the delays (ms), and how many were missing or came twice."""
    selector = selectors.DefaultSelector()
    seen: list[list[int]] = [[] for _ in range(streams)]
    rest = [b""] * streams
    delays: list[float] = []
    for number in range(streams):
        selector.register(connect(port, "t", kind), selectors.EVENT_READ, number)
    results.put("ready")
    left, silent_since = streams, time.monotonic()
    while left and time.monotonic() - silent_since < 10:
        for key, _ in selector.select(1):
            sock, number = key.fileobj, key.data
            assert isinstance(sock, socket.socket)
            data = rest[number] + sock.recv(1 << 20)
            now, end = time.time_ns(), 0
            for match in TIME.finditer(data):
                delays.append((now - int(match[1])) / 1e6)
                seen[number].append(int(match[2]))
                end = match.end()
            rest[number] = data[max(end, len(data) - 200) :]
            silent_since = time.monotonic()
            if len(seen[number]) == records:
                selector.unregister(sock)
                left -= 1
    wrong = sum(each != list(range(records)) for each in seen)
    results.put((delays, wrong))


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def live(broker: BrokerProcess, port: int, kind: str, streams: int, rate: int, seconds: int) -> None:
    from confluent_kafka import Producer

    results: multiprocessing.Queue[object] = multiprocessing.Queue()
    reader = multiprocessing.Process(target=read, args=(port, kind, streams, rate * seconds, results))
    reader.start()
    assert results.get() == "ready"
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 0})
    before, began = cpu_s(broker.process.pid), time.monotonic()
    for number in range(rate * seconds):
        while (wait := began + number / rate - time.monotonic()) > 0:
            producer.poll(min(wait, 0.01))
        producer.produce("t", json.dumps({"at": time.time_ns(), "n": number}, separators=(",", ":")))
    producer.flush()
    took = time.monotonic() - began
    used = cpu_s(broker.process.pid) - before
    delays, wrong = results.get()  # type: ignore[misc]
    reader.join()
    cuts = statistics.quantiles(delays, n=1000)
    print(
        f"{kind}: {streams} streams, {rate} records/s for {took:.0f} s: {len(delays):,} events, "
        f"{len(delays) / took:,.0f}/s; {wrong} streams with a record missing, twice or out of order"
    )
    print(
        f"  delay ms: p50 {cuts[499]:.1f}, p99 {cuts[989]:.1f}, p99.9 {cuts[998]:.1f}, most {max(delays):.1f}"
    )
    print(f"  broker: {used / took:.0%} of a core, {broker.resident_mb():.0f} MB resident")


def idle(broker: BrokerProcess, port: int, kind: str, streams: int) -> None:
    before = broker.resident_mb()
    socks = [connect(port, "idle", kind) for _ in range(streams)]
    each = (broker.resident_mb() - before) * 1e3 / streams
    began, used = time.monotonic(), cpu_s(broker.process.pid)
    time.sleep(5)
    share = (cpu_s(broker.process.pid) - used) / (time.monotonic() - began)
    print(f"{kind}: {streams} idle streams: {each:.0f} kB each, {share:.1%} of a core")
    for sock in socks:
        sock.close()


def stuck(broker: BrokerProcess, port: int, kind: str, streams: int) -> None:
    from confluent_kafka import Producer

    before = broker.resident_mb()
    socks = [connect(port, "stuck", kind) for _ in range(streams)]
    producer = Producer({"bootstrap.servers": broker.address, "linger.ms": 5})
    most = 0.0
    for number in range(200_000):
        producer.produce("stuck", b"x" * 1000)
        producer.poll(0)
        if number % 10_000 == 0:
            producer.flush()
            most = max(most, broker.resident_mb())
    producer.flush()
    most = max(most, broker.resident_mb()) - before
    print(
        f"{kind}: {streams} stuck streams beside 200 MB: {most:.0f} MB more at most, {most * 1e3 / streams:.0f} kB each"
    )
    for sock in socks:
        sock.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--rate", type=int, default=100, help="records a second")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--kind", choices=("sse", "websocket"), default="sse")
    parser.add_argument("--idle", type=int, default=0, help="and so many streams of a silent topic")
    parser.add_argument("--stuck", type=int, default=0, help="and so many streams that nobody reads")
    given = parser.parse_args()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "lc.http.proxy.enable": "true",
        "lc.http.proxy.port": str(port),
        "lc.http.proxy.max.connections": "100000",
        "lc.http.proxy.max.streams": "100000",
    }
    with tempfile.TemporaryDirectory() as folder, running_broker(Path(folder), settings) as broker:
        from support.librdkafka import create

        create(broker.address, "t")
        create(broker.address, "idle")
        create(broker.address, "stuck")
        live(broker, port, given.kind, given.streams, given.rate, given.seconds)
        if given.idle:
            idle(broker, port, given.kind, given.idle)
        if given.stuck:
            stuck(broker, port, given.kind, given.stuck)


if __name__ == "__main__":
    main()
