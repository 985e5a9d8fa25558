"""A real Apache Kafka with every security protocol and mechanism: our client, and the commands that are built on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from click.testing import CliRunner, Result

from leafcuttr.cli.root import cli
from leafcuttr.client.cluster import open_cluster
from leafcuttr.client.connection import ClientConnection
from leafcuttr.client.errors import ClientError
from leafcuttr.client.properties import client_settings
from leafcuttr.runtime.clock import SystemClock
from leafcuttr.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from leafcuttr.wire.messages.metadata import MetadataRequest
from leafcuttr.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from leafcuttr_sdk.types import TopicPartition
from support import jars
from support.logs import batch
from support.secure_kafka import MECHANISMS, SESSION_S, SecureKafka, credentials, jaas, secure_kafka

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
]
WAYS = [
    ("PLAINTEXT", None),
    ("SSL", None),
    ("MTLS", None),
    *[(protocol, mechanism) for protocol in ("SASL_PLAINTEXT", "SASL_SSL") for mechanism in MECHANISMS],
]
ways = pytest.mark.parametrize(("listener", "mechanism"), WAYS)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    with secure_kafka(tmp_path_factory.mktemp("secure") / "kafka") as kafka:
        yield kafka


@ways
async def test_records_go_both_ways(kafka: SecureKafka, listener: str, mechanism: str | None) -> None:
    topic = f"both-ways-{listener}-{mechanism}"
    tp = TopicPartition(topic, 0)
    settings = client_settings(kafka.client(listener, mechanism))
    assert settings.unknown == ()
    async with open_cluster(settings, clock=SystemClock()) as cluster:
        topics = [CreatableTopic(name=topic, num_partitions=1, replication_factor=1)]
        node = await cluster.controller()
        made = await cluster.request(CreateTopicsRequest(topics=topics, timeout_ms=30_000), node=node)
        assert [each.error_code for each in made.topics] == [0]
        # Large enough for many TLS records, and for a frame in pieces.
        data = batch(3, size=200_000)
        leader = await led(cluster, tp)
        part = PartitionProduceData(index=0, records=memoryview(data))
        produce = ProduceRequest(
            acks=-1,
            timeout_ms=30_000,
            topic_data=[
                TopicProduceData(name=topic, topic_id=await id_of(cluster, topic), partition_data=[part])
            ],
        )
        answer = await cluster.request(produce, node=leader)
        assert [each.error_code for each in answer.responses[0].partition_responses] == [0]
        wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        fetch = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            topics=[FetchTopic(topic=topic, topic_id=await id_of(cluster, topic), partitions=[wanted])],
        )
        fetched = (await cluster.request(fetch, node=leader)).responses[0].partitions[0]
        assert fetched.error_code == 0
        assert bytes(fetched.records)[61:] == bytes(data)[61:]
        assert cluster.trouble is None


async def led(cluster: Any, tp: TopicPartition) -> int:
    """A new topic has its leader a moment after it was made."""
    from leafcuttr.errors import BrokerError

    with trio.fail_after(60):
        while True:
            try:
                return int(await cluster.leader(tp))
            except BrokerError:
                pass
    raise AssertionError


async def id_of(cluster: Any, topic: str) -> bytes:
    return bytes((await cluster.metadata([topic])).topics[0].topic_id)


async def test_a_session_is_renewed_before_kafka_ends_it(kafka: SecureKafka, nursery: trio.Nursery) -> None:
    """Kafka closes a connection whose session is over at the next request (connections.max.reauth.ms)."""
    for mechanism in MECHANISMS:
        settings = client_settings(kafka.client("SHORT", mechanism))
        connection: ClientConnection = await nursery.start(
            ClientConnection(settings.bootstrap[0], settings).run
        )
        until = trio.current_time() + 3 * SESSION_S
        while trio.current_time() < until:
            await connection.request(MetadataRequest(topics=[]), timeout_s=30)
            await trio.sleep(0.05)
        assert connection.is_open


@pytest.mark.parametrize(
    ("listener", "mechanism", "changes", "line"),
    [
        (
            "SASL_SSL",
            "PLAIN",
            {"sasl.jaas.config": jaas("PLAIN", password="no")},
            "the user alice is refused: Authentication failed: Invalid username or password "
            "(SASL_AUTHENTICATION_FAILED)",
        ),
        (
            "SASL_PLAINTEXT",
            "SCRAM-SHA-512",
            {"sasl.jaas.config": jaas("SCRAM-SHA-512", username="bob")},
            "the user bob is refused: Authentication failed during authentication due to invalid credentials with "
            "SASL mechanism SCRAM-SHA-512 (SASL_AUTHENTICATION_FAILED)",
        ),
        ("SSL", None, {"security.protocol": "PLAINTEXT"}, "speaks TLS (security.protocol=SSL or SASL_SSL)"),
        (
            "PLAINTEXT",
            None,
            {"security.protocol": "SSL"},
            "closed the connection during the TLS handshake; it may speak no TLS (security.protocol=PLAINTEXT or "
            "SASL_PLAINTEXT)",
        ),
        (
            "SASL_PLAINTEXT",
            None,
            {"security.protocol": "PLAINTEXT"},
            "closed the connection; its listener may want authentication (security.protocol=SASL_PLAINTEXT)",
        ),
        (
            "SASL_SSL",
            None,
            {"security.protocol": "SSL"},
            "closed the connection; its listener may want authentication (security.protocol=SASL_SSL)",
        ),
        ("SSL", None, {"ssl.truststore.location": ""}, "its certificate is refused: "),
        ("MTLS", None, {"ssl.keystore.location": ""}, "certificate"),
    ],
)
async def test_what_is_wrong_is_said(
    kafka: SecureKafka, listener: str, mechanism: str | None, changes: dict[str, str], line: str
) -> None:
    properties = kafka.client(listener, mechanism) | changes | {"request.timeout.ms": "3000"}
    async with open_cluster(client_settings(properties), clock=SystemClock()) as cluster:
        with pytest.raises(ClientError) as caught:
            await cluster.metadata()
    assert line in str(caught.value)
    assert str(kafka.ports[listener]) in str(caught.value)


def command(kafka: SecureKafka, folder: Path, listener: str, mechanism: str | None, *words: str) -> Result:
    """Run it with Java's names in a file, as `kafka-topics.sh --command-config` has it."""
    properties = kafka.client(listener, mechanism)
    address = properties.pop("bootstrap.servers")
    file = folder / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    target = [address] if words[0] == "doctor" else ["-b", address]
    return CliRunner().invoke(cli, [*words, *target, "-F", str(file)], catch_exceptions=False)


@ways
@pytest.mark.parametrize(
    "words",
    [
        ("cluster", "brokers", "--json"),
        ("cluster", "api-versions", "--json"),
        ("logdirs", "--json"),
        ("transactions", "list", "--json"),
        ("configs", "describe", "broker", "--default", "--json"),
        ("configs", "describe", "client", "--json"),
        ("topics", "list", "--json"),
        ("groups", "list", "--json"),
        ("doctor", "--json"),
    ],
    ids=" ".join,
)
def test_every_command_has_tls_and_sasl(
    kafka: SecureKafka, tmp_path: Path, listener: str, mechanism: str | None, words: tuple[str, ...]
) -> None:
    done = command(kafka, tmp_path, listener, mechanism, *words)
    assert done.exit_code == 0, done.output
    json.loads(done.stdout)


def test_the_doctor_looks_at_everything_behind_authentication(kafka: SecureKafka, tmp_path: Path) -> None:
    done = command(kafka, tmp_path, "SASL_SSL", "SCRAM-SHA-256", "doctor", "--json", "--write")
    found = {each["check"]: each for each in json.loads(done.stdout)["examined"][0]["findings"]}
    assert [name for name, each in found.items() if each["severity"] in ("problem", "skipped")] == []
    assert found["access"]["seen"] == "the listener requires authentication"


def test_the_doctor_with_a_wrong_password(kafka: SecureKafka) -> None:
    name, _ = credentials("PLAIN")
    words = ["-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.mechanisms=PLAIN"]
    words += ["-X", f"sasl.username={name}", "-X", "sasl.password=no", "--json"]
    done = CliRunner().invoke(cli, ["doctor", kafka.address("SASL_PLAINTEXT"), *words])
    found = {each["check"]: each for each in json.loads(done.stdout)["examined"][0]["findings"]}
    assert done.exit_code == 1
    assert "authentication fails: " in found["log-in"]["seen"]
    assert "Invalid username or password" in found["log-in"]["seen"]


@pytest.mark.parametrize("words", [("cluster", "id"), ("topics", "list")])
def test_librdkafkas_names_on_the_line(kafka: SecureKafka, words: tuple[str, ...]) -> None:
    name, password = credentials("SCRAM-SHA-256")
    given = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "SCRAM-SHA-256",
        "sasl.username": name,
        "sasl.password": password,
        "ssl.ca.location": str(kafka.ca),
        "log_level": "0",
    }
    line = [word for key, value in given.items() for word in ("-X", f"{key}={value}")]
    done = CliRunner().invoke(cli, [*words, "-b", kafka.address("SASL_SSL"), *line])
    assert done.exit_code == 0, done.output
