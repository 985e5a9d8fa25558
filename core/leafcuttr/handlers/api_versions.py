"""ApiVersions, versions 0 to 4: which APIs and versions this broker speaks.

Version 3 added the client's software name and version (KIP-511) and feature levels (KIP-584). A version that is
too new is answered, not refused: error 35 in a version 0 body, so that a newer client learns what to fall back to;
`unsupported_version` makes that answer. Names and versions that do not match the pattern of KIP-511 are an
INVALID_REQUEST. Only what truly works is listed, with the one exception that Kafka makes: Produce begins at 0
(KAFKA-18659), because librdkafka must see that.
"""

import re
from typing import Final

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers.context import RequestContext
from leafcuttr.state.broker import Broker
from leafcuttr.state.features import FEATURES
from leafcuttr.wire.api import APIS
from leafcuttr.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(broker: Broker, context: RequestContext, request: ApiVersionsRequest) -> ApiVersionsResponse:
    if context.api_version >= 3 and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    if context.api_version >= 3:
        context.client = context.client._replace(
            software_name=request.client_software_name,
            software_version=request.client_software_version,
        )
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=api.key, min_version=api.advertised_min_version, max_version=api.max_version)
            for api in APIS.values()
        ],
        # Before version 4 a feature that begins at 0 must not be named: clients would refuse the answer (KAFKA-17011).
        supported_features=[
            SupportedFeatureKey(name=name, min_version=known.lowest, max_version=known.highest)
            for name, known in FEATURES.items()
            if known.lowest > 0 or context.api_version >= 4
        ],
        finalized_features_epoch=broker.metadata.changes,
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in broker.features.levels.items()
            if level > 0
        ],
    )


def unsupported_version() -> ApiVersionsResponse:
    """The body, to be written as version 0, for an ApiVersions request that is newer than this broker."""
    own = APIS[18]
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[ApiVersion(api_key=own.key, min_version=own.min_version, max_version=own.max_version)],
    )
