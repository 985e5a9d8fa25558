"""The options of the source."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.options import OptionError, Query
from leafcuttr_spark.source.options import OPTIONS, By, SourceOptions, source_options

LEAST = {"kafka.bootstrap.servers": "hub:9092", "subscribe": "orders"}


def options(query: Query = Query.STREAM, **given: Any) -> SourceOptions:
    return source_options({**LEAST, **given}, query)


def refused(said: str, query: Query = Query.STREAM, **given: Any) -> None:
    with pytest.raises(OptionError) as caught:
        options(query, **given)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_defaults_are_those_of_spark_s_connector_but_for_committed_records() -> None:
    found = options()
    assert (found.starting.by, options(Query.BATCH).starting.by) == (By.LATEST, By.EARLIEST)
    assert found.ending.by is By.LATEST
    assert found.columns == ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
    assert (found.committed, found.fail_on_data_loss, found.max_delay_s) == (True, True, 900.0)
    assert found.client == {"bootstrap.servers": "hub:9092"}
    assert pickle.loads(pickle.dumps(found)) == found


def test_the_client_gets_its_properties_and_none_of_ours() -> None:
    found = options(
        **{
            "kafka.security.protocol": "SSL",
            "kafka.isolation.level": "read_uncommitted",
            "kafka.group.id": "g",
        }
    )
    assert found.client == {"bootstrap.servers": "hub:9092", "security.protocol": "SSL"}
    assert not found.committed


@pytest.mark.parametrize(
    "name",
    [
        "auto.offset.reset",
        "enable.auto.commit",
        "key.deserializer",
        "value.deserializer",
        "interceptor.classes",
    ],
)
def test_properties_that_would_change_what_is_read_are_refused(name: str) -> None:
    refused(f"the option kafka.{name} is not allowed", **{f"kafka.{name}": "x"})


def test_the_cluster_has_to_be_given() -> None:
    with pytest.raises(OptionError, match=r"kafka\.bootstrap\.servers is missing"):
        source_options({"subscribe": "a"}, Query.BATCH)


def test_subscriptions() -> None:
    assert options(subscribe=" b, a,,b ").subscription.topics == ("a", "b")
    only = {"kafka.bootstrap.servers": "hub:9092"}
    assert source_options({**only, "subscribePattern": "o.*"}, Query.STREAM).subscription.pattern == "o.*"
    assigned = source_options(
        {**only, "assign": '{"b": [1, 0], "a": [7]}'}, Query.STREAM
    ).subscription.partitions
    assert assigned == (TopicPartition("a", 7), TopicPartition("b", 0), TopicPartition("b", 1))
    with pytest.raises(OptionError, match="none of them is given"):
        source_options(only, Query.STREAM)
    refused("subscribe and assign are given", assign='{"a": [0]}')
    refused("allowed is the names of topics", subscribe=" , ")
    for wrong in ("[a", "", "(" * 20_000):
        with pytest.raises(OptionError, match="a regular expression"):
            source_options({**only, "subscribePattern": wrong}, Query.STREAM)
    for wrong in ("[]", "{}", '{"a": 1}', '{"a": [-1]}', '{"a": ["0"]}', '{"a": [true]}', "a"):
        with pytest.raises(OptionError, match="JSON such as"):
            source_options({**only, "assign": wrong}, Query.STREAM)


def test_columns() -> None:
    assert options(includeHeaders="true").columns[-1] == "headers"
    assert options(columns="value, timestampTYPE,headers").columns == ("value", "timestampType", "headers")
    for wrong in ("", "value,value", "values"):
        refused("each at most once", columns=wrong)


def test_where_it_begins() -> None:
    place = options(startingOffsets='{"orders": {"0": 5, "1": -2, "2": -1}}').starting
    assert place.by is By.OFFSET
    assert [place.of[TopicPartition("orders", number)] for number in range(3)] == [5, -2, -1]
    assert options(startingOffsets="Earliest").starting.by is By.EARLIEST
    by_time = options(
        startingOffsets="earliest", startingOffsetsByTimestamp='{"orders": {"0": 1000}}'
    ).starting
    assert (by_time.by, by_time.of) == (By.TIME, {TopicPartition("orders", 0): 1000})
    once = options(startingTimestamp="7", startingOffsetsByTimestamp='{"orders": {"0": 1000}}').starting
    assert (once.by, once.time) == (By.ONE_TIME, 7)
    for wrong in (
        "newest",
        "{}",
        '{"orders": {"0": -3}}',
        '{"orders": {"x": 1}}',
        '{"orders": {"00": 1}}',
        '{"orders": 1}',
    ):
        refused("earliest or latest, or JSON", startingOffsets=wrong)
    refused("milliseconds since 1970", startingTimestamp="-1")
    refused("JSON such as", startingOffsetsByTimestamp='{"orders": {"0": -1}}')


def test_a_batch_cannot_begin_at_the_latest() -> None:
    refused("a batch ends at the latest", Query.BATCH, startingOffsets="latest")
    refused("a batch ends at the latest", Query.BATCH, startingOffsets='{"orders": {"0": -1}}')


def test_where_it_ends() -> None:
    place = options(Query.BATCH, endingOffsets='{"orders": {"0": 9}}').ending
    assert place.of == {TopicPartition("orders", 0): 9}
    refused("allowed is latest, or JSON", Query.BATCH, endingOffsets="earliest")
    refused("allowed is latest, or JSON", Query.BATCH, endingOffsets='{"orders": {"0": -2}}')
    refused("is for batches, and this is a stream", endingOffsets="latest")
    refused("is for batches, and this is a stream", endingTimestamp="5")


def test_beginning_and_end_are_compared() -> None:
    def both(start: int, end: int, other: str = "orders") -> dict[str, str]:
        return {
            "startingOffsets": json.dumps({"orders": {"0": start}}),
            "endingOffsets": json.dumps({other: {"0": end}}),
        }

    assert options(Query.BATCH, **both(3, 3))
    assert options(Query.BATCH, **both(3, -1))
    refused("has 4 for orders-0, which is behind the 3 of endingOffsets", Query.BATCH, **both(4, 3))
    refused("name different partitions", Query.BATCH, **both(3, 4, "others"))


def test_how_much_a_batch_gets() -> None:
    found = options(maxOffsetsPerTrigger="100", minOffsetsPerTrigger="10", maxTriggerDelay="90s")
    assert (found.max_offsets, found.min_offsets, found.max_delay_s) == (100, 10, 90.0)
    refused("at most maxOffsetsPerTrigger, which is 9", maxOffsetsPerTrigger="9", minOffsetsPerTrigger="10")
    refused("a time with its unit", maxTriggerDelay="soon")


def test_a_source_without_records_can_move_event_time_on() -> None:
    assert options(idleAfter="30s").idle_s == 30
    assert options().idle_s is None
    refused("a time with its unit", idleAfter="soon")
    refused("a time with its unit", idleAfter="0s")
    assert options(Query.BATCH, maxOffsetsPerTrigger="9").max_offsets == 9, (
        "accepted, as Spark's connector does"
    )


def test_names_of_spark_s_connector_are_all_known() -> None:
    known = {option.name for option in OPTIONS}
    assert known >= {
        "subscribe", "subscribePattern", "assign", "startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets",
        "endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets", "failOnDataLoss", "kafkaConsumer.pollTimeoutMs",
        "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "maxOffsetsPerTrigger", "minOffsetsPerTrigger",
        "maxTriggerDelay", "minPartitions", "maxRecordsPerPartition", "groupIdPrefix", "kafka.group.id",
        "includeHeaders", "startingOffsetsByTimestampStrategy",
    }  # fmt: skip
    assert all(option.what.endswith(".") for option in OPTIONS)
