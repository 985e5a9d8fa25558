"""Processes that forward, for `forward.py`: an engine with one flow, `leafcuttr relay`, and kaf-relay; and the least
producer that there can be."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peers import Peer

if TYPE_CHECKING:
    from leafcuttr_sdk import peers as sdk

INTERVAL_S = 1.0
"""Of a relay's health checks."""
SIZE = 1000
"""Of a record's value."""
UNDER_WAY = 5
"""Requests of one connection that Kafka keeps in their order."""
OURS = (sys.executable, "-m", "leafcuttr", "relay")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
OF_A_RELAY = f"""[app]
log_level = "error"
metrics_server_addr = "127.0.0.1:0"
[source_pool]
healthcheck_interval = "{INTERVAL_S:.0f}s"
offset_lag_threshold = 1000
max_retries = -1
request_timeout = "100ms"
backoff_min = "1s"
backoff_max = "10s"
"""
# What kaf-relay cannot do without, as its sample has it, but for batches that brokers take by default.
OF_A_TARGET = """enable_idempotency = true
commit_ack_type = "cluster"
flush_frequency = "20ms"
session_timeout = "6s"
max_retries = -1
flush_batch_size = 1000
batch_size = 1000
buffer_size = 100000
max_message_bytes = 1000000
backoff_min = "2s"
backoff_max = "10s"
request_timeout = "100ms"
"""


def forward(text: str) -> None:
    """Run a flow as `text` says."""
    import gc

    import trio

    from leafcuttr.runtime.clock import SystemClock
    from leafcuttr_forward.flows.flow import run_flow
    from leafcuttr_forward.flows.report import FlowReport
    from leafcuttr_forward.flows.spec import FlowSpec, Guarantee, TopicRule

    gc.set_threshold(10_000, 20, 20)  # as all commands do
    given = json.loads(text)
    options = given["options"]
    spec = FlowSpec(
        name=given["name"],
        rules=[TopicRule(source=given["topic"])],
        stop_at_end=given["stop"],
        filters=options.get("filters", ()),
        guarantee=Guarantee[options.get("guarantee", "EXACTLY_ONCE")],
    )

    async def run() -> None:
        import logging

        async with peer(given["source"]) as source, peer(given["target"]) as target:
            await run_flow(
                spec,
                source,
                target,
                report=FlowReport(spec.name),
                logger=logging.getLogger("forward"),
                clock=SystemClock(),
                make_chain=make_chain,
            )

    trio.run(run)


def produce_frames(text: str) -> None:
    """Send the target one Produce request again and again, a batch for each partition in it, five under way: as fast as
    the target takes batches from one connection."""
    import socket

    from leafcuttr.wire.api import APIS, ApiKey
    from leafcuttr.wire.codec import decode, encode
    from leafcuttr.wire.messages.produce import (
        PartitionProduceData,
        ProduceRequest,
        ProduceResponse,
        TopicProduceData,
    )

    given = json.loads(text)
    batch, version = new_batch(given["topic"], given["in_batch"]), 11
    request = ProduceRequest(
        transactional_id=None,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=given["topic"],
                topic_id=bytes(16),
                partition_data=[
                    PartitionProduceData(index=number, records=batch) for number in range(given["partitions"])
                ],
            )
        ],
    )
    assert APIS[ApiKey.PRODUCE].request_header_version(version) == 2
    head = ApiKey.PRODUCE.to_bytes(2, "big") + version.to_bytes(2, "big") + bytes(4) + b"\xff\xff\0"
    frame = head + encode(request, version)
    frame = len(frame).to_bytes(4, "big") + frame
    host, _, port = given["target"].rpartition(":")
    with socket.create_connection((host, int(port))) as target, target.makefile("rb") as answers:
        while True:  # a new topic has no leaders at first
            target.sendall(frame)
            answer = answers.read(int.from_bytes(answers.read(4), "big"))
            found = decode(ProduceResponse, version, answer[5:]).responses[0].partition_responses
            if not any(each.error_code for each in found):
                break
        for at in range(given["requests"] + UNDER_WAY):
            if at < given["requests"]:
                target.sendall(frame)
            if at >= UNDER_WAY:
                answers.read(int.from_bytes(answers.read(4), "big"))


def new_batch(topic: str, in_batch: int) -> bytearray:
    """Records of the time of now: old ones would be deleted by retention."""
    from leafcuttr_sdk.batches import BatchBuilder

    builder = BatchBuilder()
    value = random.Random(topic).randbytes(SIZE // 2).hex().encode()
    now = int(time.time() * 1000)
    builder.extend_records([(value, b"key-%d" % at, (), now) for at in range(in_batch)])
    return builder.finish()


class KeepsAll:
    """The least that a filter may be: it reads the first byte of each value."""

    names = ("keep",)

    def filter(self, records: Any) -> Any:
        return [record for record in records if record.value[0] >= 0]

    def forget(self) -> None: ...

    def close(self) -> None: ...


async def make_chain(names: Any, topic: str) -> Any:
    return KeepsAll()


@asynccontextmanager
async def peer(address: str) -> AsyncIterator[sdk.Peer]:
    import logging

    from leafcuttr.client.peer import open_remote_peer
    from leafcuttr.runtime.clock import SystemClock

    async with open_remote_peer(
        {"bootstrap.servers": address}, clock=SystemClock(), logger=logging.getLogger("bench")
    ) as found:
        yield found


class Process:
    """One that forwards."""

    def __init__(self, words: list[str], env: dict[str, str] | None = None) -> None:
        self.began = time.monotonic()
        self._process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env={**os.environ, **(env or {})}
        )
        self.peak_mb = 0.0

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def rss_mb(self) -> float:
        return int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]) * _PAGE / 1e6

    def ended(self) -> bool:
        if self._process.poll() is None:
            return False
        if self._process.returncode:
            raise RuntimeError(f"the forwarding process ended with {self._process.returncode}")
        return True

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


def start_flow(name: str, topic: str, ends: tuple[Peer, Peer], *, stop: bool, **options: Any) -> Process:
    source, target = ends
    given = {
        "name": name, "topic": topic, "source": source.address, "target": target.address, "stop": stop,
        "options": options,
    }  # fmt: skip
    return Process([sys.executable, __file__, json.dumps(given)])


def start_relay(
    folder: Path,
    topic: str,
    sources: list[Peer],
    target: Peer,
    *words: str,
    program: tuple[str, ...] = OURS,
    env: dict[str, str] | None = None,
) -> Process:
    """`relay`, or kaf-relay, with a file."""
    file = folder / f"{topic}.toml"
    ends = "".join(
        f'[[sources]]\nname = "{each.name}"\nservers = ["{each.address}"]\nsession_timeout = "6s"\n'
        for each in sources
    )
    ends += f'[target]\nname = "target"\nservers = ["{target.address}"]\n'
    text = f'[topics]\n"{topic}" = "{topic}"\n{OF_A_RELAY}{ends}{OF_A_TARGET}'
    # kaf-relay reads nothing from a source whose probes take longer.
    file.write_text(text if program == OURS else text.replace("100ms", "5s"))
    return Process([*program, "--config", str(file), *words], env)


def start_frames(topic: str, target: Peer, *, requests: int, partitions: int, in_batch: int) -> Process:
    given = {
        "topic": topic, "target": target.address, "requests": requests, "partitions": partitions, "in_batch": in_batch,
    }  # fmt: skip
    return Process([sys.executable, __file__, json.dumps(given)])


if __name__ == "__main__":
    (produce_frames if "requests" in json.loads(sys.argv[1]) else forward)(sys.argv[1])
