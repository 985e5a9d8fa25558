"""A cluster over the network as a peer: what all calls share."""

from __future__ import annotations

import logging
import random
from contextlib import suppress
from pathlib import Path

import pytest
import trio

from leafcuttr.client.errors import ClientSettingError
from leafcuttr.client.peer import open_remote_peer
from leafcuttr.errors import BrokerError, RequestTimedOut
from leafcuttr.runtime.clock import SystemClock
from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.peers import Peer
from leafcuttr_sdk.records import Appended
from leafcuttr_sdk.types import TopicPartition
from support.broker_process import running_broker
from support.cutting_proxy import CuttingProxy
from support.remote_peers import new_batch, peer_at
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


class Mangler:
    """Changes some bytes of what a broker answers, behind the length and the correlation id of an answer."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.changed = 0

    def __call__(self, data: bytes) -> bytes:
        if len(data) < 10 or self.random.random() < 0.4:
            return data
        mangled = bytearray(data)
        for _ in range(self.random.randint(1, 3)):
            place = self.random.randrange(8, len(mangled))
            mangled[place] = self.random.choice([0, 1, 0x7F, 0x80, 0xFF, self.random.randrange(256)])
        self.changed += 1
        return bytes(mangled)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 60))])
async def test_whatever_a_broker_answers_calls_end_and_raise_what_they_say(tmp_path: Path, seed: int) -> None:
    proxy = CuttingProxy()
    tp = TopicPartition("t", 0)
    with running_broker(tmp_path, {"advertised.listeners": f"PLAINTEXT://{proxy.address}"}) as broker:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(proxy.serve, broker.port)
            times = {"request_timeout_ms": "150", "delivery_timeout_ms": "200", "metadata_max_age_ms": "50"}
            async with peer_at(proxy.address, request_timeout_ms="5000") as peer:
                await peer.create_topic("t", partitions=2)
                await peer.commit("g", {tp: CommittedOffset(1)})
            proxy.mangle = mangler = Mangler(seed)
            async with peer_at(proxy.address, **times) as peer, trio.open_nursery() as work:
                for job in (append, read, write_transactions, have_claim, look):
                    work.start_soon(job, peer, tp)
            assert mangler.changed > 10
            nursery.cancel_scope.cancel()


async def append(peer: Peer, tp: TopicPartition) -> None:
    async with peer.appender() as appender:
        for number in range(10):
            for answer in await appender.append([new_batch(tp, b"%d" % number)]):
                assert isinstance(answer, Appended | BrokerError)


async def read(peer: Peer, tp: TopicPartition) -> None:
    with trio.move_on_after(2):
        async with peer.reader() as reader:
            while True:
                reader.assign({tp: 0})
                for found in await reader.read():
                    assert found.error is None or isinstance(found.error, BrokerError)


async def write_transactions(peer: Peer, tp: TopicPartition) -> None:
    for number in range(5):
        try:
            async with peer.transaction("x") as producer:
                for _ in range(3):
                    async with producer.begin() as transaction:
                        await transaction.append([new_batch(tp, b"%d" % number)])
                        await transaction.commit_offsets("g", {tp: CommittedOffset(number)})
        except BrokerError:
            pass


async def have_claim(peer: Peer, tp: TopicPartition) -> None:
    for _ in range(5):
        with trio.move_on_after(0.3), suppress(BrokerError):
            async with peer.claim(f"c-{tp}", session_timeout_ms=6000):
                await trio.sleep(0.05)


async def look(peer: Peer, tp: TopicPartition) -> None:
    calls = (
        peer.cluster_id,
        peer.node_count,
        peer.has_transactions,
        peer.topics,
        peer.groups,
        lambda: peer.topic_configs([tp.topic]),
        lambda: peer.alter_topic(tp.topic, {"retention.ms": "100000"}),
        lambda: peer.offsets({tp: -1}),
        lambda: peer.offsets({tp: 5}),
        lambda: peer.epoch_end({tp: 0}),
        lambda: peer.group_is_active("g"),
        lambda: peer.committed("g"),
        lambda: peer.commit("g", {tp: CommittedOffset(1)}),
    )
    for _ in range(3):
        for call in calls:
            with suppress(BrokerError):
                await call()
