"""AlterConfigs, versions 0 to 2: replace all settings of a resource; what is not named goes back to its default.

Deprecated in Kafka since IncrementalAlterConfigs (KIP-339) and still spoken by old clients. Version 2 is flexible.
Topics and brokers; loggers cannot be changed this way, groups and client metrics cannot be changed yet. Each
resource succeeds or fails by itself. A resource that is in the request twice fails (Kafka's broker never answers).
"""

from collections.abc import Mapping

from leafcuttr.handlers.config_resources import alter, change_each, check_names
from leafcuttr.handlers.context import RequestContext
from leafcuttr.runtime.pacing import Pace
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


async def handle(
    broker: Broker, context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    outcomes = await change_each(
        request.resources,
        lambda resource: _replace(broker, context, resource, validate_only=request.validate_only),
    )
    return AlterConfigsResponse(
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


async def _replace(
    broker: Broker, context: RequestContext, resource: AlterConfigsResource, *, validate_only: bool
) -> None:
    names = [config.name for config in resource.configs]
    check_names(names, [config.name for config in resource.configs if config.value is None])
    texts = {config.name: config.value for config in resource.configs if config.value is not None}

    def edit(_: Mapping[str, str]) -> Mapping[str, str]:
        return texts

    await alter(
        broker,
        context,
        resource.resource_type,
        resource.resource_name,
        names,
        edit,
        validate_only=validate_only,
    )
