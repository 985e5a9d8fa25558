"""IncrementalAlterConfigs, versions 0 and 1: change single settings, the others stay (KIP-339).

SET, DELETE (back to the default), APPEND and SUBTRACT (lists only). Version 1 is flexible. Topics, brokers (an
empty name: all brokers) and this broker's loggers (KIP-412); groups and client metrics cannot be changed yet.
Each resource succeeds or fails by itself and as a whole. `validate_only` checks and changes nothing.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import partial
from typing import Final

from leafcuttr.config.setting import ConfigType, render
from leafcuttr.config.topic import defaults_of
from leafcuttr.errors import BrokerError, InvalidConfig, InvalidRequest
from leafcuttr.handlers import broker_loggers
from leafcuttr.handlers.config_resources import (
    ConfigResourceType,
    alter,
    change_each,
    check_names,
    check_node,
    check_right,
)
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class AlterConfigOp(IntEnum):
    """What is done to a setting (org.apache.kafka.clients.admin.AlterConfigOp.OpType)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


_OPERATIONS: Final[frozenset[int]] = frozenset(AlterConfigOp)


async def handle(
    broker: Broker, context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    outcomes = await change_each(
        request.resources,
        lambda resource: _change(broker, context, resource, validate_only=request.validate_only),
    )
    return IncrementalAlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=error.code if error else 0,
                error_message=error.message if error else None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            async for resource, error in Pace().over(outcomes)
        ]
    )


async def _change(
    broker: Broker, context: RequestContext, resource: AlterConfigsResource, *, validate_only: bool
) -> None:
    kind, configs = resource.resource_type, resource.configs
    nulls = [c.name for c in configs if c.config_operation != AlterConfigOp.DELETE and c.value is None]
    check_names([config.name for config in configs], nulls)
    for config in configs:
        if config.config_operation not in _OPERATIONS:
            # Kafka's broker says so of its own settings; for the others its controller fails without a word.
            if kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
                raise InvalidRequest(f"Unknown operations type {config.config_operation}")
            raise BrokerError
    if kind == ConfigResourceType.BROKER_LOGGER:
        check_right(broker, context, kind, resource.resource_name)
        _change_loggers(broker, resource, validate_only=validate_only)
        return
    await alter(
        broker,
        context,
        kind,
        resource.resource_name,
        [config.name for config in configs if config.config_operation != AlterConfigOp.DELETE],
        partial(
            _edited, broker, configs, None if kind == ConfigResourceType.BROKER else resource.resource_name
        ),
        removed=[config.name for config in configs if config.config_operation == AlterConfigOp.DELETE],
        validate_only=validate_only,
    )


def _edited(
    broker: Broker, configs: Sequence[AlterableConfig], topic: str | None, present: Mapping[str, str]
) -> Mapping[str, str]:
    """The texts of a resource after the changes. Raises InvalidConfig for a list operation on anything else."""
    texts = dict(present)
    for config in configs:
        match config.config_operation:
            case AlterConfigOp.DELETE:
                texts.pop(config.name, None)
            case AlterConfigOp.SET:
                texts[config.name] = config.value or ""
            case _:
                texts[config.name] = _list_changed(broker, topic, texts, config)
    return texts


def _list_changed(
    broker: Broker, topic: str | None, texts: Mapping[str, str], config: AlterableConfig
) -> str:
    settings = broker.settings
    catalog = settings.catalog
    setting = catalog.broker_setting(config.name) if topic is None else catalog.topic_setting(config.name)
    append = config.config_operation == AlterConfigOp.APPEND
    if setting is None or setting.type is not ConfigType.LIST:
        if topic is None:
            word = "append" if append else "subtract"
            raise InvalidConfig(f"Config value {word} is not allowed for config key: {config.name}")
        word = "APPEND" if append else "SUBTRACT"
        raise InvalidConfig(f"Can't {word} to key {config.name} because its type is not LIST.")
    if config.name in texts:
        present = texts[config.name]
    else:
        values = settings.values if topic is None else defaults_of(settings, topic)
        present = render(values.get(config.name)) or ""
    elements = [one.strip() for one in present.split(",") if one.strip()]
    given = [one.strip() for one in (config.value or "").split(",") if one.strip()]
    if append:
        elements += [one for one in given if one not in elements]
    else:
        elements = [one for one in elements if one not in given]
    return ",".join(elements)


def _change_loggers(broker: Broker, resource: AlterConfigsResource, *, validate_only: bool) -> None:
    _check_own_loggers(broker, resource.resource_name)
    for config in resource.configs:
        match config.config_operation:
            case AlterConfigOp.SET:
                broker_loggers.check_level(config.name, config.value or "")
            case AlterConfigOp.DELETE:
                broker_loggers.check_unset(config.name)
            case operation:
                name = AlterConfigOp(operation).name
                raise InvalidRequest(f"{name} operation is not allowed for the BROKER_LOGGER resource")
    if validate_only:
        return
    for config in resource.configs:
        if config.config_operation == AlterConfigOp.SET:
            broker_loggers.set_level(config.name, config.value or "")
        else:
            broker_loggers.unset_level(config.name)


def _check_own_loggers(broker: Broker, name: str) -> None:
    try:
        check_node(broker, name)
    except InvalidRequest as error:
        if "must be" in str(error):
            raise
        raise InvalidRequest(f"Unexpected node id. Expected {broker.node_id}, but received {name}") from None
