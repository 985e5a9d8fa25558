"""The client of a cluster: leaders, brokers and addresses."""

from __future__ import annotations

import click
import pytest

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.target import Target
from leafcuttr.cli.common.wire_client.cluster import ClusterClient
from leafcuttr_sdk.types import TopicPartition
from support.waiting import free_port


def test_leaders_and_brokers_of_a_real_one(own_address: str, topic: str) -> None:
    from support.librdkafka import create

    create(own_address, topic, partitions=2)
    with ClusterClient(Target(f"127.0.0.1:{free_port()},{own_address}")) as cluster:
        assert list(cluster.brokers()) == [1]
        wanted = [TopicPartition(topic, 1), TopicPartition(topic, 0)]
        assert cluster.leaders(wanted) == {1: wanted}
        for tp, message in (
            (TopicPartition("no-such-topic", 0), "there is no topic no-such-topic"),
            (TopicPartition(topic, 9), f"{topic} has no partition 9"),
        ):
            with pytest.raises(Failure, match=message):
                cluster.leaders([tp])
        assert "no-such-topic" not in cluster.topics()
        with pytest.raises(Failure, match="there is no broker 9; there are 1"):
            cluster.connection(9)


def test_addresses_that_cannot_be_are_wrong_usage() -> None:
    for wrong in ("", "host:", "host:port", "host:0", "host:65536", ":9092", "a,,b"):
        with pytest.raises(click.UsageError, match=r"--bootstrap-server .*: expected HOST:PORT"):
            ClusterClient(Target(wrong))
