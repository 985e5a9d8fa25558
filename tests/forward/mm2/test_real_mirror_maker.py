"""MirrorMaker 2 itself, and its RemoteClusterUtils, with brokers that forward: what one has written the other reads."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forward.mm2.test_service import (
    COUNT,
    MIRROR,
    VALUES,
    commit,
    committed,
    fill,
    forwarding,
    health,
    values,
)
from leafcuttr_forward.mm2.policy import IDENTITY_POLICY
from support import jars, librdkafka, mirror_maker
from support.broker_process import BrokerProcess, running_broker
from support.pages import DOCS
from support.real_kafka import real_kafka
from support.waiting import until

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
    pytest.mark.timeout(900),
]
SECONDS = 240.0
# As a user has it: MirrorMaker's workers store their positions once in a while.
WORKERS = """here.group.initial.rebalance.delay.ms = 0
there.offset.flush.interval.ms = 500
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
config.storage.replication.factor = 1
replication.factor = 1
"""


@pytest.mark.parametrize(
    "policy", ["", f"replication.policy.class = {IDENTITY_POLICY}\n"], ids=["default", "identity"]
)
def test_remote_cluster_utils_read_our_checkpoints(tmp_path: Path, policy: str) -> None:
    topic = "work" if policy else "here.work"
    with (
        running_broker(tmp_path / "there") as there,
        forwarding(tmp_path / "here", MIRROR + policy, topics={"work": 1}, there=there.address) as here,
    ):
        assert values(there.address, topic, COUNT) == VALUES
        commit(here.address, "readers", "work", COUNT)
        checkpoints = "here.checkpoints.internal"
        until(
            lambda: checkpoints in librdkafka.admin(there.address).list_topics(timeout=10).topics, checkpoints
        )
        librdkafka.read(there.address, checkpoints, 1)
        words = ["translate", there.address, "here", "readers", *([IDENTITY_POLICY] if policy else [])]
        offset, beats, checked, upstream, hops = mirror_maker.ask(*words)
        # There is one transaction before: its marker stands behind the records.
        assert offset.split() == ["offset", f"{topic}-0", str(COUNT)]
        assert beats == "heartbeats heartbeats,here.heartbeats"
        assert checked == f"checkpoints {checkpoints}"
        assert (upstream, hops) == ("upstream here", "hops 1")


@contextmanager
def mirroring(folder: Path, text: str) -> Iterator[subprocess.Popen[bytes]]:
    folder.mkdir()
    file = folder / "mm2.properties"
    file.write_text(text)
    process = mirror_maker.start_mirror_maker(file, folder / "mm2.log")
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_we_go_on_where_it_stopped_and_read_what_it_wrote(tmp_path: Path) -> None:
    """Half by MirrorMaker, then it is stopped, and a broker with the same file copies the rest: each record once."""
    with running_broker(tmp_path / "there") as there, running_broker(tmp_path / "here") as here:
        fill(here.address, "work", 2)
        text = (MIRROR + WORKERS).replace("{here}", here.address).replace("{there}", there.address)
        with mirroring(tmp_path / "mm2", text) as process:

            def copied() -> bool:
                assert process.poll() is None, (tmp_path / "mm2" / "mm2.log").read_text()[-3000:]
                topics = librdkafka.admin(there.address).list_topics(timeout=60).topics
                return "here.work" in topics and all(
                    librdkafka.watermarks(there.address, "here.work", partition)[1] >= COUNT
                    for partition in (0, 1)
                )

            until(copied, "what MirrorMaker copies", seconds=SECONDS)
            commit(here.address, "readers", "work", COUNT)
            process.terminate()
            process.wait(120)
        fill_more(here)
        with forwarding(tmp_path / "third", text, topics={}) as third:
            for partition in (0, 1):
                until(
                    lambda: librdkafka.watermarks(there.address, "here.work", partition)[1] >= 2 * COUNT,  # noqa: B023
                    "the rest",
                )
                assert values(there.address, "here.work", 2 * COUNT, partition) == [*VALUES, *VALUES]
            assert "partitions went on where MirrorMaker stopped" in str(health(third))
            # Its offset syncs tell where the group is that has read what it copied.
            checkpoints = "here.checkpoints.internal"
            until(
                lambda: checkpoints in librdkafka.admin(there.address).list_topics(timeout=10).topics,
                checkpoints,
            )
            librdkafka.read(there.address, checkpoints, 1)
        offset, *_ = mirror_maker.ask("translate", there.address, "here", "readers")
        assert offset.split()[:3] == ["offset", "here.work-0", str(COUNT)]


def fill_more(broker: BrokerProcess) -> None:
    import time

    for partition in (0, 1):
        sent = [value.encode() for value in VALUES]
        librdkafka.send(
            broker.address, "work", sent, timestamp=int(time.time() * 1000), key=b"key", partition=partition
        )


def test_a_real_kafka_as_the_target(tmp_path: Path) -> None:
    """With checkpoints that RemoteClusterUtils reads there, and commits that its groups go on from."""
    text = f"{MIRROR}sync.group.offsets.enabled = true\n"
    with (
        real_kafka(tmp_path / "kafka") as kafka,
        forwarding(tmp_path / "here", text, topics={"work": 2}, there=str(kafka)) as here,
    ):
        for partition in (0, 1):
            assert values(str(kafka), "here.work", COUNT, partition) == VALUES
        commit(here.address, "readers", "work", COUNT)
        until(
            lambda: committed(str(kafka), "readers", "here.work") == COUNT,
            "the commit at Kafka",
            seconds=SECONDS,
        )
        offset, beats, checked, upstream, _ = mirror_maker.ask("translate", str(kafka), "here", "readers")
        assert offset.split()[:3] == ["offset", "here.work-0", str(COUNT)]
        assert beats == "heartbeats heartbeats,here.heartbeats"
        assert (checked, upstream) == ("checkpoints here.checkpoints.internal", "upstream here")


def test_a_real_kafka_as_the_source(tmp_path: Path) -> None:
    """The file of the how-to on moving from Kafka, as it stands."""
    text = (DOCS / "how-to" / "mirror.properties").read_text()
    text = text.replace("localhost:19092", "{old}").replace("localhost:9092", "{here}")
    text += "sync.group.offsets.enabled = true\nsync.group.offsets.interval.seconds = 1\n"
    text += "emit.checkpoints.interval.seconds = 1\n"
    with real_kafka(tmp_path / "kafka") as kafka:
        fill(str(kafka), "orders", 2)
        commit(str(kafka), "readers", "orders", COUNT - 10)
        with forwarding(tmp_path / "new", text, topics={}, old=str(kafka)) as new:
            for partition in (0, 1):
                assert values(new.address, "orders", COUNT, partition) == VALUES
            until(lambda: committed(new.address, "readers", "orders") > 0, "the group", seconds=SECONDS)
            # It may read again what lies behind the last offset sync before it, and misses nothing.
            assert committed(new.address, "readers", "orders") <= COUNT - 10
