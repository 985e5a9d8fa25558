"""UpdateFeatures, versions 0 to 2: finalize feature levels (KIP-584).

The one feature with levels here is `transaction.version`; other names are unknown. The words of the refusals are those
of Kafka's controller. Version 1 replaced the permission to downgrade by the kind of upgrade and added `validate_only`,
2 left out the result of each feature (KIP-1022). One refusal and nothing is changed; an empty request succeeds.
"""

from typing import Final

import trio

from leafcuttr.errors import ErrorCode, StorageError
from leafcuttr.handlers.access import ALTER_CLUSTER
from leafcuttr.handlers.access import refusal as access_refusal
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.state.features import FEATURES
from leafcuttr.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE: Final = 1
SAFE_DOWNGRADE: Final = 2
UNSAFE_DOWNGRADE: Final = 3


async def handle(
    broker: Broker, context: RequestContext, request: UpdateFeaturesRequest
) -> UpdateFeaturesResponse:
    if (denied := access_refusal(broker, context, ALTER_CLUSTER)) is not None:
        return UpdateFeaturesResponse(error_code=denied.code, error_message=denied.message)
    for update in request.feature_updates:
        refusal = _refusal(broker, context.api_version, update)
        if refusal is None:
            continue
        reason = f"Invalid update version {update.max_version_level} for feature {update.feature}. {refusal}"
        return UpdateFeaturesResponse(
            error_code=ErrorCode.INVALID_UPDATE_VERSION,
            error_message="The update failed for all features since the following feature had an error: "
            + reason,
        )
    levels = {update.feature: update.max_version_level for update in request.feature_updates}
    if levels and not (context.api_version >= 1 and request.validate_only):
        try:
            await trio.to_thread.run_sync(broker.features.store, levels)
        except StorageError as error:
            return UpdateFeaturesResponse(error_code=error.code, error_message=error.message)
        broker.features.publish(levels)
    return UpdateFeaturesResponse(
        error_message=None,
        results=[UpdatableFeatureResult(feature=name, error_message=None) for name in levels],
    )


def _refusal(broker: Broker, version: int, update: FeatureUpdateKey) -> str | None:
    if version >= 1 and update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        return "The controller does not support the given upgrade type."
    level = update.max_version_level
    if level < 0:
        return "A feature version cannot be less than 0."
    known = FEATURES.get(update.feature)
    if known is None:
        if level == 0:
            return f"Feature {update.feature} not found."
        return f"Local controller {broker.node_id} does not support this feature."
    if level > known.highest:
        return f"Local controller {broker.node_id} only supports versions {known.lowest}-{known.highest}"
    current = broker.features.levels[update.feature]
    downgrades = update.allow_downgrade if version == 0 else update.upgrade_type != UPGRADE
    if level < current and not downgrades:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
            "downgrade."
        )
    if level > current and downgrades and version >= 1:
        return "Can't downgrade to a newer version."
    return None
