"""A cluster over the network as a peer: what all calls share."""

from __future__ import annotations

import logging

import pytest

from leafcuttr.client.errors import ClientSettingError
from leafcuttr.client.peer import open_remote_peer
from leafcuttr.errors import BrokerError, RequestTimedOut
from leafcuttr.runtime.clock import SystemClock
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.peers import Peer
from leafcuttr_sdk.types import TopicPartition
from support.remote_peers import peer_at
from support.waiting import free_port


async def test_what_it_is(peer: Peer, address: str) -> None:
    assert peer.name == address
    assert not peer.in_process
    assert peer.trouble is None
    assert await peer.cluster_id() == await peer.cluster_id()
    assert len(await peer.cluster_id()) == 22
    assert await peer.node_count() == 1
    assert await peer.has_transactions()


async def test_a_cluster_that_is_away_is_said_by_every_call() -> None:
    address = f"127.0.0.1:{free_port()}"
    tp = TopicPartition("t", 0)
    async with peer_at(address, request_timeout_ms="60", delivery_timeout_ms="60") as peer:
        calls = (
            peer.cluster_id,
            peer.node_count,
            peer.has_transactions,
            peer.topics,
            peer.groups,
            lambda: peer.topic_configs(["t"]),
            lambda: peer.create_topic("t", partitions=1),
            lambda: peer.alter_topic("t", {"a": "b"}),
            lambda: peer.add_partitions("t", 2),
            lambda: peer.offsets({tp: -1}),
            lambda: peer.epoch_end({tp: 0}),
            lambda: peer.group_is_active("g"),
            lambda: peer.committed("g"),
            lambda: peer.commit("g", {tp: CommittedOffset(1)}),
        )
        for call in calls:
            with pytest.raises(RequestTimedOut, match=f"no broker answers at {address}"):
                await call()
        with pytest.raises(RequestTimedOut, match=f"no broker answers at {address}"):
            async with peer.transaction("x"):
                pass
        assert peer.trouble == f"no broker answers at {address}"


async def test_a_cluster_that_comes_later_is_reached(address: str) -> None:
    away = f"127.0.0.1:{free_port()}"
    async with peer_at(f"{away},{address}") as peer:
        assert await peer.node_count() == 1
        assert peer.trouble is None


async def test_settings_that_cannot_be_used_and_those_that_mean_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(ClientSettingError, match=r"request\.timeout\.ms=soon"):
        async with peer_at("h:1", request_timeout_ms="soon"):
            pass
    with caplog.at_level(logging.WARNING):
        properties = {"bootstrap.servers": "h:1", "bootstrap.sevrers": "x"}
        async with open_remote_peer(
            properties, clock=SystemClock(), logger=logging.getLogger("test")
        ) as peer:
            assert peer.name == "h:1"
    assert [each.getMessage() for each in caplog.records] == [
        "the client of h:1 does not know the settings bootstrap.sevrers"
    ]


async def test_errors_are_the_family_of_the_sdk(peer: Peer) -> None:
    with pytest.raises(BrokerError) as raised:
        await peer.create_topic("a/b", partitions=1)
    assert raised.value.code.name == "INVALID_TOPIC_EXCEPTION"
    assert "a/b" in str(raised.value)
