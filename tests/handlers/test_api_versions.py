"""ApiVersions: the APIs of this broker, in every version; what a client says of its software."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers import api_versions
from leafcuttr.state.broker import Broker
from leafcuttr.wire.api import APIS, ApiKey
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest

SOFTWARE = ApiVersionsRequest(client_software_name="test-client", client_software_version="1.2.3")


@pytest.mark.parametrize("version", range(5))
async def test_every_version_lists_every_api(send: Any, version: int) -> None:
    answer = await send(SOFTWARE, version)
    assert answer.error_code == ErrorCode.NONE
    listed = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert listed == {key: (api.advertised_min_version, api.max_version) for key, api in APIS.items()}
    assert listed[ApiKey.PRODUCE][0] == 0, "librdkafka has to see that (KAFKA-18659)"


@pytest.mark.parametrize("version", range(5))
async def test_features(broker: Broker, send: Any, version: int) -> None:
    """Version 3 must not name one that begins at 0 (KAFKA-17011)."""
    answer = await send(SOFTWARE, version)
    supported = {each.name: each.min_version for each in answer.supported_features}
    finalized = {each.name: each.max_version_level for each in answer.finalized_features}
    if version < 3:
        assert (supported, finalized, answer.finalized_features_epoch) == ({}, {}, -1)
        return
    assert supported == ({"transaction.version": 0} if version >= 4 else {})
    assert finalized == {name: level for name, level in broker.features.levels.items() if level > 0}
    assert answer.finalized_features_epoch == broker.metadata.changes
    await broker.topics.create("t", 1, {})
    assert (await send(SOFTWARE, version)).finalized_features_epoch > answer.finalized_features_epoch


@pytest.mark.parametrize(
    ("name", "number", "sound"),
    [
        ("librdkafka", "2.0.0-rc.1", True),
        ("a", "1", True),
        ("", "1", False),
        ("a", "", False),
        ("-a", "1", False),
        ("a.", "1", False),
        ("a b", "1", False),
        ("a", "1\n", False),
        ("é", "1", False),
    ],
)
async def test_names_and_versions_of_software(send: Any, name: str, number: str, sound: bool) -> None:
    """As KIP-511 has it; versions before 3 have no such fields."""
    request = ApiVersionsRequest(client_software_name=name, client_software_version=number)
    for version in (3, 4):
        answer = await send(request, version)
        assert answer.error_code == (ErrorCode.NONE if sound else ErrorCode.INVALID_REQUEST)
        assert bool(answer.api_keys) == sound
    assert (await send(request, 2)).error_code == ErrorCode.NONE


def test_the_answer_to_a_version_that_is_too_new() -> None:
    answer = api_versions.unsupported_version()
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(each.api_key, each.min_version, each.max_version) for each in answer.api_keys] == [(18, 0, 4)]
