"""Files damaged while the broker is down: it starts, what is not damaged serves, and `verify` finds its words."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
import trio

from leafcuttr.errors import ErrorCode
from support.broker_process import BrokerProcess, running_broker
from support.forked_start import run_leafcuttr
from support.logs import batch
from support.peer import Peer, fetch_request, metadata_request, produce_request, serves

SETTINGS = {"log.roll.ms": "3600000", "log.segment.bytes": "1048576", "log.index.interval.bytes": "100"}


def damage(rng: random.Random, path: Path) -> str:
    data = bytearray(path.read_bytes())
    how = rng.choice(["flip", "cut", "garbage", "empty", "zeros"])
    match how:
        case "flip" if data:
            for _ in range(rng.randint(1, 8)):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        case "cut":
            del data[rng.randrange(len(data) + 1) :]
        case "garbage":
            data += rng.randbytes(rng.randint(1, 300))
        case "empty":
            data.clear()
        case "zeros":
            at = rng.randrange(len(data) + 1)
            data[at : at + 100] = bytes(100)
    path.write_bytes(data)
    return f"{how} {path.name}"


async def fill(port: int) -> None:
    async with Peer(await trio.open_tcp_stream("127.0.0.1", port)) as peer:
        await peer.ask(metadata_request("sound", "harmed"), 12)
        for topic in ("sound", "harmed"):
            for _ in range(60):
                answer = await peer.ask(produce_request(topic, batch(5, size=8000)), 9)
                assert answer.responses[0].partition_responses[0].error_code == 0


async def look(port: int) -> None:
    """The sound topic is whole; the harmed one is answered: served, offline, or shorter than it was."""
    async with Peer(await trio.open_tcp_stream("127.0.0.1", port)) as peer:
        for offset in range(0, 300, 50):
            answer = await peer.ask(fetch_request("sound", offset), 12)
            part = answer.responses[0].partitions[0]
            assert (part.error_code, part.high_watermark) == (0, 300)
            assert part.records
    async with Peer(await trio.open_tcp_stream("127.0.0.1", port)) as peer:
        answer = await peer.ask(fetch_request("harmed", 0), 12)
        code = answer.responses[0].partitions[0].error_code
        assert code in (0, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.OFFSET_OUT_OF_RANGE)
    async with Peer(await trio.open_tcp_stream("127.0.0.1", port)) as peer:
        assert await serves(peer)


def serve(folder: Path) -> BrokerProcess:
    with running_broker(folder, SETTINGS) as broker:
        trio.run(look, broker.port)
    return broker


def test_damaged_files(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    seed = int(os.environ.get("LEAFCUTTR_FUZZ_SEED", str(random.randrange(1 << 32))))
    print(f"LEAFCUTTR_FUZZ_SEED={seed}")
    rng = random.Random(seed)
    with running_broker(tmp_path, SETTINGS) as broker:
        trio.run(fill, broker.port)
    for _ in range(60 if request.config.getoption("--long") else 4):
        files = [path for path in (broker.data / "harmed-0").iterdir() if path.is_file()]
        files += [
            path for path in broker.data.iterdir() if "checkpoint" in path.name or "partitions" in path.name
        ]
        done = [damage(rng, rng.choice(files)) for _ in range(rng.randint(1, 3))]
        verified = run_leafcuttr(("verify", str(broker.data)))
        assert "Traceback" not in verified.stderr, (done, verified.stderr)
        try:
            ended = serve(tmp_path)
        except BaseException as error:
            error.add_note(f"after: {done}")
            raise
        assert "Traceback" not in ended.log, (done, ended.log[-3000:])
