"""Earlier versions of Apache Kafka as ends of a flow: the contract of peers, relays there and back and within, by
librdkafka's and Java's producers, and a broker that forwards by MirrorMaker's file."""

from __future__ import annotations

import itertools
import logging
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import trio

from forward.clusters import create, produce, read, values
from forward.conftest import MakeRun
from forward.mm2.test_service import COUNT, MIRROR, VALUES, commit, committed, forwarding
from forward.mm2.test_service import fill as fill_topic
from forward.mm2.test_service import values as first_values
from leafcuttr.client.peer import open_remote_peer
from leafcuttr.runtime.clock import SystemClock
from leafcuttr_forward.relay.running import Run
from leafcuttr_sdk.testing.peer_checks import PROMISES, peer_report
from support import jars, librdkafka
from support.live_broker import LiveBroker
from support.old_kafka import old_kafka
from support.waiting import until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
    pytest.mark.timeout(900),
]
VERSIONS = ("2.1.1", "2.8.2", "3.3.2", "3.9.1")
"""The earliest that is promised, with ZooKeeper; the first with ids of topics; the first without ZooKeeper; the last
3."""
_CODE: Final = (
    "a change to a setting that is none raised InvalidRequest"  # Kafka 2 has that code for wrong values
)
WITHOUT: Final = {
    # Without ids of topics one that was created anew is the same.
    "2.1.1": (_CODE, "a read of check-peer-recreated"),
    "2.8.2": (_CODE,),
}
"""What earlier versions cannot tell."""
_NUMBERS = itertools.count(1)
TIME = 1_700_000_000_000


class Earlier(NamedTuple):
    version: str
    address: str


@pytest.fixture(scope="module", params=VERSIONS)
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Earlier]:
    version = str(request.param)
    try:
        jars.home(version)
    except RuntimeError as error:
        pytest.skip(f"Apache Kafka {version} cannot be fetched: {str(error)[:200]}")
    with old_kafka(tmp_path_factory.mktemp("kafka"), version) as address:
        yield Earlier(version, address)


async def ended(run: Run) -> None:
    with trio.fail_after(120):
        await run.run()
    assert (run.status, run.why) == (0, None)
    assert run.report.exactly_once


async def test_the_contract_of_peers(kafka: Earlier) -> None:
    async def delete(topic: str) -> None:
        await trio.to_thread.run_sync(librdkafka.delete, kafka.address, topic)

    properties = {"bootstrap.servers": kafka.address}
    logger, clock = logging.getLogger("tests.forward"), SystemClock()
    async with (
        open_remote_peer(properties, clock=clock, logger=logger) as peer,
        open_remote_peer(properties, clock=clock, logger=logger) as second,
    ):
        report = await peer_report(peer, second=second, delete_topic=delete)
    assert {each.name for each in report.checks} == PROMISES.keys()
    known = WITHOUT.get(kafka.version, ())
    others = [each for each in report.problems if not each.startswith(known)] if known else report.problems
    assert others == []


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
async def test_there_and_back(
    kafka: Earlier, compression: str, make_run: MakeRun, edge: LiveBroker, hub: LiveBroker
) -> None:
    number = next(_NUMBERS)
    there, back = f"there-{number}", f"back-{number}"
    create(edge.address, there, 3)
    expected = [[f"{partition}:{one}" for one in range(500)] for partition in range(3)]
    for partition in range(3):
        produce(edge.address, there, expected[partition], partition, **{"compression.type": compression})
    await ended(make_run([edge.address], kafka.address, {there: there}, stop_at_end=True))
    for partition in range(3):
        assert values(kafka.address, there, partition) == expected[partition]
    await ended(make_run([kafka.address], hub.address, {there: back}, stop_at_end=True))
    for partition in range(3):
        assert seen(edge.address, there, partition) == seen(hub.address, back, partition)


def seen(address: str, topic: str, partition: int) -> list[Any]:
    """What stays of each record."""
    return [
        (each.key(), each.value(), each.headers(), each.timestamp())
        for each in read(address, topic, [partition])
    ]


async def test_within_kafka_and_once_more(kafka: Earlier, make_run: MakeRun) -> None:
    """What is aborted is left out, a second run copies the rest, and the group at the source shows the position."""
    topic = f"within-{next(_NUMBERS)}"
    create(kafka.address, topic, 1)
    transact(kafka.address, topic, range(100), commits=True)
    transact(kafka.address, topic, range(100, 200), commits=False)
    transact(kafka.address, topic, range(200, 300), commits=True)
    await ended(make_run([kafka.address], kafka.address, {topic: f"{topic}-copy"}, stop_at_end=True))
    expected = [str(number) for number in (*range(100), *range(200, 300))]
    assert values(kafka.address, f"{topic}-copy") == expected
    transact(kafka.address, topic, range(300, 400), commits=True)
    run = make_run([kafka.address], kafka.address, {topic: f"{topic}-copy"}, stop_at_end=True)
    await ended(run)
    assert values(kafka.address, f"{topic}-copy") == [*expected, *map(str, range(300, 400))]
    _, end = librdkafka.watermarks(kafka.address, topic)
    assert committed(kafka.address, f"leafcuttr-{run.report.name}", topic) == end


def transact(address: str, topic: str, numbers: range, *, commits: bool) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": address, "transactional.id": f"{topic}-{numbers.start}"})
    producer.init_transactions(60)
    producer.begin_transaction()
    for number in numbers:
        producer.produce(topic, str(number), partition=0)
    producer.flush(60)
    if commits:
        producer.commit_transaction(60)
    else:
        producer.abort_transaction(60)


async def test_java_s_producer_of_that_version(kafka: Earlier, make_run: MakeRun, hub: LiveBroker) -> None:
    topic = f"java-{next(_NUMBERS)}"
    create(kafka.address, topic, 2)
    words = ["--topic", topic, "--max-messages", "3000", "--value-prefix", "7", "--acks", "-1"]
    servers = "--broker-list" if kafka.version < "2.5" else "--bootstrap-server"  # KIP-499
    command = jars.java(
        kafka.version, "org.apache.kafka.tools.VerifiableProducer", servers, kafka.address, *words
    )
    done = await trio.to_thread.run_sync(
        lambda: subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    )
    assert done.returncode == 0, done.stderr[-2000:]
    await ended(make_run([kafka.address], hub.address, {topic: topic}, stop_at_end=True))
    copies = [message.value() for message in read(hub.address, topic, [0, 1])]
    assert sorted(copies) == sorted(b"7.%d" % number for number in range(3000))
    for partition in (0, 1):
        assert values(hub.address, topic, partition) == values(kafka.address, topic, partition)


@pytest.mark.parametrize(("magic", "of"), [(0, "0.9.0"), (1, "0.10.2")])
async def test_formats_before_the_present_one(
    magic: int, of: str, kafka: Earlier, make_run: MakeRun, hub: LiveBroker
) -> None:
    if kafka.version >= "3":
        pytest.skip("since Kafka 3 all topics have the present format")
    topic = f"magic-{next(_NUMBERS)}"
    create(kafka.address, topic, 1, message_format_version=of)
    expected: list[bytes] = []
    for compression in ("none", "gzip", "snappy", "lz4"):
        some = [f"{compression} {number}".encode() for number in range(200)]
        librdkafka.send(
            kafka.address, topic, some, timestamp=TIME, key=b"key", linger_ms=50, compression_type=compression
        )
        expected += some
    await ended(make_run([kafka.address], hub.address, {topic: topic}, stop_at_end=True))
    found = read(hub.address, topic)
    assert [(each.key(), each.value()) for each in found] == [(b"key", value) for value in expected]
    if magic:
        assert {each.timestamp()[1] for each in found} == {TIME}


def test_a_broker_that_forwards_there(kafka: Earlier, tmp_path: Path) -> None:
    """By MirrorMaker's file: topics with their settings, checkpoints, commits of groups."""
    with forwarding(
        tmp_path / "here",
        f"{MIRROR}sync.group.offsets.enabled = true\n",
        topics={"work": 2},
        there=kafka.address,
    ) as here:
        for partition in (0, 1):
            assert first_values(kafka.address, "here.work", COUNT, partition) == VALUES
        librdkafka.alter(here.address, "topic", "work", {"retention.ms": "86400000"})
        commit(here.address, "readers", "work", COUNT)
        until(
            lambda: committed(kafka.address, "readers", "here.work") == COUNT,
            "the commit at Kafka",
            seconds=240,
        )
        until(
            lambda: retention(kafka.address, "here.work") == "86400000",
            "the settings at Kafka",
            seconds=240,
        )


def retention(address: str, topic: str) -> str:
    from confluent_kafka.admin import ConfigResource

    admin = librdkafka.admin(address)
    (future,) = admin.describe_configs([ConfigResource("topic", topic)]).values()
    return str(future.result(60)["retention.ms"].value)


def test_a_broker_that_forwards_from_there(kafka: Earlier, tmp_path: Path) -> None:
    topic = f"orders-{next(_NUMBERS)}"
    fill_topic(kafka.address, topic, 2)
    text = f"""clusters = old, here
old.bootstrap.servers = {kafka.address}
here.bootstrap.servers = {{here}}
old->here.enabled = true
old->here.topics = {topic}
refresh.topics.interval.seconds = 1
"""
    with forwarding(tmp_path / "here", text, topics={}) as here:
        for partition in (0, 1):
            assert first_values(here.address, f"old.{topic}", COUNT, partition) == VALUES
