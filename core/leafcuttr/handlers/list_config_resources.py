"""ListConfigResources, versions 0 and 1: what has settings that can be described (KIP-1142).

Version 0, once ListClientMetricsResources (KIP-714), requests client metrics only, and there are none. Version 1
requests kinds; none means all. They are answered in Kafka's order, groups first and topics last. A kind that does not
exist makes the whole answer UNSUPPORTED_VERSION. Groups show only where they override something, which they cannot do
yet.
"""

from collections.abc import Iterable

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.access import DESCRIBE_CLUSTER_CONFIGS, refusal
from leafcuttr.handlers.config_resources import ConfigResourceType, is_known
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)


def handle(
    broker: Broker, context: RequestContext, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    if (refused := refusal(broker, context, DESCRIBE_CLUSTER_CONFIGS)) is not None:
        return ListConfigResourcesResponse(error_code=refused.code)
    if context.api_version == 0:
        return ListConfigResourcesResponse()
    if not all(is_known(kind) for kind in request.resource_types):
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    kinds = frozenset(request.resource_types) or frozenset(ConfigResourceType)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(resource_name=name, resource_type=kind)
            for kind in sorted(kinds, reverse=True)
            for name in _names(broker, kind)
        ]
    )


def _names(broker: Broker, kind: int) -> Iterable[str]:
    if kind == ConfigResourceType.TOPIC:
        return broker.topics.by_name
    if kind in (ConfigResourceType.BROKER, ConfigResourceType.BROKER_LOGGER):
        return (str(broker.node_id),)
    return ()
