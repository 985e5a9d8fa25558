"""ListConfigResources: what has settings."""

from typing import Any

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.state.broker import Broker
from leafcuttr.wire.messages.list_config_resources import ListConfigResourcesRequest


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ([], [(8, "1"), (4, "1"), (2, "t")]),
        ([2], [(2, "t")]),
        ([4, 2], [(4, "1"), (2, "t")]),
        ([2, 4, 32, 16], [(4, "1"), (2, "t")]),
        ([8], [(8, "1")]),
        ([16, 32], []),
        ([2, 2], [(2, "t")]),
    ],
)
async def test_by_kind(broker: Broker, send: Any, kinds: list[int], expected: list[tuple[int, str]]) -> None:
    await broker.topics.create("t", 1, {})
    answer = await send(ListConfigResourcesRequest(resource_types=kinds), 1)
    assert answer.error_code == 0
    assert [(found.resource_type, found.resource_name) for found in answer.config_resources] == expected


@pytest.mark.parametrize("kind", [0, 1, 77])
async def test_a_kind_that_does_not_exist(send: Any, kind: int) -> None:
    answer = await send(ListConfigResourcesRequest(resource_types=[2, kind]), 1)
    assert (answer.error_code, list(answer.config_resources)) == (ErrorCode.UNSUPPORTED_VERSION, [])


async def test_version_0_lists_client_metrics_only(broker: Broker, send: Any) -> None:
    await broker.topics.create("t", 1, {})
    answer = await send(ListConfigResourcesRequest(), 0)
    assert (answer.error_code, list(answer.config_resources)) == (0, [])
