"""Which value counts when several are given, how DescribeConfigs tells it, and that changes survive a restart."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from leafcuttr.config.settings import Source
from leafcuttr.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from support import librdkafka
from support.changing import alter_broker
from support.live_broker import LiveBroker
from support.logs import batch
from support.wire_client import WireClient

BROKER, TOPIC = 4, 2
OWN, ALL = "1", ""
NAME = "message.max.bytes"


class Told(NamedTuple):
    """What DescribeConfigs says of one setting."""

    value: str
    source: int
    synonyms: list[tuple[str, str, int]]


def described(broker: LiveBroker, kind: int = BROKER, resource: str = OWN, name: str = NAME) -> Told:
    asked = DescribeConfigsResource(resource_type=kind, resource_name=resource, configuration_keys=[name])
    with WireClient(broker.address) as client:
        answer = client.ask(DescribeConfigsRequest(resources=[asked], include_synonyms=True), 4)
    ((config,),) = [result.configs for result in answer.results]
    synonyms = [(each.name, each.value, each.source) for each in config.synonyms]
    return Told(config.value, config.config_source, synonyms)


def largest(broker: LiveBroker) -> int:
    """The thousands of bytes that a record of the topic may have, found by trying."""
    with WireClient(broker.address) as client:
        return max(
            size
            for size in range(1, 7)
            if client.produce("t", batch(size=size * 1000, timestamp=broker.clock.ms)).error_code == 0
        )


STATIC = (NAME, "2200", Source.STATIC_BROKER_CONFIG)
DEFAULT = (NAME, "1048588", Source.DEFAULT_CONFIG)
FOR_ALL = (NAME, "3200", Source.DYNAMIC_DEFAULT_BROKER_CONFIG)
FOR_ONE = (NAME, "4200", Source.DYNAMIC_BROKER_CONFIG)


def test_the_order_of_sources_through_restarts(serve: Any) -> None:
    given = {NAME: "2200"}
    with serve() as broker:
        librdkafka.create(broker.address, "t")
        assert described(broker) == ("1048588", Source.DEFAULT_CONFIG, [DEFAULT])
        assert largest(broker) == 6
    with serve(given) as broker:
        assert described(broker) == ("2200", Source.STATIC_BROKER_CONFIG, [STATIC, DEFAULT])
        assert largest(broker) == 2
        alter_broker(broker.address, ALL, {NAME: "3200"})
        assert described(broker) == ("3200", FOR_ALL[2], [FOR_ALL, STATIC, DEFAULT])
        assert largest(broker) == 3
        alter_broker(broker.address, OWN, {NAME: "4200"})
        assert described(broker) == ("4200", FOR_ONE[2], [FOR_ONE, FOR_ALL, STATIC, DEFAULT])
        assert largest(broker) == 4
    with serve(given) as broker:
        assert described(broker) == ("4200", FOR_ONE[2], [FOR_ONE, FOR_ALL, STATIC, DEFAULT])
        assert largest(broker) == 4
        # Of the cluster's default only what was changed is told.
        assert described(broker, resource=ALL) == ("3200", FOR_ALL[2], [FOR_ALL])
        topic = described(broker, TOPIC, "t", "max.message.bytes")
        assert topic == ("4200", FOR_ONE[2], [FOR_ONE, FOR_ALL, STATIC, DEFAULT])
        librdkafka.alter(broker.address, "topic", "t", {"max.message.bytes": "5200"})
        topic = described(broker, TOPIC, "t", "max.message.bytes")
        own = ("max.message.bytes", "5200", Source.DYNAMIC_TOPIC_CONFIG)
        assert topic == ("5200", own[2], [own, FOR_ONE, FOR_ALL, STATIC, DEFAULT])
        assert largest(broker) == 5
        librdkafka.alter(broker.address, "topic", "t", {"max.message.bytes": None})
        alter_broker(broker.address, OWN, {NAME: None})
        assert described(broker) == ("3200", FOR_ALL[2], [FOR_ALL, STATIC, DEFAULT])
    with serve(given) as broker:
        assert largest(broker) == 3
        alter_broker(broker.address, ALL, {NAME: None})
        assert described(broker) == ("2200", Source.STATIC_BROKER_CONFIG, [STATIC, DEFAULT])
        assert largest(broker) == 2


def test_a_limit_of_one_listener_is_told_and_survives(serve: Any) -> None:
    name = "listener.name.plaintext.max.connections"
    with serve() as broker:
        alter_broker(broker.address, OWN, {name: "77"})
        value = described(broker, name=name)
        assert (value.value, value.source) == ("77", Source.DYNAMIC_BROKER_CONFIG)
    with serve() as broker:
        assert described(broker, name=name).value == "77"
        alter_broker(broker.address, ALL, {name: "88"})
        assert [each[1] for each in described(broker, name=name).synonyms][:2] == ["77", "88"]
        with pytest.raises(Exception, match="must be at least 0"):
            alter_broker(broker.address, OWN, {name: "-1"})
        alter_broker(broker.address, OWN, {name: None})
        assert described(broker, name=name).value == "88"
