"""Members in process and real clients in one group: whichever leads, every record reaches one of them, once."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from click.testing import CliRunner

from leafcuttr.cli.root import cli
from leafcuttr.plugins.facade.opening import make_broker_view
from leafcuttr.runtime.clock import SystemClock
from leafcuttr_sdk import Broker, Consumer, Plugin, Record, TopicPartition
from leafcuttr_sdk.errors import IllegalGeneration, RebalanceInProgress, UnknownMemberId
from support.live_broker import LiveBroker, live_broker
from support.waiting import eventually

PARTITIONS = 5
COUNT = 200
Read = Callable[[str, str, threading.Event, list[int]], None]
"""Bootstrap, assignor; until the event, append the values that are read."""


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveBroker]:
    settings = {"group.min.session.timeout.ms": "100"}
    with live_broker(tmp_path / "data", settings, clock=SystemClock()) as found:
        yield found


def read_confluent(bootstrap: str, assignor: str, stop: threading.Event, found: list[int]) -> None:
    from confluent_kafka import Consumer as Confluent

    consumer = Confluent(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "g",
            "partition.assignment.strategy": assignor,
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 300,
        }
    )
    consumer.subscribe(["t"])
    while not stop.is_set():
        message = consumer.poll(0.1)
        if message is not None and not message.error():
            found.append(int(message.value()))
    consumer.close()


def read_kafka_python(bootstrap: str, assignor: str, stop: threading.Event, found: list[int]) -> None:
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

    consumer = KafkaConsumer(
        "t",
        bootstrap_servers=bootstrap,
        group_id="g",
        auto_offset_reset="earliest",
        heartbeat_interval_ms=300,
        partition_assignment_strategy=[
            {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}[assignor]
        ],
    )
    while not stop.is_set():
        for records in consumer.poll(100).values():
            found += [int(record.value) for record in records]
    consumer.close()


def read_aiokafka(bootstrap: str, assignor: str, stop: threading.Event, found: list[int]) -> None:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.coordinator.assignors.range import RangePartitionAssignor
    from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

    async def read() -> None:
        consumer = AIOKafkaConsumer(
            "t",
            bootstrap_servers=bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            heartbeat_interval_ms=300,
            partition_assignment_strategy=[
                {"range": RangePartitionAssignor, "roundrobin": RoundRobinPartitionAssignor}[assignor]
            ],
        )
        await consumer.start()
        while not stop.is_set():
            for records in (await consumer.getmany(timeout_ms=100)).values():
                found.extend(int(record.value) for record in records)
        await consumer.stop()

    asyncio.run(read())


def view_of(live: LiveBroker) -> Broker:
    return make_broker_view(live.broker, Plugin("sample", 1, ""))


def leader_of(live: LiveBroker) -> str | None:
    group = live.broker.groups.find("g")
    leader = group.members.by_id.get(group.members.leader_id or "")
    return leader and leader.client_id


async def shared(view: Broker, consumer: Consumer, members: int) -> list[int]:
    """Poll until the group is stable with so many members, all of whom have something."""
    found: list[int] = []
    with trio.fail_after(60):
        while True:
            found += [int(record.value or b"") for record in await consumer.poll(wait_s=0.1)]
            group = view.groups.get("g")
            if group is None or group.state != "Stable" or len(group.members) != members:
                continue
            if all(member.partitions for member in group.members) and consumer.assignment:
                return found


async def produce(view: Broker, first: int = 0) -> None:
    records = [Record(b"%d" % value) for value in range(first, first + COUNT)]
    await view.produce_batch("t", records, partitions=[value % PARTITIONS for value in range(COUNT)])


async def read_until(consumer: Consumer, ours: list[int], theirs: list[int], count: int) -> None:
    with trio.fail_after(60):
        while len({*ours, *theirs}) < count:
            ours += [int(record.value or b"") for record in await consumer.poll(wait_s=0.1)]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("lead", ["we lead", "they lead"])
@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
@pytest.mark.parametrize(
    "read", [read_confluent, read_kafka_python, read_aiokafka], ids=lambda read: read.__name__[5:]
)
def test_every_record_reaches_one_member_once(live: LiveBroker, read: Read, assignor: str, lead: str) -> None:
    view, stop, theirs = view_of(live), threading.Event(), list[int]()
    ours: list[int] = []
    generations: list[int] = []

    def generation() -> int:
        return live.broker.groups.find("g").generation

    thread = threading.Thread(target=read, args=(live.address, assignor, stop, theirs))

    async def play() -> None:
        await view.topics.create("t", partitions=PARTITIONS)
        if lead == "they lead":
            thread.start()

            def stable() -> bool:
                group = view.groups.get("g")
                return group is not None and group.state == "Stable"

            await eventually(stable, "their group")
        async with view.consumer("g", ["t"], auto_offset_reset="earliest") as consumer:
            if lead == "we lead":
                await shared(view, consumer, 1)
                thread.start()
            await shared(view, consumer, 2)
            ourselves = leader_of(live) == "leafcuttr-plugin-sample"
            if generation() == 2:  # else somebody has come anew, and leads no more
                assert ourselves == (lead == "we lead")
            generations.append(generation())
            assert view.groups.get("g").protocol == assignor  # type: ignore[union-attr]
            await produce(view)
            await read_until(consumer, ours, theirs, COUNT)
            generations.append(generation())
            with suppress(RebalanceInProgress, UnknownMemberId, IllegalGeneration):
                await consumer.commit()

    try:
        live.run(play)
    finally:
        stop.set()
        thread.join()
    assert {*ours, *theirs} == set(range(COUNT))
    if generations[0] == generations[1]:  # a client on a busy machine may come anew: then it is at least once
        assert sorted(ours + theirs) == list(range(COUNT))
        assert ours and theirs


_DOOMED = """
import sys
from confluent_kafka import Consumer
consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "g", "session.timeout.ms": 3000,
    "heartbeat.interval.ms": 500, "enable.auto.commit": False, "auto.offset.reset": "earliest",
    "partition.assignment.strategy": "range"})
consumer.subscribe(["t"])
while True:
    consumer.poll(0.1)
"""


def test_the_share_of_a_killed_member_comes_to_us(live: LiveBroker) -> None:
    view = view_of(live)
    ours: list[int] = []
    pending_deletes: list[subprocess.Popen[bytes]] = []

    async def play() -> None:
        await view.topics.create("t", partitions=PARTITIONS)
        async with view.consumer("g", ["t"], auto_offset_reset="earliest") as consumer:
            await shared(view, consumer, 1)
            pending_deletes.append(
                await trio.to_thread.run_sync(subprocess.Popen, [sys.executable, "-c", _DOOMED, live.address])
            )
            await shared(view, consumer, 2)
            await produce(view)
            pending_deletes[0].send_signal(signal.SIGKILL)
            with trio.fail_after(60):
                while len(set(ours)) < COUNT:
                    ours.extend(int(record.value or b"") for record in await consumer.poll())
            assert consumer.assignment == {TopicPartition("t", number) for number in range(PARTITIONS)}

    try:
        live.run(play)
    finally:
        for process in pending_deletes:
            process.kill()
            process.wait()
    assert set(ours) == set(range(COUNT))


def test_the_commands_show_our_member(live: LiveBroker) -> None:
    view = view_of(live)

    def describe() -> Any:
        result = CliRunner().invoke(cli, ["groups", "describe", "g", "--json", "-b", live.address])
        assert result.exit_code == 0, result.output
        return json.loads(result.output)[0]

    async def play() -> None:
        await view.topics.create("t", partitions=2)
        await view.produce("t", b"1", partition=0)
        async with view.consumer("g", ["t"], auto_offset_reset="earliest", instance_id="one") as consumer:
            await shared(view, consumer, 1)
            await consumer.commit()
            about = await trio.to_thread.run_sync(describe)
            (member,) = about["members"]
            assert (about["state"], about["assignor"], about["lag"]) == ("stable", "range", 0)
            assert (member["client"], member["host"]) == ("leafcuttr-plugin-sample", "127.0.0.1")
            assert member["partitions"] == [["t", 0], ["t", 1]]
            assert {row["member"] for row in about["offsets"]} == {member["member"]}

    live.run(play)
