"""Change the finalized levels of features (KIP-584).

Flexible from version 0.

Versions:
- 1: `upgrade_type` in place of `allow_downgrade`; `validate_only` (KIP-778).
- 2: no results per feature in the answer.
"""

from collections.abc import Sequence

from leafcuttr.wire.schema import BOOL, INT8, INT16, INT32, STRING, array, field, message, struct


@struct
class FeatureUpdateKey:
    feature: str = field(STRING, "0+")
    max_version_level: int = field(INT16, "0+")
    allow_downgrade: bool = field(BOOL, "0")
    upgrade_type: int = field(INT8, "1+", default=1)


@message("0-2", flexible="0+")
class UpdateFeaturesRequest:
    timeout_ms: int = field(INT32, "0+", default=60000)
    feature_updates: Sequence[FeatureUpdateKey] = field(array(FeatureUpdateKey), "0+")
    validate_only: bool = field(BOOL, "1+")


@struct
class UpdatableFeatureResult:
    feature: str = field(STRING, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")


@message("0-2", flexible="0+")
class UpdateFeaturesResponse:
    throttle_time_ms: int = field(INT32, "0+")
    error_code: int = field(INT16, "0+")
    error_message: str | None = field(STRING, "0+", nullable="0+")
    results: Sequence[UpdatableFeatureResult] = field(array(UpdatableFeatureResult), "0-1", ignorable=True)
