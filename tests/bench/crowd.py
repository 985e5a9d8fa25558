#!/usr/bin/env python3
"""Many small clients at once: 1,000 connections that each produce once a second, 200 consumers in 20 groups.

  crowd.py HOST:PORT [--connections 1000] [--consumers 200] [--groups 20] [--seconds 20]

Producers are raw sockets (the acknowledgement is timed), consumers are aiokafka's, in a process of their own so that
their work is not in the producers' times. One JSON line.
"""

import argparse
import asyncio
import json
import logging
import struct
import subprocess
import sys
import time

from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from rawclient import batch_of

TOPIC, PARTITIONS = "crowd", 20
SETTLE_S = 12  # for the groups to come to rest


def request(topic: str, partition: int) -> bytes:
    name, records = topic.encode(), batch_of(b"y" * 40)
    body = (
        struct.pack(">hhih", 0, 7, 7, 3) + b"raw" + struct.pack(">hhiih", -1, -1, 10000, 1, len(name)) + name
    )
    body += struct.pack(">iii", 1, partition, len(records)) + records
    return struct.pack(">i", len(body)) + body


async def producer(
    host: str, port: int, number: int, until: float, delays: list[float], errors: list[str]
) -> None:
    try:
        reader, writer = await asyncio.open_connection(host, port)
        await asyncio.sleep(number % 1000 / 1000)
        while time.monotonic() < until:
            began = time.monotonic()
            writer.write(request(TOPIC, number % PARTITIONS))
            size = struct.unpack(">i", await reader.readexactly(4))[0]
            answer = await reader.readexactly(size)
            delays.append(time.monotonic() - began)
            code = struct.unpack_from(">h", answer, 4 + 4 + 2 + len(TOPIC) + 4 + 4)[0]
            if code:
                errors.append(f"produce: error {code}")
            await asyncio.sleep(max(0.0, 1 - (time.monotonic() - began)))
        writer.close()
    except (OSError, asyncio.IncompleteReadError) as error:
        errors.append(f"produce: {error!r}")


async def consumer(address: str, group: int, until: float, counts: list[int], errors: list[str]) -> None:
    client = AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=address,
        group_id=f"crowd-{group}",
        auto_offset_reset="earliest",
        enable_auto_commit=True,
    )
    try:
        await client.start()
        while time.monotonic() < until:
            found = await client.getmany(timeout_ms=500)
            counts[group] += sum(len(records) for records in found.values())
    except Exception as error:
        errors.append(f"consume: {error!r}")
    finally:
        await client.stop()


async def consumers(options: argparse.Namespace) -> list[int]:
    """How many records each group has read when standard input has closed and nothing has come for a while."""
    counts = [0] * options.groups
    errors: list[str] = []
    until = time.monotonic() + options.seconds + SETTLE_S + 5
    async with asyncio.TaskGroup() as tasks:
        for number in range(options.consumers):
            tasks.create_task(consumer(options.address, number % options.groups, until, counts, errors))
    if errors:
        raise RuntimeError(errors[0])
    return counts


async def producers(options: argparse.Namespace) -> tuple[list[float], list[str]]:
    host, _, port = options.address.rpartition(":")
    delays: list[float] = []
    errors: list[str] = []
    until = time.monotonic() + options.seconds
    async with asyncio.TaskGroup() as tasks:
        for number in range(options.connections):
            tasks.create_task(producer(host, int(port), number, until, delays, errors))
    return sorted(delays), errors


async def create_topic(address: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    await admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])
    await admin.close()


def run(options: argparse.Namespace) -> dict[str, object]:
    asyncio.run(create_topic(options.address))
    command = [sys.executable, __file__, *sys.argv[1:], "--role", "consumers"]
    readers = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    time.sleep(SETTLE_S)
    delays, errors = asyncio.run(producers(options))
    out, _ = readers.communicate()
    counts = json.loads(out) if readers.returncode == 0 else []
    return {
        "acked": len(delays),
        "errors": len(errors) + (readers.returncode != 0),
        "first_error": errors[0] if errors else "",
        "p50_ms": 1000 * delays[len(delays) // 2],
        "p99_ms": 1000 * delays[len(delays) * 99 // 100],
        "max_ms": 1000 * delays[-1],
        "fully_read_groups": sum(count == len(delays) for count in counts),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("address")
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--consumers", type=int, default=200)
    parser.add_argument("--groups", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--role", choices=["all", "consumers"], default="all", help=argparse.SUPPRESS)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    print(json.dumps(run(options) if options.role == "all" else asyncio.run(consumers(options))))


if __name__ == "__main__":
    main()
