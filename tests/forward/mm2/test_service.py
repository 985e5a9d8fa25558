"""A broker that forwards what a file of MirrorMaker says, to and from other brokers over TCP."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from leafcuttr_forward.flows.report import FlowReport, FlowState
from leafcuttr_forward.mm2.policy import IDENTITY_POLICY
from leafcuttr_forward.mm2.records import Checkpoint, Heartbeat, OffsetSync
from leafcuttr_forward.mm2.service import run_elsewhere
from leafcuttr_sdk.types import TopicPartition
from support import librdkafka
from support.broker_process import BrokerProcess, running_broker
from support.pages import DOCS
from support.secured_broker import secured_broker
from support.waiting import free_port, until

SAMPLE = Path(__file__).with_name("edge-to-hub.properties")


@contextmanager
def forwarding(
    folder: Path, text: str, *, topics: dict[str, int], **addresses: str
) -> Iterator[BrokerProcess]:
    """A broker with this file and these topics, of so many partitions, with records. `{here}` in the file is the
    broker's address, other names in braces are those given."""
    here = f"127.0.0.1:{free_port()}"
    file = folder / "mirror.properties"
    folder.mkdir(exist_ok=True)
    if topics:
        # Before it forwards, so that no refresh has to be waited for.
        with running_broker(folder) as broker:
            for topic, partitions in topics.items():
                fill(broker.address, topic, partitions)
    for name, address in {"here": here, **addresses}.items():
        text = text.replace(f"{{{name}}}", address)
    file.write_text(text)
    settings = {"listeners": f"PLAINTEXT://{here}", "lc.topic.forward.config": str(file)}
    with running_broker(folder, settings) as broker:
        yield broker


COUNT = 50
NOW = int(time.time() * 1000)
VALUES = [str(number) for number in range(COUNT)]


def fill(address: str, topic: str, partitions: int) -> None:
    """Create the topic, and write `VALUES` to each of its partitions."""
    librdkafka.create(address, topic, partitions)
    for partition in range(partitions):
        sent = [value.encode() for value in VALUES]
        librdkafka.send(address, topic, sent, timestamp=NOW, key=b"key", partition=partition)


def health(broker: BrokerProcess) -> Any:
    try:
        with urllib.request.urlopen(f"http://{broker.about['metrics']}/health", timeout=10) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)


def values(address: str, topic: str, count: int, partition: int = 0) -> list[str]:
    until(lambda: topic in librdkafka.admin(address).list_topics(timeout=10).topics, f"{topic} at {address}")
    return [
        (one.value() or b"").decode() for one in librdkafka.read(address, topic, count, partition=partition)
    ]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path_factory.mktemp("hub")) as broker:
        yield broker


@pytest.mark.long
def test_the_sample_works_as_it_stands(tmp_path: Path, hub: BrokerProcess) -> None:
    text = SAMPLE.read_text().replace("localhost:9092", "{here}").replace("localhost:19092", "{hub}")
    with forwarding(tmp_path, text, topics={"perfTest": 2}, hub=hub.address) as edge:
        for partition in (0, 1):
            assert values(hub.address, "source-cluster.perfTest", COUNT, partition) == VALUES
        # Heartbeats of both pairs, each at its target, and those of the edge copied to the hub.
        beat = librdkafka.read(edge.address, "heartbeats", 1)[0]
        read = Heartbeat.parse(beat.key(), beat.value())
        assert (read.source, read.target) == ("target-cluster", "source-cluster")
        assert beat.timestamp()[1] == read.timestamp
        copied = librdkafka.read(hub.address, "source-cluster.heartbeats", 1)[0]
        assert Heartbeat.parse(copied.key(), copied.value()) == read
        there = librdkafka.read(hub.address, "heartbeats", 1)[0]
        assert Heartbeat.parse(there.key(), there.value())[:2] == ("source-cluster", "target-cluster")
        syncs = librdkafka.read(edge.address, "mm2-offset-syncs.target-cluster.internal", 1)
        assert OffsetSync.parse(syncs[0].key(), syncs[0].value()).partition.topic in (
            "perfTest",
            "heartbeats",
        )


MIRROR = """clusters = here, there
here.bootstrap.servers = {here}
there.bootstrap.servers = {there}
here->there.enabled = true
refresh.topics.interval.seconds = 1
emit.checkpoints.interval.seconds = 1
refresh.groups.interval.seconds = 1
sync.group.offsets.interval.seconds = 1
"""


@pytest.mark.long
def test_the_file_of_the_how_to_works_as_it_stands(tmp_path: Path, hub: BrokerProcess) -> None:
    """There the other cluster is the source, and this broker the target."""
    fill(hub.address, "orders", 2)
    text = (DOCS / "how-to" / "mirror.properties").read_text()
    text = text.replace("localhost:19092", "{hub}").replace("localhost:9092", "{here}")
    with forwarding(tmp_path, text, topics={}, hub=hub.address) as new:
        for partition in (0, 1):
            assert values(new.address, "orders", COUNT, partition) == VALUES
        assert "bills" not in librdkafka.admin(new.address).list_topics(timeout=10).topics


def commit(address: str, group: str, topic: str, offset: int) -> None:
    """As a consumer that has read so far, and has gone."""
    from confluent_kafka import Consumer
    from confluent_kafka import TopicPartition as At

    consumer = Consumer({"bootstrap.servers": address, "group.id": group, "enable.auto.commit": False})
    consumer.commit(offsets=[At(topic, 0, offset)], asynchronous=False)
    consumer.close()


def committed(address: str, group: str, topic: str) -> int:
    from confluent_kafka import Consumer
    from confluent_kafka import TopicPartition as At

    consumer = Consumer({"bootstrap.servers": address, "group.id": group})
    (found,) = consumer.committed([At(topic, 0)], timeout=30)
    consumer.close()
    return int(found.offset)


@pytest.mark.long
def test_positions_of_groups_are_translated_and_committed(tmp_path: Path) -> None:
    text = f"{MIRROR}sync.group.offsets.enabled = true\ntopics = work.*\n"
    with (
        running_broker(tmp_path / "there") as there,
        forwarding(tmp_path / "here", text, topics={"work": 1, "other": 1}, there=there.address) as here,
    ):
        assert values(there.address, "here.work", COUNT) == VALUES
        commit(here.address, "readers", "work", COUNT)
        commit(here.address, "strangers", "other", 1)
        # Offsets at the target are others where markers of transactions lie between: the end is exact.
        end = librdkafka.watermarks(there.address, "here.work")[1]
        topic = "here.checkpoints.internal"
        until(lambda: topic in librdkafka.admin(there.address).list_topics(timeout=10).topics, topic)
        one = librdkafka.read(there.address, topic, 1)[0]
        checkpoint = Checkpoint.parse(one.key(), one.value())
        assert (checkpoint.group, checkpoint.partition) == ("readers", TopicPartition("here.work", 0))
        assert checkpoint.upstream == COUNT and COUNT <= checkpoint.downstream <= end
        until(
            lambda: committed(there.address, "readers", "here.work") == checkpoint.downstream,
            "its commit at the target",
        )
        # What was read at the target is not taken back, and what was read at the source since is.
        librdkafka.send(here.address, "work", [b"more"], timestamp=NOW, key=b"key", partition=0)
        commit(here.address, "readers", "work", COUNT + 1)
        until(
            lambda: committed(there.address, "readers", "here.work") > checkpoint.downstream, "the next one"
        )
        rest = librdkafka.read(there.address, "here.work", COUNT + 1)
        assert rest[-1].value() == b"more"


@pytest.mark.long
def test_a_group_with_members_at_the_target_is_left_alone(tmp_path: Path) -> None:
    text = f"{MIRROR}sync.group.offsets.enabled = true\n"
    with (
        running_broker(tmp_path / "there") as there,
        forwarding(tmp_path / "here", text, topics={"work": 1}, there=there.address) as here,
    ):
        assert values(there.address, "here.work", COUNT) == VALUES
        member = librdkafka.Group(there.address, "readers", ["here.work"])
        member.take(1)
        commit(here.address, "readers", "work", COUNT)
        commit(here.address, "others", "work", COUNT)
        until(lambda: committed(there.address, "others", "here.work") >= COUNT, "the other group")
        assert committed(there.address, "readers", "here.work") < 0
        member.close()


def flows(broker: BrokerProcess) -> dict[str, Any]:
    """What the admin port says of each."""
    with urllib.request.urlopen(f"http://{broker.about['metrics']}/plugins/forward/flows", timeout=10) as got:
        return {row["flow"]: row for row in json.load(got)}


@pytest.mark.long
def test_a_cluster_that_is_away_is_a_line_of_health(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    with forwarding(tmp_path / "here", MIRROR, topics={"work": 1}, there=address) as here:
        until(lambda: address in json.dumps(health(here)), "the line of health", seconds=90)
        with running_broker(tmp_path / "there", {"listeners": f"PLAINTEXT://{address}"}) as there:
            assert values(there.address, "here.work", COUNT) == VALUES
            until(lambda: address not in json.dumps(health(here)), "health again")


@pytest.mark.long
def test_one_node_takes_one_copy_with_a_line(tmp_path: Path) -> None:
    """`replication.factor` is 2 by default, those of MirrorMaker's own topics 3."""
    with (
        running_broker(tmp_path / "there") as there,
        forwarding(tmp_path / "here", MIRROR, topics={"work": 1}, there=there.address) as here,
    ):
        assert values(there.address, "here.work", COUNT) == VALUES
        assert "the target has 1 brokers: topics get that many replicas, not 2" in here.log


def test_two_names_of_one_cluster_are_no_flow(tmp_path: Path) -> None:
    text = MIRROR.replace("{there}", "{here}")
    with forwarding(tmp_path / "here", text, topics={"work": 1}) as here:
        until(lambda: "here and there are the same cluster" in json.dumps(health(here)), "the line of health")
        assert "here.work" not in librdkafka.admin(here.address).list_topics(timeout=10).topics


@pytest.mark.long
def test_a_flow_goes_on_where_mirror_maker_stopped(tmp_path: Path) -> None:
    with running_broker(tmp_path / "there") as there:
        fill(there.address, "unrelated", 1)
        librdkafka.create(there.address, "mm2-offsets.here.internal", 3, **{"cleanup.policy": "compact"})
        for number, (alias, last) in enumerate((("here", 10), ("here", 29), ("elsewhere", 40))):
            key = json.dumps(["MirrorSourceConnector", {"cluster": alias, "partition": 0, "topic": "work"}])
            where = 0 if alias == "here" else 1
            librdkafka.send(
                there.address,
                "mm2-offsets.here.internal",
                [json.dumps({"offset": last}).encode()],
                timestamp=NOW + number,
                key=key.encode(),
                partition=where,
            )
        text = f"{MIRROR}topics = work, whole\n"
        with forwarding(tmp_path / "here", text, topics={"work": 1, "whole": 1}, there=there.address) as here:
            assert values(there.address, "here.work", COUNT - 30) == VALUES[30:]
            assert values(there.address, "here.whole", COUNT) == VALUES
            assert " partitions went on where MirrorMaker stopped" in json.dumps(health(here))


@pytest.mark.long
def test_the_second_of_two_processes_stands_by(tmp_path: Path) -> None:
    """Both forward from the same cluster to the same one, with the same file."""
    text = MIRROR.replace("{here}", "{from}")
    with running_broker(tmp_path / "from") as source, running_broker(tmp_path / "to") as target:
        fill(source.address, "work", 1)
        names = {"from": source.address, "there": target.address}
        with forwarding(tmp_path / "one", text, topics={}, **names) as one:
            until(lambda: flows(one)["here->there"]["state"] == "running", "the first")
            with forwarding(tmp_path / "two", text, topics={}, **names) as two:
                until(lambda: flows(two)["here->there"]["state"] == "standing by", "the second")
                one.stop()
                until(lambda: flows(two)["here->there"]["state"] == "running", "its turn")
                librdkafka.send(source.address, "work", [b"x"], timestamp=NOW, key=b"k", partition=0)
                assert values(target.address, "here.work", COUNT + 1) == [*VALUES, "x"]


def test_heartbeats_are_of_the_process_that_has_a_flow() -> None:
    other, own = (FlowReport("f", state) for state in (FlowState.STANDING_BY, FlowState.WAITING))
    assert [run_elsewhere(flows) for flows in ([other], [other, other], [other, own], [own], [])] == [
        True,
        True,
        False,
        False,
        False,
    ]


def test_a_file_that_is_half_right_ends_the_start(tmp_path: Path) -> None:
    both = f"{MIRROR}there->here.enabled = true\nreplication.policy.class = {IDENTITY_POLICY}\n"
    with (
        pytest.raises(
            RuntimeError, match=r"mirror\.properties:9: there->here\.enabled=true: here->there, there->here "
        ),
        forwarding(tmp_path, both, topics={}, there="127.0.0.1:1"),
    ):
        pass


@pytest.mark.long
def test_both_ways_nothing_comes_back(tmp_path: Path) -> None:
    text = f"{MIRROR}there->here.enabled = true\n"
    with running_broker(tmp_path / "there") as there:
        fill(there.address, "goods", 1)
        with forwarding(tmp_path / "here", text, topics={"work": 1}, there=there.address) as here:
            assert values(there.address, "here.work", COUNT) == VALUES
            assert values(here.address, "there.goods", COUNT) == VALUES
            for broker, beats in ((here, "there.heartbeats"), (there, "here.heartbeats")):
                librdkafka.read(broker.address, beats, 2)
                topics = librdkafka.admin(broker.address).list_topics(timeout=10).topics
                assert not [name for name in topics if "here.there." in name or "there.here." in name]


@pytest.mark.long
def test_filters_of_a_flow(tmp_path: Path) -> None:
    text = f"{MIRROR}lc.filters = even\ntopics = work\n"
    with running_broker(tmp_path / "there") as there:
        here = f"127.0.0.1:{free_port()}"
        file = tmp_path / "mirror.properties"
        file.write_text(text.replace("{here}", here).replace("{there}", there.address))
        settings = {
            "listeners": f"PLAINTEXT://{here}",
            "lc.topic.forward.config": str(file),
            "lc.record.filter.even": "allow value.regex=[02468]$",
        }
        with running_broker(tmp_path / "here", settings):
            fill(here, "work", 1)
            assert values(there.address, "here.work", COUNT // 2) == VALUES[::2]


def test_the_environment_names_the_file(tmp_path: Path, hub: BrokerProcess) -> None:
    file = tmp_path / "mirror.properties"
    file.write_text(SAMPLE.read_text().replace("localhost:19092", hub.address))
    environ = {"KAFKA_LC_TOPIC_FORWARD_CONFIG": str(file)}
    with running_broker(tmp_path / "edge", environ=environ) as edge:
        assert set(flows(edge)) == {"source-cluster->target-cluster"}


def test_settings_of_a_client_that_cannot_be_used_end_the_start(tmp_path: Path) -> None:
    text = f"{MIRROR}there.security.protocol = SASL_PLAINTEXT\nthere.sasl.mechanism = GSSAPI\n"
    with (
        pytest.raises(RuntimeError, match=r"mirror\.properties: of there in here->there: .*GSSAPI"),
        forwarding(tmp_path, text, topics={}, there="127.0.0.1:1"),
    ):
        pass


@pytest.mark.long
def test_a_cluster_with_tls_and_a_password(tmp_path: Path) -> None:
    with secured_broker(tmp_path / "there") as there:
        given = there.client("SASL_SSL", "SCRAM-SHA-512")
        more = "".join(
            f"there.{name} = {value}\n" for name, value in given.items() if name != "bootstrap.servers"
        )
        text, address = MIRROR + more, there.addresses["SASL_SSL"]
        with forwarding(tmp_path / "here", text, topics={"work": 1}, there=address) as here:
            assert values(there.addresses["PLAINTEXT"], "here.work", COUNT) == VALUES
            assert flows(here)["here->there"]["guarantee"] == "exactly once"


@pytest.mark.long
def test_this_broker_by_another_address_is_taken_in_process(tmp_path: Path, hub: BrokerProcess) -> None:
    """127.0.0.2 is none that clients are told; the id of the cluster is its own."""
    port = free_port()
    file = tmp_path / "mirror.properties"
    text = MIRROR.replace("{here}", f"127.0.0.2:{port}").replace("{there}", hub.address)
    file.write_text(f"{text}topics = nothing\n")
    settings = {
        "listeners": f"PLAINTEXT://0.0.0.0:{port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "lc.topic.forward.config": str(file),
    }
    with running_broker(tmp_path / "edge", settings) as edge:
        until(lambda: flows(edge)["here->there"]["source"] == "this broker", "the flow's source")
        assert flows(edge)["here->there"]["target"] == hub.address


@pytest.mark.long
def test_many_machines_with_one_file(tmp_path: Path) -> None:
    """They have the same aliases, and are told apart by the ids of their clusters."""
    text = f"{MIRROR}replication.policy.class = {IDENTITY_POLICY}\ntopics = work\n"
    with running_broker(tmp_path / "there") as there:
        names = {"topics": {"work": 1}, "there": there.address}
        with (
            forwarding(tmp_path / "one", text, **names) as one,  # type: ignore[arg-type]
            forwarding(tmp_path / "two", text, **names) as two,  # type: ignore[arg-type]
        ):
            assert sorted(values(there.address, "work", 2 * COUNT)) == sorted([*VALUES, *VALUES])
            for edge in (one, two):
                assert flows(edge)["here->there"]["state"] == "running"
