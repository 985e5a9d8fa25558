"""Apache Kafka's own Java tools, of 3.9 and 4.3."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from leafcuttr.wire.records import Record, encode_batch
from support import jars
from support.client_duties import CODECS
from support.librdkafka import alter, create, watermarks
from support.waiting import until
from support.wire_client import WireClient

Fresh = Callable[[str], str]
pytestmark = [
    pytest.mark.client("Kafka's Java tools", version="4.3.1"),
    pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing())),
]
NEW, OLD, OLDEST = "4.3.1", "3.9.1", "2.1.1"
TOOLS = "org.apache.kafka.tools"
both = pytest.mark.parametrize("version", [NEW, pytest.param(OLD, marks=pytest.mark.long)])


def tool(version: str, name: str, *arguments: str, seconds: int = 240, given: str | None = None) -> str:
    """What a tool prints, with `given` on its standard input. Fails the test when it fails."""
    command = jars.java(version, name if name.startswith("kafka.") else f"{TOOLS}.{name}", *arguments)
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-1000:]
    return done.stdout


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def named(found: Iterable[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [one for one in found if one["name"] == name]


@both
@pytest.mark.duty("produce", "read", "commit")
def test_verifiable_producer_and_consumer(bootstrap: str, fresh: Fresh, version: str) -> None:
    topic, group, count = fresh("topic"), fresh("group"), 2000
    given = ("--bootstrap-server", bootstrap, "--topic", topic, "--max-messages", str(count))
    sent = events(tool(version, "VerifiableProducer", *given))
    assert len(named(sent, "producer_send_success")) == count
    assert named(sent, "tool_data")[0]["acked"] == count
    read = events(tool(version, "VerifiableConsumer", *given, "--group-id", group))
    assert sum(one["count"] for one in named(read, "records_consumed")) == count
    assert all(one["success"] for one in named(read, "offsets_committed"))


@pytest.mark.long
@both
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.duty("produce")
def test_performance_tools(bootstrap: str, fresh: Fresh, version: str, codec: str) -> None:
    topic = fresh("topic")
    sending = ("--topic", topic, "--num-records", "20000", "--record-size", "500", "--throughput", "-1")
    more = (f"bootstrap.servers={bootstrap}", f"compression.type={codec}", "acks=all")
    option = "--command-property" if version == NEW else "--producer-props"
    told = tool(
        version,
        "ProducerPerformance",
        *sending,
        *(("--bootstrap-server", bootstrap) if version == NEW else ()),
        option,
        *more,
    )
    assert "20000 records sent" in told
    reading = ("--bootstrap-server", bootstrap, "--topic", topic, "--timeout", "60000", "--hide-header")
    amount = ("--num-records", "20000") if version == NEW else ("--messages", "20000")
    told = tool(version, "ConsumerPerformance", *reading, *amount)
    # start, end, MB, MB/s, records, ...
    assert int(told.strip().splitlines()[-1].split(",")[4]) >= 20000


@pytest.mark.long
@both
@pytest.mark.duty("read", "commit")
def test_console_tools(bootstrap: str, fresh: Fresh, version: str) -> None:
    """Keys, headers and compression from the keyboard; by a group, which then stands at the end; a latency test."""
    topic, group = fresh("topic"), fresh("group")
    at = ("--bootstrap-server", bootstrap)
    create(bootstrap, topic, 1)
    lines = [f"n:{number}\tkey{number}=value {number}" for number in range(50)]
    parsing, printing = (
        ("--reader-property", "--formatter-property") if version == NEW else ("--property", "--property")
    )
    words = [parsing, "parse.key=true", parsing, "parse.headers=true", parsing, "key.separator=="]
    producer = "ConsoleProducer" if version == NEW else "kafka.tools.ConsoleProducer"
    given = "".join(f"{line}\n" for line in lines)
    tool(version, producer, *at, "--topic", topic, "--compression-codec", "zstd", *words, given=given)
    words = [word for name in ("key", "headers", "offset") for word in (printing, f"print.{name}=true")]
    reading = ("--topic", topic, "--from-beginning", "--group", group, "--isolation-level", "read_committed")
    told = tool(version, "consumer.ConsoleConsumer", *at, *reading, "--max-messages", "50", *words)
    expected = [f"Offset:{number}\tn:{number}\tkey{number}\tvalue {number}" for number in range(50)]
    assert told.splitlines() == expected
    described = tool(version, "consumer.group.ConsumerGroupCommand", *at, "--describe", "--group", group)
    row = next(line.split() for line in described.splitlines() if topic in line)
    assert row[3:6] == ["50", "50", "0"]  # committed, end, lag
    assert "Percentiles" in tool(version, "EndToEndLatency", bootstrap, topic, "200", "all", "100")


@pytest.mark.long
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_a_topic_that_recompresses(bootstrap: str, fresh: Fresh, codec: str) -> None:
    """What the broker itself compresses, Java must be able to read: it is stricter about frames than librdkafka."""
    topic, group, count = fresh("topic"), fresh("group"), 2000
    at = ("--bootstrap-server", bootstrap)
    tool(NEW, "TopicCommand", *at, "--create", "--topic", topic, "--config", f"compression.type={codec}")
    tool(NEW, "VerifiableProducer", *at, "--topic", topic, "--max-messages", str(count))
    reading = ("--topic", topic, "--group-id", group, "--max-messages", str(count))
    read = events(tool(NEW, "VerifiableConsumer", *at, *reading))
    assert sum(one["count"] for one in named(read, "records_consumed")) == count


@pytest.mark.long
@both
@pytest.mark.duty("rebalance")
def test_two_verifiable_consumers_share_a_group(
    bootstrap: str, fresh: Fresh, version: str, tmp_path: Path
) -> None:
    """Two members read each record once between them; the one that stays gets all partitions."""
    topic, group, count = fresh("topic"), fresh("group"), 3000
    create(bootstrap, topic, 4)
    given = ("--bootstrap-server", bootstrap, "--topic", topic)
    members: list[subprocess.Popen[bytes]] = []

    def heard(at: int) -> list[dict[str, Any]]:
        whole = (tmp_path / f"member{at}").read_text().rpartition("\n")[0]
        return events(whole)

    def holds(at: int) -> int:
        changes = [one for one in heard(at) if one["name"].startswith("partitions_")]
        if not changes or changes[-1]["name"] != "partitions_assigned":
            return 0
        return len(changes[-1]["partitions"])

    def consumed() -> int:
        return sum(one["count"] for at in (0, 1) for one in named(heard(at), "records_consumed"))

    try:
        for at in range(2):
            with (tmp_path / f"member{at}").open("wb") as out:
                command = jars.java(version, f"{TOOLS}.VerifiableConsumer", *given, "--group-id", group)
                members.append(subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL))
        until(lambda: holds(0) == holds(1) == 2, "two partitions for each member")
        tool(version, "VerifiableProducer", *given, "--max-messages", str(count), "--repeating-keys", "100")
        until(lambda: consumed() >= count, "all records")
        assert all(named(heard(at), "records_consumed") for at in range(2))
        members[1].terminate()
        members[1].wait(120)
        until(lambda: holds(0) == 4, "all partitions for the one that stays")
        tool(version, "VerifiableProducer", *given, "--max-messages", str(count), "--repeating-keys", "100")
        until(lambda: consumed() >= 2 * count, "all records of the second round")
        members[0].terminate()
        members[0].wait(120)
        assert consumed() == 2 * count
        assert all(one["success"] for at in range(2) for one in named(heard(at), "offsets_committed"))
    finally:
        for member in members:
            member.kill()
            member.wait()


@pytest.mark.long
@both
@pytest.mark.duty("create", "seek by time", "alter", "delete")
def test_admin_tools(bootstrap: str, fresh: Fresh, version: str, tmp_path: Path) -> None:
    """What a person or a web interface asks on the first day: topics, groups, settings, offsets, the cluster."""
    topic, group = fresh("topic"), fresh("group")
    at = ("--bootstrap-server", bootstrap)
    topics, groups, config = (
        "TopicCommand",
        "consumer.group.ConsumerGroupCommand",
        "kafka.admin.ConfigCommand",
    )

    def ask(name: str, *arguments: str) -> str:
        return tool(version, name, *at, *arguments)

    ask(topics, "--create", "--topic", topic, "--partitions", "3")
    assert topic in ask(topics, "--list").split()
    assert "PartitionCount: 3" in ask(topics, "--describe", "--topic", topic)
    ask(topics, "--alter", "--topic", topic, "--partitions", "5")
    entity = ("--entity-type", "topics", "--entity-name", topic)
    ask(config, "--alter", *entity, "--add-config", "retention.ms=7200000,cleanup.policy=[delete]")
    assert "retention.ms=7200000" in ask(config, "--describe", *entity)
    assert "segment.bytes" in ask(config, "--describe", "--all", *entity)
    ask(config, "--alter", *entity, "--delete-config", "retention.ms")
    assert "retention.ms=7200000" not in ask(config, "--describe", *entity)
    assert "log.dirs" in ask(config, "--describe", "--all", "--entity-type", "brokers", "--entity-name", "1")

    ask("VerifiableProducer", "--topic", topic, "--max-messages", "50")
    for when, total in (("latest", 50), ("earliest", 0)):
        offsets = ask("GetOffsetShell", "--topic", topic, "--time", when)
        assert sum(int(line.rsplit(":", 1)[1]) for line in offsets.split()) == total
    ask("GetOffsetShell", "--topic", topic, "--time", "max-timestamp")

    ask("VerifiableConsumer", "--topic", topic, "--group-id", group, "--max-messages", "50")
    assert group in ask(groups, "--list").split()
    assert "Empty" in ask(groups, "--describe", "--state", "--group", group)
    rows = [
        line.split() for line in ask(groups, "--describe", "--group", group).splitlines() if topic in line
    ]
    assert sum(int(row[3]) for row in rows) == 50  # committed
    ask(groups, "--describe", "--members", "--group", group)
    reset = ("--group", group, "--topic", topic, "--reset-offsets", "--execute")
    for where, total in (
        (["--to-datetime", "2020-01-01T00:00:00.000"], 0),
        (["--to-latest"], 50),
        (["--to-earliest"], 0),
        (["--to-datetime", "2100-01-01T00:00:00.000"], 50),
    ):
        told = re.findall(rf"{group}\s+{topic}\s+\d+\s+(\d+)", ask(groups, *reset, *where))
        assert len(told) == 5 and sum(map(int, told)) == total
    ask(groups, "--delete-offsets", "--group", group, "--topic", f"{topic}:0")
    ask(groups, "--delete", "--group", group)
    assert group not in ask(groups, "--list").split()

    before = tmp_path / "before.json"
    before.write_text(
        json.dumps({"partitions": [{"topic": topic, "partition": 0, "offset": -1}], "version": 1})
    )
    assert "low_watermark" in ask("DeleteRecordsCommand", "--offset-json-file", str(before))
    assert topic in ask("LogDirsCommand", "--describe", "--topic-list", topic)
    assert "Produce(0)" in ask(
        "BrokerApiVersionsCommand" if version == NEW else "kafka.admin.BrokerApiVersionsCommand"
    )
    assert "Cluster ID" in tool(version, "ClusterTool", "cluster-id", *at)
    assert "LeaderId" in ask("MetadataQuorumCommand", "describe", "--status")
    ask("FeatureCommand", "describe")
    if version == NEW:
        ask("GroupsCommand", "--list")
    ask(topics, "--delete", "--topic", topic)
    assert topic not in ask(topics, "--list").split()


@pytest.mark.long
@pytest.mark.duty("produce", "read", "commit")
@pytest.mark.parametrize("version", [OLDEST])
def test_the_oldest(
    bootstrap: str, fresh: Fresh, version: str, record_property: Callable[[str, object], None], tmp_path: Path
) -> None:
    """What Kafka 4 still serves by KIP-896, of 2019: the lowest versions of many requests."""
    topic, group = fresh("topic"), fresh("group")
    create(bootstrap, topic, 2)
    at, reading = ("--bootstrap-server", bootstrap), ("--broker-list", bootstrap, "--topic", topic)
    for codec in CODECS:
        sending = ("--topic", topic, "--num-records", "400", "--record-size", "300", "--throughput", "-1")
        how = (f"bootstrap.servers={bootstrap}", f"compression.type={codec}", "enable.idempotence=true")
        assert "400 records sent" in tool(version, "ProducerPerformance", *sending, "--producer-props", *how)
    record_property("codecs", " ".join(CODECS))
    read = events(
        tool(version, "VerifiableConsumer", *reading, "--group-id", group, "--max-messages", "2000")
    )
    assert sum(one["count"] for one in named(read, "records_consumed")) == 2000
    assert all(one["success"] for one in named(read, "offsets_committed"))
    groups = ("kafka.admin.ConsumerGroupCommand", *at, "--group", group)
    rows = [line.split() for line in tool(version, *groups, "--describe").splitlines() if topic in line]
    assert sum(int(row[2]) for row in rows) == 2000
    tool(version, *groups, "--reset-offsets", "--to-earliest", "--execute", "--topic", topic)
    again = ("--topic", topic, "--group", group, "--isolation-level", "read_committed")
    told = tool(version, "kafka.tools.ConsoleConsumer", *at, *again, "--max-messages", "2000")
    assert len(told.splitlines()) == 2000
    before = tmp_path / "before.json"
    parts = [{"topic": topic, "partition": number, "offset": 100} for number in range(2)]
    before.write_text(json.dumps({"partitions": parts, "version": 1}))
    tool(version, "kafka.admin.DeleteRecordsCommand", *at, "--offset-json-file", str(before))
    offsets = tool(version, "kafka.tools.GetOffsetShell", *reading, "--time", "-2").split()
    assert sorted(offsets) == [f"{topic}:0:100", f"{topic}:1:100"]
    assert topic in tool(version, "kafka.admin.LogDirsCommand", *at, "--describe", "--topic-list", topic)
    tool(version, *groups, "--delete")
    assert group not in tool(version, "kafka.admin.ConsumerGroupCommand", *at, "--list").split()


@pytest.mark.long
@both
def test_transactions_tool(bootstrap: str, fresh: Fresh, version: str) -> None:
    """Transactions are listed, described and ended by an administrator; one that hangs is found and aborted."""
    from confluent_kafka import KafkaException, Producer

    topic, name = fresh("topic"), fresh("transactional")
    create(bootstrap, topic)
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"never seen", partition=0)
    producer.flush(60)

    def ask(*arguments: str) -> str:
        return tool(version, "TransactionsCommand", "--bootstrap-server", bootstrap, *arguments)

    def listed() -> list[str]:
        only = ("--transactional-id-pattern", f"{name}.*") if version == NEW else ()
        told = ask("list", *only).splitlines()
        return next(line for line in told if line.startswith(name)).split()

    at = ("--topic", topic, "--partition", "0")
    _, _, producer_id, state = listed()
    assert state == "Ongoing"
    assert f"{topic}-0" in ask("describe", "--transactional-id", name)
    assert producer_id in ask("describe-producers", *at)
    if version == NEW:
        ask("forceTerminateTransaction", "--transactionalId", name)
        assert listed()[-1] == "Empty"  # the tool takes the id over, as a new producer would
        with pytest.raises(KafkaException):
            producer.commit_transaction(60)
    else:
        producer.abort_transaction(60)
        until(lambda: listed()[-1] == "CompleteAbort", "the end of the transaction")

    # Only who does not ask the coordinator can leave a transaction behind of which it does not know.
    stable = watermarks(bootstrap, topic)[1]
    alter(bootstrap, "broker", "1", {"transaction.partition.verification.enable": "false"})
    try:
        batch = encode_batch(
            [Record(0, 0, None, b"hangs")],
            producer_id=2**40,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        part = PartitionProduceData(index=0, records=memoryview(batch))
        request = ProduceRequest(
            transactional_id=fresh("transactional"),
            acks=-1,
            topic_data=[TopicProduceData(name=topic, partition_data=[part])],
        )
        with WireClient(bootstrap) as client:

            def taken() -> bool:
                return client.ask(request, 11).responses[0].partition_responses[0].error_code == 0

            until(taken, "the setting that lets it pass")
    finally:
        alter(bootstrap, "broker", "1", {"transaction.partition.verification.enable": None})
    search = ("find-hanging", "--topic", topic, "--max-transaction-timeout", "0")
    assert str(2**40) in until(lambda: found if str(2**40) in (found := ask(*search)) else None, "what hangs")
    ask("abort", *at, "--start-offset", str(stable))
    assert str(2**40) not in ask(*search)
    assert watermarks(bootstrap, topic)[1] == stable + 2
