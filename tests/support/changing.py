"""Changes of broker settings while the broker runs, for this broker or for all."""

from __future__ import annotations

from leafcuttr.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from support import librdkafka
from support.wire_client import WireClient

SET, DELETE = 0, 1
BROKER = 4


def alter_all_brokers(address: str, settings: dict[str, str | None]) -> None:
    """Change a default of all brokers; librdkafka cannot name them all, Java's admin can."""
    configs = [
        AlterableConfig(name=name, value=value, config_operation=DELETE if value is None else SET)
        for name, value in settings.items()
    ]
    resource = AlterConfigsResource(resource_type=BROKER, resource_name="", configs=configs)
    with WireClient(address) as client:
        answer = client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    outcome = [(each.error_code, each.error_message) for each in answer.responses]
    assert outcome == [(0, None)], outcome


def alter_broker(address: str, scope: str, settings: dict[str, str | None]) -> None:
    """Change settings of this broker ("1") or of all brokers ("") while it runs; None takes one back."""
    if scope:
        librdkafka.alter(address, "broker", scope, settings)
    else:
        alter_all_brokers(address, settings)
