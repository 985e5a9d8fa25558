"""Filters and validators of a plugin in a real broker: by the settings of topics and of the broker, and without it."""

from __future__ import annotations

import json
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException

from leafcuttr.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from leafcuttr.wire.records import Record as Stored
from leafcuttr.wire.records import encode_batch
from support import librdkafka
from support.broker_process import BrokerProcess, running_broker
from support.wire_client import WireClient

NOW = 1_700_000_000_000


def answer(broker: BrokerProcess, topic: str, *values: bytes) -> Any:
    with WireClient(broker.address) as wire:
        return wire.produce(
            topic, encode_batch([Stored(n, NOW, b"k", value) for n, value in enumerate(values)])
        )


def values(broker: BrokerProcess, topic: str, count: int) -> list[Any]:
    return [message.value() for message in librdkafka.read(broker.address, topic, count)]


def admin(broker: BrokerProcess, path: str) -> str:
    address = json.loads((broker.folder / "ready.json").read_text())["metrics"]
    with urllib.request.urlopen(f"http://{address}{path}", timeout=60) as response:
        text: str = response.read().decode()
        return text


@pytest.mark.long
def test_topics_name_filters_and_their_settings_reach_them(tmp_path: Path, plugins: Path) -> None:
    with running_broker(tmp_path, {"lc.plugins.path": str(plugins)}) as broker:
        address = broker.address
        librdkafka.create(address, "t", lc_filters="sort,mask", lc_validators="short")
        refused = answer(broker, "t", b"k1", b"kkkk", b"k2")
        assert refused.error_code == 87
        assert [(e.batch_index, e.batch_index_error_message) for e in refused.record_errors] == [
            (1, "the value is longer than 3 bytes")
        ]
        librdkafka.alter(address, "broker", "1", {"lc.plugin.sieve.most": "20"})
        assert answer(broker, "t", b"k secret", b"d", b"l", b"c secret").error_code == 0
        librdkafka.alter(address, "topic", "t", {"lc.plugin.sieve.word": "pub"})
        assert answer(broker, "t", b"k secret pub").error_code == 0
        librdkafka.alter(address, "topic", "t", {"lc.filters": "mask"})
        assert answer(broker, "t", b"d pub").error_code == 0
        assert values(broker, "t", 4) == [b"k ******", b"C ******", b"k secret ***", b"d ***"]
        assert values(broker, "t.dlq", 1) == [b"l"]
        metrics = admin(broker, "/metrics")
        for line in (
            'leafcuttr_filter_records_total{filter="sort",topic="t",verdict="kept"} 2',
            'leafcuttr_filter_records_total{filter="sort",topic="t",verdict="changed"} 1',
            'leafcuttr_filter_records_total{filter="sort",topic="t",verdict="dropped"} 1',
            'leafcuttr_filter_records_total{filter="sort",topic="t",verdict="dead_letter"} 1',
            'leafcuttr_filter_records_total{filter="mask",topic="t",verdict="changed"} 4',
            'leafcuttr_validator_records_total{topic="t",validator="short",verdict="refused"} 1',
            'leafcuttr_validator_records_total{topic="t",validator="short",verdict="accepted"} 6',
            'leafcuttr_filter_failures_total{filter="mask",topic="t"} 0',
            'leafcuttr_dead_letters_total{topic="t.dlq"} 1',
        ):
            assert line in metrics or line + ".0" in metrics, line


@pytest.mark.long
def test_the_broker_names_them_for_topics_by_name_and_pattern(tmp_path: Path, plugins: Path) -> None:
    settings = {
        "lc.plugins.path": str(plugins),
        "lc.filters.orders-*": "sort",
        "lc.filters.orders-eu": "mask",
        "lc.validators.*": "short",
        "lc.plugin.sieve.most": "8",
    }
    with running_broker(tmp_path, settings) as broker:
        address = broker.address
        for topic in ("orders-eu", "orders-us", "other"):
            librdkafka.create(address, topic)
        librdkafka.create(address, "orders-own", lc_filters="")
        for topic in ("orders-eu", "orders-us", "orders-own", "other"):
            assert answer(broker, topic, b"d secret").error_code == 0
            assert answer(broker, topic, b"123456789").error_code == 87
        assert values(broker, "orders-eu", 1) == [b"d ******"]
        assert librdkafka.watermarks(address, "orders-us") == (0, 1)
        assert answer(broker, "orders-us", b"c").base_offset == 1
        assert values(broker, "orders-us", 1) == [b"C"]
        assert values(broker, "orders-own", 1) == values(broker, "other", 1) == [b"d secret"]
        librdkafka.alter(address, "broker", "1", {"lc.filters.other": "sort"})
        assert answer(broker, "other", b"c").error_code == 0
        assert values(broker, "other", 2) == [b"d secret", b"C"]
        # Groups and transactions work: nobody filters the broker's own topics.
        group = librdkafka.Group(address, "g", ["other"])
        assert len(group.take(2)) == 2
        group.commit()
        group.close()


def test_an_unknown_name_is_refused_with_the_nearest(tmp_path: Path, plugins: Path) -> None:
    with running_broker(tmp_path, {"lc.plugins.path": str(plugins)}) as broker:
        address = broker.address
        near = "there is no record filter masc; did you mean mask?"
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name="t",
                    num_partitions=1,
                    replication_factor=1,
                    configs=[CreatableTopicConfig(name="lc.filters", value="sort,masc")],
                )
            ],
            timeout_ms=30_000,
        )
        with WireClient(address) as wire:
            for validate_only in (True, False):
                (result,) = wire.ask(replace(request, validate_only=validate_only), 5).topics
                assert result.error_code == 40
                assert result.error_message == f"Invalid value masc for configuration lc.filters: {near}"
        librdkafka.create(address, "t")
        with pytest.raises(KafkaException, match="did you mean mask"):
            librdkafka.alter(address, "topic", "t", {"lc.filters": "masc"})
        with pytest.raises(KafkaException, match=r"no produce validator quux; there are short"):
            librdkafka.alter(address, "topic", "t", {"lc.validators": "quux"})
        with pytest.raises(
            KafkaException, match=r"configuration lc.filters.t\*: there is no record filter masc"
        ):
            librdkafka.alter(address, "broker", "1", {"lc.filters.t*": "masc"})
        assert answer(broker, "t", b"d").error_code == 0
        assert values(broker, "t", 1) == [b"d"]


@pytest.mark.long
def test_a_topic_whose_filter_is_not_there_takes_no_records(tmp_path: Path, plugins: Path) -> None:
    with running_broker(tmp_path, {"lc.plugins.path": str(plugins)}) as broker:
        librdkafka.create(broker.address, "t", lc_filters="mask")
        librdkafka.create(broker.address, "free")
        for name, why in (
            ("broken", "record filter broken: no table of words at /no/where"),
            ("dumb", "record filter dumb: what it makes is an object and has no method filter"),
        ):
            librdkafka.create(broker.address, name, lc_filters=name)
            refused = answer(broker, name, b"1")
            assert (refused.error_code, refused.error_message) == (
                -1,
                f"Topic {name} takes no records at present: {why}",
            )
            assert broker.log.count(f"{name} takes no records: {why}") == 1
        assert answer(broker, "t", b"secret").error_code == 0
    # Without the plugin, and with a member of a family that nobody has: warnings at the start, and no record gets by.
    with running_broker(tmp_path, {"lc.filters.fr?e": "mask"}) as broker:
        gone = "there is no record filter mask; no plugin that is on has a record filter"
        assert f"topic t takes no records: {gone}" in broker.log
        assert f"lc.filters.fr?e=mask: {gone}" in broker.log
        for topic in ("t", "free"):
            refused = answer(broker, topic, b"secret")
            assert refused.error_code == -1
            assert gone in refused.error_message
        health = json.loads(admin(broker, "/health"))
        assert health["status"] == "degraded"
        assert "t" in json.dumps(health)
        # What has nothing to do with it can be changed, and the name taken away.
        librdkafka.alter(broker.address, "topic", "t", {"retention.ms": "100000"})
        librdkafka.alter(broker.address, "topic", "t", {"lc.filters": None})
        assert answer(broker, "t", b"secret").error_code == 0
        assert values(broker, "t", 2) == [b"******", b"secret"]
