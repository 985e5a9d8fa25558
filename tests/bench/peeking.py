#!/usr/bin/env python3
"""What a look at five bytes of each record costs a producer over TCP: a topic without a validator, one whose validator
gets each record, and one whose validator gets the first bytes of a batch at once.

  peeking.py [--rounds N] [--batches N]

One broker and one connection with five requests under way (as `max.in.flight.requests.per.connection`), each a batch of
500 records of 1000 bytes, that has been made before. The three topics take turns in every round; the table has the
medians of all rounds and of the rounds' ratios to the topic without. `lengths` says whether values have all 1000
bytes, or 500 to 1500, evenly spread.
"""

from __future__ import annotations

import argparse
import random
import socket
import statistics
import struct
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

from load import delete_topic
from peers import LeafCuttr
from rawclient import produce_request, seconds_to_first_ack

from leafcuttr.wire.records import Record, encode_batch

RECORDS = 500
IN_FLIGHT = 5
PLUGINS = Path(__file__).parent / "plugins"
CASES = {"none": "", "whole": "whole", "peeked": "peeked"}
LENGTHS = {"1000": (1000, 1000), "500-1500": (500, 1500)}


def request_for(topic: str, lengths: tuple[int, int]) -> bytes:
    chance, now = random.Random(1), int(time.time() * 1000)
    records = [
        Record(n, now, b"key%07d" % n, b"\0\0\0\0\1" + bytes(chance.randint(*lengths) - 5))
        for n in range(RECORDS)
    ]
    return produce_request(topic, bytes(encode_batch(records)))


def rate(port: int, request: bytes, batches: int) -> float:
    """Records a second. Raises ValueError for an answer with an error."""
    with socket.create_connection(("127.0.0.1", port), 30) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        room = threading.Semaphore(IN_FLIGHT)

        def send() -> None:
            for _ in range(batches):
                room.acquire()
                client.sendall(request)

        answers = client.makefile("rb")
        began = time.perf_counter()
        sender = threading.Thread(target=send)
        sender.start()
        for _ in range(batches):
            (size,) = struct.unpack(">i", answers.read(4))
            answer = answers.read(size)
            (name,) = struct.unpack_from(">h", answer, 8)
            error = struct.unpack_from(">h", answer, 8 + 2 + name + 4 + 4)[0]
            room.release()
            if error:
                raise ValueError(f"the broker answers with the error {error}")
        took = time.perf_counter() - began
        sender.join()
    return batches * RECORDS / took


def create(address: str, topic: str, validator: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    config = {"lc.validators": validator} if validator else {}
    admin = AdminClient({"bootstrap.servers": address})  # its requests end with it
    admin.create_topics([NewTopic(topic, 1, 1, config=config)])[topic].result(30)


def measure(rounds: int, batches: int) -> None:
    """Print the table."""
    found: dict[tuple[str, str], list[float]] = {(one, case): [] for one in LENGTHS for case in CASES}
    used: dict[tuple[str, str], list[float]] = {key: [] for key in found}
    with tempfile.TemporaryDirectory() as root:
        peer = LeafCuttr("leafcuttr", Path(root) / "broker", settings=(f"lc.plugins.path={PLUGINS}",))
        peer.start("log.segment.delete.delay.ms=0")
        try:
            seconds_to_first_ack(peer.port, "first", time.monotonic())
            for number in range(rounds):
                for lengths, bounds in LENGTHS.items():
                    for case, validator in CASES.items():
                        topic = f"{case}-{lengths}-{number}"
                        create(peer.address, topic, validator)
                        request = request_for(topic, bounds)
                        rate(peer.port, request, 3)  # the first batch of an instance is a worker's
                        before = peer.cpu_s()
                        found[lengths, case].append(rate(peer.port, request, batches))
                        used[lengths, case].append((peer.cpu_s() - before) / (batches * RECORDS) * 1e6)
                        delete_topic(peer, topic)
        finally:
            peer.stop()
    print("| lengths | validator | records/s | of none | CPU of the broker a record |")
    print("|---|---|---|---|---|")
    for (lengths, case), rates in found.items():
        ratios = [one / none for one, none in zip(rates, found[lengths, "none"], strict=True)]
        speed, ratio, cpu = map(statistics.median, (rates, ratios, used[lengths, case]))
        print(f"| {lengths} | {case} | {speed:,.0f} | {ratio:.2f} | {cpu:.2f} µs |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--batches", type=int, default=400)
    found = parser.parse_args()
    measure(found.rounds, found.batches)


if __name__ == "__main__":
    main()
