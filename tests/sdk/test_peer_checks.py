"""The check of peers notices what does not keep the contract. A peer that does is checked in tests/client and
tests/plugins/facade/peer; here one of this broker is spoiled, each time in another way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from leafcuttr_sdk import Appended, Broker, NewBatch, TopicPartition
from leafcuttr_sdk.errors import BrokerError
from leafcuttr_sdk.peers import Peer, PeerRead
from leafcuttr_sdk.testing import (
    ContractError,
    RunningBroker,
    check_peer,
    peer_checks,
    peer_trial,
    running_broker,
)
from leafcuttr_sdk.testing.peer_checks import peer_report


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    settings = {"group.initial.rebalance.delay.ms": 0}  # claims are groups
    with running_broker(tmp_path_factory.mktemp("broker"), settings) as running:
        yield running


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that never answers is noticed soon."""
    monkeypatch.setattr(peer_trial, "PATIENCE_S", 6.0)


class Wrapped:
    """Another peer's methods, but for those that are given."""

    def __init__(self, peer: Any, **others: Any) -> None:
        self._peer = peer
        self._others = others

    def __getattr__(self, name: str) -> Any:
        return self._others.get(name) or getattr(self._peer, name)


def found(broker: RunningBroker, spoil: Callable[[Peer], Any], promise: str) -> list[str]:
    """What the check says of this promise."""

    async def check(inside: Broker) -> list[str]:
        async with inside.peer() as peer:
            report = await peer_report(
                spoil(peer), delete_topic=inside.topics.delete, only=frozenset({promise})
            )
        return report.problems

    return broker.call(check)


def appending(how: Callable[[Any, Sequence[NewBatch]], Awaitable[Any]]) -> Callable[[Peer], Any]:
    """A peer whose appenders append so."""

    def spoil(peer: Peer) -> Any:
        @asynccontextmanager
        async def appender() -> AsyncIterator[Any]:
            async with peer.appender() as real:

                async def append(batches: Sequence[NewBatch]) -> Any:
                    return await how(real, batches)

                yield Wrapped(real, append=append)

        return Wrapped(peer, appender=appender)

    return spoil


def reading(how: Callable[[Any], Awaitable[Any]], **others: Any) -> Callable[[Peer], Any]:
    """A peer whose readers read so."""

    def spoil(peer: Peer) -> Any:
        @asynccontextmanager
        async def reader(**options: Any) -> AsyncIterator[Any]:
            async with peer.reader(**options) as real:

                async def read() -> Any:
                    return await how(real)

                yield Wrapped(real, read=read, **others)

        return Wrapped(peer, reader=reader)

    return spoil


async def backwards(real: Any, batches: Sequence[NewBatch]) -> Any:
    return list(reversed(await real.append(list(reversed(batches)))))


async def one_by_one(real: Any, batches: Sequence[NewBatch]) -> list[Appended | BrokerError]:
    return [(await real.append([batch]))[0] for batch in batches]


async def twice(real: Any) -> Sequence[PeerRead]:
    reads: list[PeerRead] = list(await real.read())
    return [*reads, *reads]


async def without_aborted(real: Any) -> Sequence[PeerRead]:
    return [read._replace(aborted=()) for read in await real.read()]


async def without_errors(real: Any) -> Sequence[PeerRead]:
    return [read._replace(error=None) for read in await real.read()]


async def forgetful(real: Any) -> Sequence[PeerRead]:
    """What is read while it is cancelled is gone."""
    reads: Sequence[PeerRead] = await real.read()
    await trio.lowlevel.checkpoint()
    await trio.sleep(0.001)
    return reads


def uncommitted(peer: Peer) -> Any:
    def reader(*, committed: bool = True, **options: Any) -> Any:
        return peer.reader(committed=False, **options)

    return Wrapped(peer, reader=reader)


def unbounded(peer: Peer) -> Any:
    def reader(*, max_bytes: int = 0, partition_bytes: int = 0, **options: Any) -> Any:
        return peer.reader(**options)

    return Wrapped(peer, reader=reader)


def free_claims(peer: Peer) -> Any:
    @asynccontextmanager
    async def claim(name: str, **_: Any) -> AsyncIterator[Any]:
        yield Wrapped(None, is_held=True, lost=trio.sleep_forever)

    return Wrapped(peer, claim=claim)


def everything_exists(peer: Peer) -> Any:
    async def topics(names: Sequence[str] | None = None) -> Mapping[str, Any]:
        found = dict(await peer.topics())
        return {name: found.get(name, next(iter(found.values()))) for name in names or found}

    return Wrapped(peer, topics=topics)


def no_last_stable_offset(peer: Peer) -> Any:
    async def offsets(times: Mapping[TopicPartition, int], *, committed: bool = False) -> Any:
        return await peer.offsets(times)

    return Wrapped(peer, offsets=offsets)


def epochs_unknown(peer: Peer) -> Any:
    async def epoch_end(epochs: Mapping[TopicPartition, int]) -> Any:
        return dict.fromkeys(epochs, (-1, -1))

    return Wrapped(peer, epoch_end=epoch_end)


def commits_anyway(peer: Peer) -> Any:
    async def commit(group: str, offsets: Any) -> None:
        if not await peer.group_is_active(group):
            await peer.commit(group, offsets)

    return Wrapped(peer, commit=commit)


def nobody_is_fenced(peer: Peer) -> Any:
    def transaction(transactional_id: str, **options: Any) -> Any:
        return peer.transaction(f"{transactional_id}-{id(object())}-{next(_NUMBERS)}", **options)

    return Wrapped(peer, transaction=transaction)


def silent(peer: Peer) -> Any:
    async def cluster_id() -> str:
        await trio.sleep_forever()
        return ""

    return Wrapped(peer, cluster_id=cluster_id)


_NUMBERS = iter(range(1000))

BAD: Mapping[str, tuple[str, Callable[[Peer], Any]]] = {
    "one that never answers": ("cluster", silent),
    "batches in another order": ("order", appending(backwards)),
    "batches behind one that was refused": ("refusals", appending(one_by_one)),
    "records that come twice": ("waiting", reading(twice)),
    "reads that are lost when cancelled": ("waiting", reading(forgetful)),
    "reads without a bound": ("bounds", unbounded),
    "pauses that are none": ("pause", reading(lambda real: real.read(), pause=lambda *_: None)),
    "errors that are not said": ("out of range", reading(without_errors)),
    "topics that were not deleted": ("deleted", reading(without_errors)),
    "open transactions that are read": ("transactions", uncommitted),
    "aborted ranges that are not named": ("transactions", reading(without_aborted)),
    "producers that are not fenced": ("fencing", nobody_is_fenced),
    "claims that everybody has": ("claims", free_claims),
    "topics that do not exist": ("topics", everything_exists),
    "no last stable offset": ("offsets", no_last_stable_offset),
    "epochs that are not known": ("epochs", epochs_unknown),
    "commits for groups with members": ("groups", commits_anyway),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("what", list(BAD))
def test_what_is_wrong_is_found(broker: RunningBroker, what: str) -> None:
    promise, spoil = BAD[what]
    assert found(broker, spoil, promise), what


def test_all_that_is_wrong_is_raised(tmp_path: Path) -> None:
    async def check(inside: Broker) -> None:
        async with inside.peer() as peer:
            await check_peer(epochs_unknown(peer), prefix="mine")
            pytest.fail("nothing was raised")

    with running_broker(tmp_path) as running:
        with pytest.raises(ContractError, match="the peer Wrapped does not keep its contract") as caught:
            running.call(check)
        assert [each.name for each in caught.value.report.checks] == [
            name for name in peer_checks.PROMISES if name != "deleted"
        ]
        assert {each.name for each in caught.value.report.checks if each.problems} == {"epochs"}
        names = running.call(_names)
        assert names
        assert all(name.startswith("mine-") for name in names)


async def _names(inside: Broker) -> list[str]:
    await trio.lowlevel.checkpoint()
    return inside.topics.names()
