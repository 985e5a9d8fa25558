"""Two clusters and flows between them, on the test's own loop: brokers with sockets, peers over the network."""

from __future__ import annotations

import itertools
import logging
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import trio

from leafcuttr.client.peer import open_remote_peer
from leafcuttr.runtime.clock import SystemClock
from leafcuttr.state.broker import Broker
from leafcuttr_forward.flows.flow import run_flow
from leafcuttr_forward.flows.report import FlowReport, FlowState
from leafcuttr_forward.flows.spec import FlowSpec, TopicRule
from leafcuttr_sdk.batches import batches_in
from leafcuttr_sdk.broker import EARLIEST, LATEST
from leafcuttr_sdk.peers import Peer
from leafcuttr_sdk.records import NewBatch
from leafcuttr_sdk.types import TopicPartition
from support.forwarded_batches import Seen, seen_in, stored
from support.live_broker import serve_here
from support.waiting import eventually

LOGGER = logging.getLogger("leafcuttr.plugin.forward")
_TIMES = itertools.count(1_600_000_000_000)
QUICK = {"request.timeout.ms": "3000", "default.api.timeout.ms": "3000", "reconnect.backoff.max.ms": "100"}


@dataclass
class Ends:
    """The clusters of a test."""

    source: Peer
    target: Peer
    source_broker: Broker
    target_broker: Broker


@asynccontextmanager
async def two_clusters(folder: Path, **settings: Mapping[str, str]) -> AsyncIterator[Ends]:
    """A source and a target; `source` and `target` are the settings of their brokers."""
    async with trio.open_nursery() as nursery, AsyncExitStack() as stack:
        brokers = [
            await serve_here(nursery, folder / name, settings.get(name)) for name in ("source", "target")
        ]
        peers = [await stack.enter_async_context(peer_of(address_of(broker))) for broker in brokers]
        yield Ends(*peers, *brokers)
        nursery.cancel_scope.cancel()


def address_of(broker: Broker) -> str:
    listener = broker.listeners[0]
    return f"{listener.host}:{listener.port}"


def peer_of(address: str, **properties: str) -> Any:
    """A peer over the network, which gives up soon."""
    return open_remote_peer(
        {"bootstrap.servers": address, **QUICK, **properties}, clock=SystemClock(), logger=LOGGER
    )


async def fill(
    peer: Peer, topic: str, records: Iterable[Seen], partition: int = 0, *, together: int = 10, **options: Any
) -> None:
    """Append records, so many in a batch; `options` as of `forwarded_batches.stored`."""
    records = list(records)
    async with peer.appender() as appender:
        for at in range(0, len(records), together):
            batch = stored([*enumerate(records[at : at + together])], epoch=-1, **options)
            (done,) = await appender.append(
                [NewBatch(TopicPartition(topic, partition), bytearray(batch.data))]
            )
            if isinstance(done, Exception):
                raise done


def numbered(count: int, *, first: int = 0, size: int = 0) -> list[Seen]:
    """Records that say which they are."""
    return [Seen(next(_TIMES), b"k%d" % at, b"%d " % at + bytes(size)) for at in range(first, first + count)]


async def contents(peer: Peer, topic: str, partition: int = 0) -> list[Seen]:
    """All committed records of a partition, by aiokafka."""
    return [record for _, record in await offsets_and_contents(peer, topic, partition)]


async def offsets_and_contents(peer: Peer, topic: str, partition: int = 0) -> list[tuple[int, Seen]]:
    one = TopicPartition(topic, partition)
    end = (await peer.offsets({one: LATEST}, committed=True)).get(one, 0)
    position = (await peer.offsets({one: EARLIEST})).get(one, 0)
    found: list[tuple[int, Seen]] = []
    async with peer.reader(committed=True) as reader:
        reader.assign({one: position})
        while position < end:
            for read in await reader.read():
                if read.error is not None:
                    raise read.error
                for batch in batches_in(read.data):
                    if batch.header.is_control or batch.is_aborted(read.aborted):
                        continue
                    offsets = [record.offset for record in batch.records()]
                    found += zip(offsets, seen_in(bytes(batch.data)), strict=True)
                position = read.next_offset
    return found


def flow_of(*topics: str, name: str = "f", **options: Any) -> FlowSpec:
    """A flow of these topics, under their names."""
    rules: Sequence[TopicRule] = options.pop("rules", None) or [TopicRule(source=topic) for topic in topics]
    return FlowSpec(name=name, rules=rules, **options)


@asynccontextmanager
async def flowing(spec: FlowSpec, source: Any, target: Peer, **options: Any) -> AsyncIterator[FlowReport]:
    """The flow runs until the block ends."""
    report = FlowReport(spec.name)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(copy_all, spec, source, target, report, **options))
        yield report
        nursery.cancel_scope.cancel()


async def copy_all(
    spec: FlowSpec, source: Any, target: Peer, report: FlowReport | None = None, **options: Any
) -> FlowReport:
    """Run the flow to its end."""
    report = report or FlowReport(spec.name)
    await run_flow(spec, source, target, report=report, logger=LOGGER, clock=SystemClock(), **options)
    return report


async def until_position(report: FlowReport, partition: TopicPartition, position: int) -> None:
    """Wait until so much is at the target for good."""
    await eventually(
        lambda: partition in report.partitions and report.partitions[partition].position >= position,
        f"{partition} is copied up to {position}",
    )


async def until_state(report: FlowReport, state: FlowState) -> None:
    await eventually(lambda: report.state is state, f"the flow is {state.value}")
