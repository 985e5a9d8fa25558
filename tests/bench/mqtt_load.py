#!/usr/bin/env python3
"""Raw MQTT 3.1.1 publishers for measuring any broker: blocks of WINDOW packets, counting acknowledgements.

  mqtt_load.py publish HOST PORT --connections 8 --window 100 --seconds 4 --qos 1 [--topic bench/t] [--size 100]
  mqtt_load.py connect HOST PORT --connections 10000 --seconds 5        only connects and stays

Connection i publishes to TOPIC + i. One JSON line. Window 1 is what a plain device does; a large window is a gateway.
"""

import argparse
import asyncio
import json
import struct
import time


def remaining_length(n: int) -> bytes:
    out = bytearray()
    while True:
        n, byte = n >> 7, n & 127
        out.append(byte | (128 if n else 0))
        if not n:
            return bytes(out)


def text(b: bytes) -> bytes:
    return struct.pack(">H", len(b)) + b


async def connect(host: str, port: int, i: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(host, port)
    body = text(b"MQTT") + b"\x04\x02" + struct.pack(">H", 60) + text(b"load%06d" % i)
    writer.write(b"\x10" + remaining_length(len(body)) + body)
    ack = await reader.readexactly(4)
    if ack[3]:
        raise SystemExit(f"refused: {ack!r}")
    return reader, writer


async def publish(a: argparse.Namespace, i: int, blocks: list[float]) -> int:
    reader, writer = await connect(a.host, a.port, i)
    packets = bytearray()
    for k in range(1, a.window + 1):
        body = text(f"{a.topic}{i}".encode()) + (struct.pack(">H", k) if a.qos else b"") + b"x" * a.size
        packets += bytes([0x30 | a.qos << 1]) + remaining_length(len(body)) + body
    release = b"".join(b"\x62\x02" + struct.pack(">H", k) for k in range(1, a.window + 1))
    end, total = time.monotonic() + a.seconds, 0
    while time.monotonic() < end:
        began = time.perf_counter()
        writer.write(packets)
        await writer.drain()
        if a.qos:
            await reader.readexactly(4 * a.window)
        if a.qos == 2:
            writer.write(release)
            await reader.readexactly(4 * a.window)
        blocks.append(time.perf_counter() - began)
        total += a.window
    if not a.qos:  # the answer to a ping comes after all that was sent before it was read
        writer.write(b"\xc0\x00")
        await reader.readexactly(2)
    writer.close()
    return total


async def main() -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("mode", choices=["publish", "connect"])
    p.add_argument("host")
    p.add_argument("port", type=int)
    p.add_argument("--connections", type=int, default=8)
    p.add_argument("--window", type=int, default=100)
    p.add_argument("--seconds", type=float, default=4)
    p.add_argument("--qos", type=int, choices=[0, 1, 2], default=1)
    p.add_argument("--topic", default="bench/t")
    p.add_argument("--size", type=int, default=100)
    a = p.parse_args()
    began = time.monotonic()
    if a.mode == "connect":
        for i in range(0, a.connections, 100):
            held = [
                await asyncio.gather(
                    *[connect(a.host, a.port, j) for j in range(i, min(i + 100, a.connections))]
                )
            ]
            globals().setdefault("keep", []).extend(held)
        print(
            json.dumps({"connected": a.connections, "seconds": round(time.monotonic() - began, 3)}),
            flush=True,
        )
        await asyncio.sleep(a.seconds)
        return
    blocks: list[float] = []
    total = sum(await asyncio.gather(*[publish(a, i, blocks) for i in range(a.connections)]))
    seconds = time.monotonic() - began
    blocks.sort()
    print(
        json.dumps(
            {
                "qos": a.qos,
                "connections": a.connections,
                "window": a.window,
                "messages": total,
                "messages_per_s": round(total / seconds),
                "block_p50_ms": round(blocks[len(blocks) // 2] * 1e3, 3),
                "block_p99_ms": round(blocks[int(len(blocks) * 0.99)] * 1e3, 3),
            }
        )
    )


asyncio.run(main())
