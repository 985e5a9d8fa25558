"""IncrementalAlterConfigs: what changes, what is refused, in the words a real Kafka 4.3.1 answers with."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

SET, DELETE, APPEND, SUBTRACT = range(4)
Change = tuple[str, int, str | None]
OK = (0, None)


def resource(kind: int, name: str, *changes: Change) -> AlterConfigsResource:
    configs = [
        AlterableConfig(name=n, config_operation=operation, value=value) for n, operation, value in changes
    ]
    return AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def topic(*changes: Change) -> AlterConfigsResource:
    return resource(2, "t", *changes)


@pytest.fixture
async def alter(broker: Broker, send: Any) -> Any:
    await broker.topics.create("t", 1, {})

    async def alter(
        *resources: AlterConfigsResource, validate_only: bool = False, version: int = 1
    ) -> list[tuple[int, str | None]]:
        requested = IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)
        answer = await send(requested, version)
        assert [(r.resource_type, r.resource_name) for r in answer.responses] == [
            (r.resource_type, r.resource_name) for r in resources
        ]
        return [(r.error_code, r.error_message) for r in answer.responses]

    return alter


def overrides(broker: Broker) -> dict[str, str]:
    return dict(broker.topics.by_name["t"].overrides)


@pytest.mark.parametrize("version", [0, 1])
async def test_a_change_is_in_force_at_once_and_after_a_restart(
    open_test_broker: Callable[..., Broker], broker: Broker, alter: Any, version: int
) -> None:
    assert await alter(topic(("retention.ms", SET, "1000")), version=version) == [OK]
    assert await alter(topic(("segment.ms", SET, "2000")), version=version) == [OK]
    found = broker.topics.by_name["t"]
    assert (found.config.retention_ms, found.config.segment_ms) == (1000, 2000)
    assert found.partitions[0].log.config is found.config
    assert await alter(topic(("segment.ms", DELETE, None)), version=version) == [OK]
    again = open_test_broker()
    assert dict(again.topics.by_name["t"].overrides) == {"retention.ms": "1000"}
    assert again.topics.by_name["t"].config.retention_ms == 1000


async def test_lists(broker: Broker, alter: Any) -> None:
    assert await alter(topic(("cleanup.policy", APPEND, "compact"))) == [OK]
    assert overrides(broker) == {"cleanup.policy": "delete,compact"}
    assert await alter(topic(("cleanup.policy", APPEND, "compact"))) == [OK]
    assert overrides(broker) == {"cleanup.policy": "delete,compact"}
    assert await alter(topic(("cleanup.policy", SUBTRACT, "delete"))) == [OK]
    assert overrides(broker) == {"cleanup.policy": "compact"}
    assert await alter(topic(("cleanup.policy", SUBTRACT, "compact"))) == [OK]
    assert overrides(broker) == {"cleanup.policy": ""}
    assert broker.topics.by_name["t"].config.cleanup_policy == ()
    assert await alter(topic(("cleanup.policy", DELETE, None))) == [OK]
    assert overrides(broker) == {}


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        (
            [("retention.ms", SET, "abc")],
            ErrorCode.INVALID_CONFIG,
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        ([("nope", SET, "1")], ErrorCode.INVALID_CONFIG, "Unknown topic config name: nope"),
        (
            [("retention.ms", SET, None)],
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : retention.ms",
        ),
        (
            [("retention.ms", SET, None), ("segment.ms", SET, None)],
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : retention.ms, segment.ms",
        ),
        (
            [("cleanup.policy", APPEND, None)],
            ErrorCode.INVALID_REQUEST,
            "Null value not supported for : cleanup.policy",
        ),
        (
            [("retention.ms", APPEND, "1")],
            ErrorCode.INVALID_CONFIG,
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        (
            [("nope", SUBTRACT, "1")],
            ErrorCode.INVALID_CONFIG,
            "Can't SUBTRACT to key nope because its type is not LIST.",
        ),
        (
            [("retention.ms", SET, "1"), ("retention.ms", SET, "2")],
            ErrorCode.INVALID_REQUEST,
            "Error due to duplicate config keys",
        ),
        (
            [("min.compaction.lag.ms", SET, "100"), ("max.compaction.lag.ms", SET, "50")],
            ErrorCode.INVALID_CONFIG,
            "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (50)",
        ),
        ([("retention.ms", 9, "1")], ErrorCode.UNKNOWN_SERVER_ERROR, None),
    ],
)
async def test_refused_as_a_whole(
    broker: Broker, alter: Any, changes: list[Change], code: ErrorCode, message: str | None
) -> None:
    assert await alter(topic(*changes, ("segment.bytes", SET, "2000000"))) == [(code, message)]
    assert overrides(broker) == {}


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (2, "nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic 'nope' does not exist."),
        (
            2,
            "b n",
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "Topic name is invalid: 'b n' contains one or more characters other than ASCII alphanumerics, '.', '_' "
            "and '-'",
        ),
        (2, "", ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed."),
        (77, "t", ErrorCode.INVALID_REQUEST, "Unknown resource type 77"),
        (0, "t", ErrorCode.INVALID_REQUEST, "Unknown resource type 0"),
        (4, "2", ErrorCode.INVALID_REQUEST, "Unexpected broker id, expected 1, but received 2"),
        (4, "x", ErrorCode.INVALID_REQUEST, "Node id must be an integer, but it is: x"),
        (32, "", ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."),
        (16, "", ErrorCode.INVALID_REQUEST, "Subscription name can't be empty"),
    ],
)
async def test_refused_resources(alter: Any, kind: int, name: str, code: ErrorCode, message: str) -> None:
    assert await alter(resource(kind, name, ("retention.ms", SET, "1"))) == [(code, message)]


@pytest.mark.parametrize(("kind", "what"), [(32, "KIP-848"), (16, "KIP-714")])
async def test_not_here_yet(alter: Any, kind: int, what: str) -> None:
    ((code, message),) = await alter(resource(kind, "g", ("consumer.session.timeout.ms", SET, "50000")))
    assert code == ErrorCode.INVALID_REQUEST
    assert what in message and "later version" in message


async def test_resources_fail_by_themselves(broker: Broker, alter: Any) -> None:
    first, second = await alter(
        topic(("retention.ms", SET, "12")), resource(2, "nope", ("retention.ms", SET, "1"))
    )
    assert first == OK
    assert second[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert overrides(broker) == {"retention.ms": "12"}


async def test_a_resource_may_come_once(broker: Broker, alter: Any) -> None:
    twice = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    assert await alter(topic(("retention.ms", SET, "1")), topic(("segment.ms", SET, "2"))) == [twice, twice]
    assert overrides(broker) == {}


async def test_deleting_what_is_not_known_is_fine(alter: Any) -> None:
    assert await alter(topic(("nope", DELETE, None))) == [OK]
    assert await alter(resource(4, "1", ("nope", DELETE, None), ("node.id", DELETE, None))) == [OK]


async def test_validating_changes_nothing(broker: Broker, alter: Any) -> None:
    checked = [topic(("retention.ms", SET, "5")), resource(4, "1", ("log.retention.ms", SET, "5"))]
    assert await alter(*checked, validate_only=True) == [OK, OK]
    assert overrides(broker) == {}
    assert broker.settings.value("log.retention.ms") is None
    ((code, _),) = await alter(topic(("retention.ms", SET, "x")), validate_only=True)
    assert code == ErrorCode.INVALID_CONFIG


async def test_a_default_of_the_broker_reaches_every_topic_and_survives(
    open_test_broker: Callable[..., Broker], broker: Broker, alter: Any
) -> None:
    assert await alter(resource(4, "", ("log.retention.ms", SET, "2000"))) == [OK]
    log = broker.topics.by_name["t"].partitions[0].log
    assert log.config.retention_ms == 2000
    assert await alter(resource(4, "1", ("log.retention.ms", SET, "1000"))) == [OK]
    assert log.config.retention_ms == 1000
    assert await alter(topic(("retention.ms", SET, "7"))) == [OK]
    assert log.config.retention_ms == 7
    again = open_test_broker()
    assert again.settings.int("log.retention.ms") == 1000
    assert again.settings.dynamic(cluster=True) == {"log.retention.ms": 2000, "min.insync.replicas": 1}
    assert again.topics.by_name["t"].config.retention_ms == 7


async def test_lists_of_the_broker(broker: Broker, alter: Any) -> None:
    assert await alter(resource(4, "1", ("log.cleanup.policy", APPEND, "compact"))) == [OK]
    assert broker.settings.list("log.cleanup.policy") == ("delete", "compact")
    assert await alter(resource(4, "1", ("log.retention.ms", APPEND, "1"))) == [
        (ErrorCode.INVALID_CONFIG, "Config value append is not allowed for config key: log.retention.ms")
    ]


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        (
            "1",
            [("node.id", "1"), ("broker.id", "1")],
            "Cannot update these configs dynamically: [node.id, broker.id]",
        ),
        (
            "1",
            [("log.retention.ms", "x")],
            "Invalid value x for configuration log.retention.ms: Not a number of type LONG",
        ),
        (
            "1",
            [("log.retention.ms", "0")],
            "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        ),
        (
            "",
            [("sasl.enabled.mechanisms", "PLAIN")],
            "Cannot update these configs at default cluster level, broker id must be specified: "
            "[sasl.enabled.mechanisms]",
        ),
        (
            "",
            [("ssl.keystore.location", "/x")],
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            "[ssl.keystore.location]",
        ),
        (
            "1",
            [("log.cleaner.min.compaction.lag.ms", "100"), ("log.cleaner.max.compaction.lag.ms", "50")],
            "log.cleaner.min.compaction.lag.ms (100) is above log.cleaner.max.compaction.lag.ms (50)",
        ),
    ],
)
async def test_changes_of_brokers_that_are_refused(
    broker: Broker, alter: Any, name: str, changes: list[tuple[str, str]], message: str
) -> None:
    requested = resource(4, name, *((key, SET, value) for key, value in changes))
    assert await alter(requested) == [(ErrorCode.INVALID_REQUEST, message)]
    assert broker.settings.dynamic() == {}


LEAST = "min.insync.replicas"
REMOVED_FOR_ALL = "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."
OF_ONE = "Broker-level min.insync.replicas cannot be altered while ELR is enabled."
NOT_A_TIME = "Invalid value x for configuration log.retention.ms: Not a number of type LONG"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize(
    ("name", "changes", "refusal"),
    [
        ("", [(LEAST, DELETE, None)], (ErrorCode.INVALID_CONFIG, REMOVED_FOR_ALL)),
        (
            "",
            [(LEAST, DELETE, None), ("log.retention.ms", SET, "5")],
            (ErrorCode.INVALID_CONFIG, REMOVED_FOR_ALL),
        ),
        (
            "",
            [(LEAST, DELETE, None), ("log.retention.ms", SET, "x")],
            (ErrorCode.INVALID_REQUEST, NOT_A_TIME),
        ),
        ("1", [(LEAST, SET, "3")], (ErrorCode.INVALID_CONFIG, OF_ONE)),
        ("1", [(LEAST, SET, "3"), ("log.retention.ms", SET, "5")], (ErrorCode.INVALID_CONFIG, OF_ONE)),
        ("1", [(LEAST, DELETE, None)], (ErrorCode.INVALID_CONFIG, OF_ONE)),
        ("1", [(LEAST, DELETE, None), ("log.retention.ms", SET, "5")], (ErrorCode.INVALID_CONFIG, OF_ONE)),
        (
            "1",
            [(LEAST, DELETE, None), ("log.retention.ms", SET, "x")],
            (ErrorCode.INVALID_REQUEST, NOT_A_TIME),
        ),
        (
            "1",
            [(LEAST, SET, "0")],
            (
                ErrorCode.INVALID_REQUEST,
                "Invalid value 0 for configuration min.insync.replicas: Value must be at least 1",
            ),
        ),
    ],
)
async def test_all_brokers_always_have_one_value_of_min_insync_replicas(
    broker: Broker,
    alter: Any,
    name: str,
    changes: list[Change],
    refusal: tuple[ErrorCode, str],
    validate_only: bool,
) -> None:
    assert await alter(resource(4, name, *changes), validate_only=validate_only) == [refusal]
    assert broker.settings.dynamic() == {}
    assert broker.settings.dynamic(cluster=True) == {LEAST: 1}


async def test_min_insync_replicas_is_changed_for_all_brokers_and_for_topics(
    open_test_broker: Callable[..., Broker], broker: Broker, alter: Any
) -> None:
    assert await alter(resource(4, "", (LEAST, SET, "2"), ("log.retention.ms", SET, "5"))) == [OK]
    assert broker.topics.by_name["t"].config.min_insync_replicas == 2
    assert await alter(topic((LEAST, SET, "3"))) == [OK]
    assert broker.topics.by_name["t"].config.min_insync_replicas == 3
    assert await alter(topic((LEAST, DELETE, None))) == [OK]
    assert await alter(resource(4, "", ("log.retention.ms", DELETE, None))) == [OK]
    again = open_test_broker({LEAST: "4"})
    assert again.topics.by_name["t"].config.min_insync_replicas == 2


async def test_an_unknown_operation_on_a_broker(alter: Any) -> None:
    requested = resource(4, "1", ("log.retention.ms", 5, "1"))
    assert await alter(requested) == [(ErrorCode.INVALID_REQUEST, "Unknown operations type 5")]


async def test_unknown_names_are_kept(broker: Broker, alter: Any) -> None:
    assert await alter(resource(4, "1", ("foo.bar", SET, "5"))) == [OK]
    assert dict(broker.dynamic_settings.texts("1")) == {"foo.bar": "5"}


async def test_loggers(alter: Any) -> None:
    logger = logging.getLogger("leafcuttr.test.alter")
    logger.setLevel(logging.NOTSET)
    change = resource(8, "1", ("leafcuttr.test.alter", SET, "ERROR"))
    assert await alter(change, validate_only=True) == [OK]
    assert logger.level == logging.NOTSET
    assert await alter(change) == [OK]
    assert logger.level == logging.ERROR
    assert await alter(resource(8, "1", ("leafcuttr.test.alter", DELETE, None))) == [OK]
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize(
    ("name", "change", "code", "message"),
    [
        (
            "1",
            ("root", SET, "FOO"),
            ErrorCode.INVALID_CONFIG,
            "Cannot set the log level of root to FOO as it is not a supported log level. Valid log levels are DEBUG, "
            "ERROR, FATAL, INFO, TRACE, WARN",
        ),
        ("1", ("nope", SET, "INFO"), ErrorCode.INVALID_CONFIG, "Logger nope does not exist!"),
        ("1", ("nope", DELETE, None), ErrorCode.INVALID_CONFIG, "Logger nope does not exist!"),
        (
            "1",
            ("root", DELETE, None),
            ErrorCode.INVALID_REQUEST,
            "Removing the log level of the root logger is not allowed",
        ),
        (
            "1",
            ("root", APPEND, "INFO"),
            ErrorCode.INVALID_REQUEST,
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
        ("1", ("root", SET, None), ErrorCode.INVALID_REQUEST, "Null value not supported for : root"),
        (
            "2",
            ("root", SET, "INFO"),
            ErrorCode.INVALID_REQUEST,
            "Unexpected node id. Expected 1, but received 2",
        ),
        ("", ("root", SET, "INFO"), ErrorCode.INVALID_REQUEST, "Node id must be an integer, but it is: "),
    ],
)
async def test_changes_of_loggers_that_are_refused(
    alter: Any, name: str, change: Change, code: ErrorCode, message: str
) -> None:
    assert await alter(resource(8, name, change)) == [(code, message)]
