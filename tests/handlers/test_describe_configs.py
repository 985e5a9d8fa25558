"""DescribeConfigs: values with sources and synonyms as a real Kafka 4.3.1 gives them."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from leafcuttr.config.catalog import BROKER, TOPIC
from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)

MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent "
    "to an incompatible broker. See the broker logs for more details."
)


def request(
    *resources: tuple[int, str, list[str] | None], documentation: bool = False
) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
            for kind, name, keys in resources
        ],
        include_synonyms=True,
        include_documentation=documentation,
    )


def synonyms(config: DescribeConfigsResourceResult) -> list[tuple[str, str | None, int]]:
    return [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms]


def by_name(result: DescribeConfigsResult) -> dict[str, DescribeConfigsResourceResult]:
    return {config.name: config for config in result.configs}


@pytest.mark.parametrize("version", range(1, 5))
async def test_every_version_describes_a_topic(broker: Broker, send: Any, version: int) -> None:
    await broker.topics.create("t", 1, {"retention.ms": " 1000 "})
    (result,) = (await send(request((2, "t", None), documentation=version > 2), version)).results
    assert (result.error_code, result.error_message, result.resource_type, result.resource_name) == (
        0,
        "",
        2,
        "t",
    )
    configs = by_name(result)
    assert set(configs) == set(TOPIC)
    retention = configs["retention.ms"]
    assert (retention.value, retention.config_source, retention.read_only) == ("1000", 1, False)
    assert synonyms(retention) == [("retention.ms", "1000", 1)]
    assert synonyms(configs["segment.bytes"]) == [("log.segment.bytes", "1073741824", 5)]
    assert synonyms(configs["segment.ms"]) == []
    if version > 2:
        assert retention.config_type == 5
        assert retention.documentation == TOPIC["retention.ms"].help


async def test_no_documentation_and_no_synonyms_unless_requested(broker: Broker, send: Any) -> None:
    await broker.topics.create("t", 1, {})
    requested = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=2, resource_name="t", configuration_keys=["segment.bytes"])
        ]
    )
    (result,) = (await send(requested, 4)).results
    (config,) = result.configs
    assert config.documentation is None
    assert synonyms(config) == []


async def test_the_broker_with_types_and_sources(
    open_test_broker: Callable[..., Broker], sender_of: Any
) -> None:
    broker = open_test_broker({"log.retention.hours": "5", "ssl.key.password": "hunter2"})
    (result,) = (await sender_of(broker)(request((4, "1", None)), 4)).results
    configs = by_name(result)
    assert set(configs) == set(BROKER)
    hours = configs["log.retention.hours"]
    assert (hours.value, hours.config_source, hours.read_only, hours.config_type) == ("5", 4, True, 3)
    assert synonyms(hours) == [("log.retention.hours", "5", 4), ("log.retention.hours", "168", 5)]
    ms = configs["log.retention.ms"]
    assert (ms.value, ms.config_source, ms.read_only, synonyms(ms)) == (None, 5, False, [])
    password = configs["ssl.key.password"]
    assert (password.value, password.is_sensitive, password.config_type) == (None, True, 9)
    assert synonyms(password) == [("ssl.key.password", None, 4)]


async def test_changes_show_with_their_scope(broker: Broker, send: Any) -> None:
    await broker.topics.create("t", 1, {"retention.ms": "12"})
    await broker.dynamic_settings.edit("", lambda before: {**before, "log.retention.ms": "2000000"})
    await broker.dynamic_settings.edit("1", lambda _: {"log.retention.ms": "1000000"})
    of_broker, of_all, of_topic = (
        await send(
            request(
                (4, "1", ["log.retention.ms"]), (4, "", ["log.retention.ms"]), (2, "t", ["retention.ms"])
            ),
            4,
        )
    ).results
    expected = [
        ("log.retention.ms", "1000000", 2),
        ("log.retention.ms", "2000000", 3),
        ("log.retention.hours", "168", 5),
    ]
    assert synonyms(of_broker.configs[0]) == expected
    assert [(c.name, c.value, c.config_source, synonyms(c)) for c in of_all.configs] == [
        ("log.retention.ms", "2000000", 3, [("log.retention.ms", "2000000", 3)])
    ]
    assert synonyms(of_topic.configs[0]) == [("retention.ms", "12", 1), *expected]


@pytest.mark.parametrize("version", range(1, 5))
@pytest.mark.parametrize("static", [None, "2"])
async def test_min_insync_replicas_is_a_dynamic_default_from_the_first_start_on(
    open_test_broker: Callable[..., Broker], sender_of: Any, static: str | None, version: int
) -> None:
    """Read off a freshly formatted Kafka 4.3.1, without and with the setting in its file."""
    name = "min.insync.replicas"
    broker = open_test_broker({} if static is None else {name: static})
    await broker.topics.create("t", 1, {})
    requested = request((4, "", None), (4, "1", [name]), (2, "t", [name]))
    results = (await sender_of(broker)(requested, version)).results
    of_all, of_this, of_topic = (result.configs[0] for result in results)
    value = static or "1"
    dynamic = [(name, value, 3)]
    below = [(name, "1", 5)] if static is None else [(name, "2", 4), (name, "1", 5)]
    assert [config.name for config in results[0].configs] == [name]
    for config, places in ((of_all, dynamic), (of_this, dynamic + below), (of_topic, dynamic + below)):
        assert (config.value, config.config_source, config.read_only) == (value, 3, False)
        assert synonyms(config) == places


async def test_the_filter_of_names(broker: Broker, send: Any) -> None:
    results = (
        await send(
            request(
                (4, "1", ["node.id", "nonsense"]), (4, "01", ["node.id"]), (4, "1", []), (8, "1", ["nope"])
            ),
            4,
        )
    ).results
    assert [len(result.configs) for result in results] == [1, 1, len(BROKER), 0]


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (
            4,
            "2",
            ErrorCode.INVALID_REQUEST,
            "Unexpected broker id, expected 1 or empty string, but received 2",
        ),
        (4, "x", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (8, "2", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1 but received 2"),
        (8, "", ErrorCode.INVALID_REQUEST, "Broker id must not be empty"),
        (8, "x", ErrorCode.INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (2, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""),
        (
            2,
            "bad name!",
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'bad name!' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'",
        ),
        (2, "", ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed"),
        (32, "", ErrorCode.INVALID_REQUEST, "Group name must not be empty"),
        (16, "", ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty"),
        (1, "x", ErrorCode.INVALID_REQUEST, MALFORMED),
        (77, "x", ErrorCode.INVALID_REQUEST, MALFORMED),
    ],
)
async def test_refused(send: Any, kind: int, name: str, code: ErrorCode, message: str) -> None:
    (result,) = (await send(request((kind, name, None)), 4)).results
    assert (result.error_code, result.error_message, list(result.configs)) == (code, message, [])
    assert (result.resource_type, result.resource_name) == (kind, name)


async def test_an_unknown_kind_fails_the_request(send: Any) -> None:
    results = (await send(request((4, "1", None), (77, "q", None)), 4)).results
    assert [result.error_message for result in results] == [MALFORMED, MALFORMED]


async def test_groups_and_client_metrics_show_defaults(send: Any) -> None:
    requested = request((32, "g", None), (16, "m", None), documentation=True)
    group, metrics = (await send(requested, 4)).results
    configs = by_name(group)
    assert len(configs) == 17
    session = configs["consumer.session.timeout.ms"]
    assert (session.value, session.config_source) == ("45000", 5)
    assert synonyms(session) == [("group.consumer.session.timeout.ms", "45000", 5)]
    assert {config.name: config.value for config in metrics.configs} == {
        "interval.ms": "300000",
        "match": "",
        "metrics": "",
    }
    assert all(config.documentation for config in [*group.configs, *metrics.configs])


async def test_loggers(send: Any) -> None:
    logging.getLogger("leafcuttr.test.describe").setLevel(logging.ERROR)
    (result,) = (await send(request((8, "1", None)), 4)).results
    configs = by_name(result)
    assert "root" in configs
    logger = configs["leafcuttr.test.describe"]
    assert (logger.value, logger.config_source, logger.config_type) == ("ERROR", 6, 0)
    assert all(name == "root" or name.startswith("leafcuttr") for name in configs)
