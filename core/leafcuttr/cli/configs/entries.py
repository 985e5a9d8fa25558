"""The settings of topics, brokers and groups: read and changed, through librdkafka or through our own client.

librdkafka has neither broker defaults nor loggers nor client metrics.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from leafcuttr.cli.common.failures import Failure, reason
from leafcuttr.cli.common.librdkafka.admin import Admin
from leafcuttr.cli.common.target import Target
from leafcuttr.cli.common.wire_client.cluster import ClusterClient
from leafcuttr.cli.common.wire_client.connection import NotOffered
from leafcuttr.cli.configs.entity_types import ENTITY_TYPES, SOURCES, EntityType, by_librdkafka


class DescribedConfig(NamedTuple):
    """One setting. `value` is None for a secret."""

    name: str
    value: str | None
    source: str
    read_only: bool
    sensitive: bool


class ConfigOperation(IntEnum):
    """What IncrementalAlterConfigs can do to a setting."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    """One change of one setting; DELETE has no value."""

    operation: ConfigOperation
    name: str
    value: str | None


def names(target: Target, entity_type: EntityType) -> list[str]:
    """Every entity of the type whose settings can be described. Raises Failure."""
    if entity_type.librdkafka:
        admin = Admin(target)
        if entity_type.name == "topic":
            return sorted(name for name in admin.topics() if not name.startswith("__"))
        if entity_type.name == "broker":
            return [str(node) for node in admin.brokers()]
        found = {
            group.group_id for group in admin.answer(admin.client.list_consumer_groups(**admin.wait)).valid
        }
        # A group can have settings before it has members; only our own client can list those.
        return sorted(found | _listed(target, entity_type))
    with ClusterClient(target) as cluster:
        brokers = [str(broker) for broker in cluster.brokers()]
    return brokers if entity_type.name == "broker-logger" else sorted(_listed(target, entity_type))


def _listed(target: Target, entity_type: EntityType) -> set[str]:
    from leafcuttr.wire.messages.list_config_resources import ListConfigResourcesRequest

    with ClusterClient(target) as cluster:
        request = ListConfigResourcesRequest(resource_types=[entity_type.resource])
        try:
            answer = cluster.first.send(request, at_least=0 if entity_type.name == "client-metrics" else 1)
        except NotOffered:
            return set()
    return {
        each.resource_name for each in answer.config_resources if each.resource_type == entity_type.resource
    }


def describe(
    target: Target, entity_type: EntityType, wanted: Sequence[str], default: bool
) -> dict[str, list[DescribedConfig] | Failure]:
    """The settings of each entity by name, "" for the default, in the order of their names; or why there are none."""
    if by_librdkafka(entity_type, default):
        return _through_librdkafka(Admin(target), entity_type, wanted)
    with ClusterClient(target) as cluster:
        return {name: _through_wire(cluster, entity_type, name) for name in ([""] if default else wanted)}


def _through_librdkafka(
    admin: Admin, entity_type: EntityType, wanted: Sequence[str]
) -> dict[str, list[DescribedConfig] | Failure]:
    if not wanted:
        return {}
    if entity_type.name == "broker":
        _check_brokers(admin, wanted)
    # Each broker describes itself, and librdkafka sends to one a call.
    calls = [[name] for name in wanted] if entity_type.name == "broker" else [wanted]
    found: dict[str, list[DescribedConfig] | Failure] = {}
    for batch in calls:
        futures = admin.client.describe_configs(
            [_resource(entity_type, name) for name in batch], **admin.wait
        )
        for resource, future in futures.items():
            try:
                found[resource.name] = [
                    DescribedConfig(
                        name,
                        each.value,
                        _source(each.source),
                        bool(each.is_read_only),
                        bool(each.is_sensitive),
                    )
                    for name, each in sorted(admin.answer(future).items())
                ]
            except Failure as failure:
                found[resource.name] = failure
    return {name: found[name] for name in wanted}


def _through_wire(
    cluster: ClusterClient, entity_type: EntityType, name: str
) -> list[DescribedConfig] | Failure:
    from leafcuttr.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource

    resource = DescribeConfigsResource(
        resource_type=entity_type.resource, resource_name=name, configuration_keys=None
    )
    (found,) = _send(cluster, entity_type, name, DescribeConfigsRequest(resources=[resource])).results
    if found.error_code:
        return Failure(reason(found.error_code, found.error_message))
    return sorted(
        DescribedConfig(each.name, each.value, _source(each.config_source), each.read_only, each.is_sensitive)
        for each in found.configs
    )


def alter(
    target: Target, entity_type: EntityType, name: str, changes: Sequence[Change], dry_run: bool
) -> None:
    """Make the changes of one entity, all or none; name "" is the default. Raises Failure."""
    if by_librdkafka(entity_type, default=not name):
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry

        admin = Admin(target)
        if entity_type.name == "broker":
            _check_brokers(admin, [name])
        resource = _resource(entity_type, name)
        for change in changes:
            how = AlterConfigOpType(int(change.operation))
            resource.add_incremental_config(ConfigEntry(change.name, change.value, incremental_operation=how))
        futures = admin.client.incremental_alter_configs([resource], validate_only=dry_run, **admin.wait)
        admin.answer(next(iter(futures.values())))
        return
    from leafcuttr.wire.messages.incremental_alter_configs import (
        AlterableConfig,
        AlterConfigsResource,
        IncrementalAlterConfigsRequest,
    )

    configs = [
        AlterableConfig(name=change.name, config_operation=change.operation, value=change.value)
        for change in changes
    ]
    changed = AlterConfigsResource(resource_type=entity_type.resource, resource_name=name, configs=configs)
    with ClusterClient(target) as cluster:
        request = IncrementalAlterConfigsRequest(resources=[changed], validate_only=dry_run)
        (answer,) = _send(cluster, entity_type, name, request).responses
    if answer.error_code:
        raise Failure(reason(answer.error_code, answer.error_message))


def _send(cluster: ClusterClient, entity_type: EntityType, name: str, request: Any) -> Any:
    # Loggers and the settings of one broker are that broker's own business; any broker answers for the rest.
    if entity_type in (ENTITY_TYPES["broker"], ENTITY_TYPES["broker-logger"]) and name:
        if not name.isascii() or not name.isdigit():
            raise Failure(f"there is no broker {name}")
        return cluster.send(int(name), request)
    return cluster.first.send(request)


def _resource(entity_type: EntityType, name: str) -> Any:
    from confluent_kafka.admin import ConfigResource, ResourceType

    try:
        return ConfigResource(ResourceType[entity_type.name.upper()], name)
    except ValueError:
        raise Failure(f"{name!r} is no {entity_type.name}") from None


def _check_brokers(admin: Admin, wanted: Sequence[str]) -> None:
    # librdkafka would wait for a broker that does not exist until its time is over.
    known = [str(broker) for broker in admin.brokers()]
    for name in wanted:
        if name not in known:
            raise Failure(f"there is no broker {name}; there are {', '.join(known)}")


def _source(number: int) -> str:
    return SOURCES.get(int(number), "unknown")
