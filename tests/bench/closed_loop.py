#!/usr/bin/env python3
"""N clients that each have one record under way: acknowledged records a second, and how long one took.

  closed_loop.py HOST:PORT TOPIC CLIENTS SECONDS [--partitions N] [--size BYTES]

Raw connections served by one loop, so that the client costs a few microseconds a record and the same for every
broker: what is measured is the broker and its disk. One line on standard output: a JSON object.
"""

import argparse
import json
import select
import socket
import struct
import time

from rawclient import RawClient, batch_of, produce_request

_WARM_S = 1.0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("address")
    parser.add_argument("topic")
    parser.add_argument("clients", type=int)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--partitions", type=int, default=1, help="clients take these in turn")
    parser.add_argument("--size", type=int, default=100, help="bytes of a record")
    options = parser.parse_args()
    port = int(options.address.rpartition(":")[2])
    _reach(port, options.topic, options.partitions)
    print(
        json.dumps(
            run(port, options.topic, options.clients, options.seconds, options.partitions, options.size)
        )
    )


def _reach(port: int, topic: str, partitions: int) -> None:
    client = RawClient(port)
    client.create_topic(topic)
    until = time.monotonic() + 60
    for partition in range(partitions):
        while code := client.produce(topic, partition=partition):
            if time.monotonic() > until:
                raise RuntimeError(f"{topic}-{partition}: error {code}")
            time.sleep(0.02)
    client.close()


def run(port: int, topic: str, clients: int, seconds: float, partitions: int, size: int) -> dict[str, float]:
    """Drive the clients for a while; the first second does not count."""
    poll = select.epoll()
    socks: dict[int, socket.socket] = {}
    requests: dict[int, bytes] = {}
    sent: dict[int, float] = {}
    value = bytes(97 + i % 26 for i in range(size))
    for number in range(clients):
        sock = socket.create_connection(("127.0.0.1", port), 10)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        fd = sock.fileno()
        socks[fd] = sock
        requests[fd] = produce_request(topic, batch_of(value), partition=number % partitions)
        poll.register(fd, select.EPOLLIN)
    code_at = 4 + 4 + 4 + 2 + len(topic.encode()) + 4 + 4
    began = time.perf_counter()
    for fd, sock in socks.items():
        sent[fd] = time.perf_counter()
        sock.sendall(requests[fd])
    counted_from, until = began + _WARM_S, began + _WARM_S + seconds
    took: list[float] = []
    now = began
    while now < until:
        for fd, _ in poll.poll(10):
            answer = socks[fd].recv(4096)
            now = time.perf_counter()
            code = struct.unpack_from(">h", answer, code_at)[0]
            if code:
                raise RuntimeError(f"error {code}")
            if now >= counted_from:
                took.append(now - sent[fd])
            sent[fd] = now
            socks[fd].send(requests[fd])
    for sock in socks.values():
        sock.close()
    took.sort()
    return {
        "records_per_s": len(took) / seconds,
        "p50_ms": took[len(took) // 2] * 1e3,
        "p99_ms": took[int(len(took) * 0.99)] * 1e3,
    }


if __name__ == "__main__":
    main()
