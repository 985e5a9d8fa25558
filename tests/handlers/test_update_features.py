"""UpdateFeatures: no feature can be updated."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest


@pytest.mark.parametrize(
    ("version", "level", "kind", "reason"),
    [
        (0, 1, 1, "Local controller 1 does not support this feature."),
        (1, 1, 1, "Local controller 1 does not support this feature."),
        (2, 1, 2, "Local controller 1 does not support this feature."),
        (2, 0, 1, "Feature nope not found."),
        (2, -1, 1, "A feature version cannot be less than 0."),
        (2, 1, 9, "The controller does not support the given upgrade type."),
    ],
)
async def test_no_feature_can_be_updated(send: Any, version: int, level: int, kind: int, reason: str) -> None:
    update = FeatureUpdateKey(feature="nope", max_version_level=level, upgrade_type=kind)
    answer = await send(UpdateFeaturesRequest(feature_updates=[update]), version)
    assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
    assert answer.error_message == (
        "The update failed for all features since the following feature had an error: "
        f"Invalid update version {level} for feature nope. {reason}"
    )
    assert list(answer.results) == []


@pytest.mark.parametrize("version", range(3))
async def test_updating_nothing_succeeds(send: Any, version: int) -> None:
    answer = await send(UpdateFeaturesRequest(), version)
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
