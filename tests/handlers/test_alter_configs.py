"""AlterConfigs: everything of a resource is replaced."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource

OK = (0, None)


def resource(kind: int, name: str, *configs: tuple[str, str | None]) -> AlterConfigsResource:
    return AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[AlterableConfig(name=key, value=value) for key, value in configs],
    )


@pytest.fixture
async def alter(broker: Broker, send: Any) -> Any:
    await broker.topics.create("t", 1, {"retention.ms": "5"})

    async def alter(
        *resources: AlterConfigsResource, validate_only: bool = False, version: int = 2
    ) -> list[tuple[int, str | None]]:
        answer = await send(AlterConfigsRequest(resources=resources, validate_only=validate_only), version)
        return [(r.error_code, r.error_message) for r in answer.responses]

    return alter


def overrides(broker: Broker) -> dict[str, str]:
    return dict(broker.topics.by_name["t"].overrides)


@pytest.mark.parametrize("version", range(3))
async def test_what_is_not_named_goes(broker: Broker, alter: Any, version: int) -> None:
    assert await alter(resource(2, "t", ("segment.ms", "1000")), version=version) == [OK]
    assert overrides(broker) == {"segment.ms": "1000"}
    assert await alter(resource(2, "t"), version=version) == [OK]
    assert overrides(broker) == {}


async def test_brokers_and_all_brokers(broker: Broker, alter: Any) -> None:
    assert await alter(resource(4, "1", ("log.retention.ms", "777"), ("foo.bar", "5"))) == [OK]
    least = ("min.insync.replicas", "1")
    assert await alter(resource(4, "", ("log.retention.ms", "888"), least)) == [OK]
    assert broker.settings.int("log.retention.ms") == 777
    assert await alter(resource(4, "1")) == [OK]
    assert broker.settings.int("log.retention.ms") == 888
    assert await alter(resource(4, "", least)) == [OK]
    assert broker.settings.value("log.retention.ms") is None


@pytest.mark.parametrize("validate_only", [False, True])
async def test_min_insync_replicas_of_all_brokers_has_to_be_named(
    broker: Broker, alter: Any, validate_only: bool
) -> None:
    words = "min.insync.replicas cannot be removed while ELR is enabled."
    for settings in ((), (("log.retention.ms", "888"),)):
        answer = await alter(resource(4, "", *settings), validate_only=validate_only)
        assert answer == [(40, f"Cluster-level {words}")]
    assert dict(broker.dynamic_settings.texts("")) == {"min.insync.replicas": "1"}
    assert await alter(resource(4, "1", ("min.insync.replicas", "1")), validate_only=validate_only) == [
        (40, "Broker-level min.insync.replicas cannot be altered while ELR is enabled.")
    ]
    assert broker.settings.dynamic() == {}


async def test_validating_changes_nothing(broker: Broker, alter: Any) -> None:
    assert await alter(resource(2, "t", ("segment.ms", "1000")), validate_only=True) == [OK]
    assert overrides(broker) == {"retention.ms": "5"}


@pytest.mark.parametrize(
    ("requested", "code", "message"),
    [
        (resource(2, "t", ("segment.ms", None)), 42, "Null value not supported for : segment.ms"),
        (resource(2, "t", ("nope", "1")), 40, "Unknown topic config name: nope"),
        (
            resource(2, "t", ("retention.ms", "x")),
            40,
            "Invalid value x for configuration retention.ms: Not a number of type LONG",
        ),
        (
            resource(2, "t", ("retention.ms", "1"), ("retention.ms", "2")),
            42,
            "Error due to duplicate config keys",
        ),
        (resource(2, "nope", ("retention.ms", "1")), 3, "The topic 'nope' does not exist."),
        (resource(2, ""), 42, "Default topic resources are not allowed."),
        (resource(77, ""), 42, "Unknown resource type 77"),
        (resource(8, "1", ("root", "INFO")), 42, "Unknown resource type 8"),
        (resource(4, "1", ("node.id", "1")), 42, "Cannot update these configs dynamically: [node.id]"),
        (resource(4, "x"), 42, "Node id must be an integer, but it is: x"),
        (resource(4, "2"), 42, "Unexpected broker id, expected 1, but received 2"),
        (resource(32, ""), 42, "Default group resources are not allowed."),
    ],
)
async def test_refused(
    broker: Broker, alter: Any, requested: AlterConfigsResource, code: int, message: str
) -> None:
    assert await alter(requested) == [(code, message)]
    assert overrides(broker) == {"retention.ms": "5"}


async def test_a_resource_may_come_once(broker: Broker, alter: Any) -> None:
    twice = (ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    requested = resource(2, "t", ("segment.ms", "1"))
    assert await alter(requested, requested) == [twice, twice]
    assert overrides(broker) == {"retention.ms": "5"}
