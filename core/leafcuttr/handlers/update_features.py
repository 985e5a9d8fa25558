"""UpdateFeatures, versions 0 to 2: finalize feature levels (KIP-584).

No feature of this broker has levels, so ApiVersions lists none and every update names an unknown one; the
words of the refusals are those of Kafka's controller. Version 1 replaced the permission to downgrade by the
kind of upgrade and added `validate_only`, 2 left out the result of each feature (KIP-1022). An empty request
succeeds.
"""

from typing import Final

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3


def handle(broker: Broker, context: RequestContext, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    for update in request.feature_updates:
        reason = (
            f"Invalid update version {update.max_version_level} for feature {update.feature}. "
            f"{_refusal(broker.node_id, context.api_version, update)}"
        )
        return UpdateFeaturesResponse(
            error_code=ErrorCode.INVALID_UPDATE_VERSION,
            error_message="The update failed for all features since the following feature had an error: "
            + reason,
        )
    return UpdateFeaturesResponse(error_message=None)


def _refusal(node_id: int, version: int, update: FeatureUpdateKey) -> str:
    if version >= 1 and update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    if update.max_version_level < 0:
        return "A feature version cannot be less than 0."
    if update.max_version_level == 0:
        return f"Feature {update.feature} not found."
    return f"Local controller {node_id} does not support this feature."
