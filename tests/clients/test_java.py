"""Apache Kafka's own Java tools, of 3.9 and 4.3."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from support import jars

Fresh = Callable[[str], str]
pytestmark = pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
NEW, OLD = "4.3.1", "3.9.1"
TOOLS = "org.apache.kafka.tools"
both = pytest.mark.parametrize("version", [NEW, pytest.param(OLD, marks=pytest.mark.long)])


def tool(version: str, name: str, *arguments: str, seconds: int = 120) -> str:
    """What a tool prints. Fails the test when it fails."""
    command = jars.java(version, f"{TOOLS}.{name}", *arguments)
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-1000:]
    return done.stdout


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def named(found: Iterable[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [one for one in found if one["name"] == name]


@both
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
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
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
def test_two_verifiable_consumers_share_a_group(bootstrap: str, fresh: Fresh, version: str) -> None:
    topic, group, count = fresh("topic"), fresh("group"), 3000
    making = ("--bootstrap-server", bootstrap, "--create", "--topic", topic, "--partitions", "4")
    tool(version, "TopicCommand", *making)
    given = ("--bootstrap-server", bootstrap, "--topic", topic)
    command = [*given, "--group-id", group, "--max-messages", str(count)]
    readers = [
        subprocess.Popen(
            jars.java(version, f"{TOOLS}.VerifiableConsumer", *command),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        seen = 0
        for reader in readers:  # both have partitions before anything is sent
            assert reader.stdout is not None
            for line in reader.stdout:
                if '"partitions_assigned"' in line and '"partition":' in line:
                    break
        tool(version, "VerifiableProducer", *given, "--max-messages", str(2 * count))
        for reader in readers:
            reader.terminate()
            out, _ = reader.communicate(timeout=60)
            seen += sum(one["count"] for one in named(events(out), "records_consumed"))
        assert seen <= 2 * count
    finally:
        for reader in readers:
            reader.kill()
            reader.wait()


@pytest.mark.long
@both
def test_admin_tools(bootstrap: str, fresh: Fresh, version: str) -> None:
    topic, group = fresh("topic"), fresh("group")
    at = ("--bootstrap-server", bootstrap)
    tool(version, "TopicCommand", *at, "--create", "--topic", topic, "--partitions", "3")
    assert "PartitionCount: 3" in tool(version, "TopicCommand", *at, "--describe", "--topic", topic)
    tool(version, "TopicCommand", *at, "--alter", "--topic", topic, "--partitions", "5")
    tool(version, "VerifiableProducer", *at, "--topic", topic, "--max-messages", "50")
    offsets = tool(version, "GetOffsetShell", *at, "--topic", topic)
    assert sum(int(line.rsplit(":", 1)[1]) for line in offsets.split()) == 50
    tool(version, "VerifiableConsumer", *at, "--topic", topic, "--group-id", group, "--max-messages", "50")
    groups = "consumer.group.ConsumerGroupCommand"
    told = tool(version, groups, *at, "--describe", "--group", group)
    assert topic in told
    tool(
        version,
        groups,
        *at,
        "--group",
        group,
        "--topic",
        topic,
        "--reset-offsets",
        "--to-earliest",
        "--execute",
    )
    tool(version, groups, *at, "--delete", "--group", group)
    tool(version, "TopicCommand", *at, "--delete", "--topic", topic)
