"""Requests that are tried again until they are answered, at a real broker."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from leafcuttr.client.calls import Calls
from leafcuttr.client.cluster import open_cluster
from leafcuttr.client.coordinators import CoordinatorKind
from leafcuttr.client.leaders import Led, look_up
from leafcuttr.client.properties import client_settings
from leafcuttr.errors import BrokerError, ErrorCode, RequestTimedOut
from leafcuttr.runtime.clock import SystemClock
from leafcuttr.wire.messages.list_groups import ListGroupsRequest
from leafcuttr.wire.messages.metadata import MetadataRequest
from leafcuttr_sdk.types import TopicPartition


@pytest.fixture
async def calls(address: str) -> AsyncIterator[Calls]:
    settings = client_settings(
        {"bootstrap.servers": address, "retry.backoff.ms": "5", "request.timeout.ms": "2000"}
    )
    async with open_cluster(settings, clock=SystemClock()) as cluster:
        yield Calls(cluster)


async def test_an_answer_that_leaves_out_what_was_requested(calls: Calls) -> None:
    with pytest.raises(
        RequestTimedOut, match="a broker's MetadataResponse leaves out what it was requested for"
    ):
        await calls.any_broker(
            MetadataRequest(topics=[]), lambda response: (response.topics[0].error_code, None)
        )


async def test_codes_that_pass_are_tried_again_and_others_raised(calls: Calls) -> None:
    codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR, ErrorCode.NONE]
    asked = codes.copy()
    answer = await calls.coordinator(
        CoordinatorKind.GROUP, "g", ListGroupsRequest(), lambda _: (asked.pop(0), "not yet")
    )
    assert not answer.error_code
    assert asked == []
    asked = [ErrorCode.NOT_CONTROLLER, ErrorCode.NONE]
    await calls.controller(MetadataRequest(topics=[]), lambda _: (asked.pop(0), None))
    assert asked == []
    with pytest.raises(BrokerError, match="no") as raised:
        await calls.coordinator(
            CoordinatorKind.GROUP,
            "g",
            ListGroupsRequest(),
            lambda _: (ErrorCode.GROUP_AUTHORIZATION_FAILED, "no"),
        )
    assert raised.value.code is ErrorCode.GROUP_AUTHORIZATION_FAILED


async def test_versions_are_bounded(calls: Calls) -> None:
    answer = await calls.any_broker(MetadataRequest(topics=[]), at_most=7)
    assert answer.cluster_authorized_operations == -(2**31)  # the default: not in that version
    with pytest.raises(RequestTimedOut, match=r"of Metadata; this needs \d+ to 7"):
        await calls.any_broker(MetadataRequest(topics=[]), at_least=8, at_most=7)


async def test_leaders_with_their_epochs_and_the_ids_of_topics(calls: Calls, topic: str) -> None:
    tps = [TopicPartition(topic, 0), TopicPartition(topic, 9), TopicPartition("nowhere", 0)]
    found = await look_up(calls, tps)
    led = found[tps[0]]
    assert isinstance(led, Led)
    assert led.leader_epoch >= 0
    assert any(led.topic_id)
    for tp in tps[1:]:
        error = found[tp]
        assert isinstance(error, BrokerError)
        assert error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
