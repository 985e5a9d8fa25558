"""What this broker speaks; the first request of most clients.

The answer's header is always version 0, and to a request of a version that is not served the answer is
UNSUPPORTED_VERSION in a body of version 0, with the versions of ApiVersions in it (KIP-511).

Versions:
- 3: flexible; name and version of the client; features in tagged fields (KIP-584).
- 4: a feature may begin at 0 (KAFKA-17011).
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, INT16, INT32, INT64, STRING, array, field, message, struct


@message("0-4", flexible="3+")
class ApiVersionsRequest:
    client_software_name: str = field(STRING, "3+", ignorable=True)
    client_software_version: str = field(STRING, "3+", ignorable=True)


@struct
class ApiVersion:
    api_key: int = field(INT16, "0+")
    min_version: int = field(INT16, "0+")
    max_version: int = field(INT16, "0+")


@struct
class SupportedFeatureKey:
    name: str = field(STRING, "3+")
    min_version: int = field(INT16, "3+")
    max_version: int = field(INT16, "3+")


@struct
class FinalizedFeatureKey:
    name: str = field(STRING, "3+")
    max_version_level: int = field(INT16, "3+")
    min_version_level: int = field(INT16, "3+")


@message("0-4", flexible="3+")
class ApiVersionsResponse:
    error_code: int = field(INT16, "0+")
    api_keys: Sequence[ApiVersion] = field(array(ApiVersion), "0+")
    throttle_time_ms: int = field(INT32, "1+", ignorable=True)
    supported_features: Sequence[SupportedFeatureKey] = field(
        array(SupportedFeatureKey), "3+", tag=0, tagged="3+", ignorable=True
    )
    finalized_features_epoch: int = field(INT64, "3+", default=-1, tag=1, tagged="3+", ignorable=True)
    finalized_features: Sequence[FinalizedFeatureKey] = field(
        array(FinalizedFeatureKey), "3+", tag=2, tagged="3+", ignorable=True
    )
    zk_migration_ready: bool = field(BOOL, "3+", tag=3, tagged="3+", ignorable=True)
