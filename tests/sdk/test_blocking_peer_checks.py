"""The check of blocking peers notices what does not keep the contract. A peer that does is checked in tests/client;
here one of a broker is spoiled, each time in another way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from leafcuttr_sdk import NewBatch, TopicPartition
from leafcuttr_sdk.blocking_peers import BlockingPeer, open_peer
from leafcuttr_sdk.testing import (
    ContractError,
    RunningBroker,
    blocking_peer_trial,
    check_blocking_peer,
    running_broker,
)
from leafcuttr_sdk.testing.blocking_peer_checks import BLOCKING_PROMISES, blocking_peer_report

Spoil = Callable[[BlockingPeer], Any]


@pytest.fixture(scope="module")
def peer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingPeer]:
    with running_broker(tmp_path_factory.mktemp("broker")) as running, opened(running) as found:
        yield found


def opened(running: RunningBroker) -> Any:
    return open_peer({"bootstrap.servers": running.bootstrap_servers})


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What never comes is noticed soon."""
    monkeypatch.setattr(blocking_peer_trial, "SOON_S", 0.5)


class Wrapped:
    """Another object's methods, but for those that are given."""

    def __init__(self, real: Any, **others: Any) -> None:
        self._real = real
        self._others = others

    def __getattr__(self, name: str) -> Any:
        return self._others.get(name) or getattr(self._real, name)


def within(name: str, wrap: Callable[[Any], Any]) -> Spoil:
    """A peer whose context of this name gives what `wrap` makes of it."""

    def spoil(peer: BlockingPeer) -> Any:
        @contextmanager
        def context(*arguments: Any, **options: Any) -> Iterator[Any]:
            with getattr(peer, name)(*arguments, **options) as real:
                yield wrap(real)

        return Wrapped(peer, **{name: context})

    return spoil


def answering(name: str, how: Callable[..., Any]) -> Spoil:
    """A peer whose method of this name is `how`, which gets the real peer first."""
    return lambda peer: Wrapped(peer, **{name: lambda *given, **options: how(peer, *given, **options)})


def backwards(real: Any) -> Any:
    def append(batches: Sequence[NewBatch]) -> Any:
        return list(reversed(real.append(list(reversed(batches)))))

    return Wrapped(real, append=append)


def swallows(real: Any) -> Any:
    """What goes wrong is not said."""

    def flush() -> Any:
        try:
            return real.flush()
        except Exception:
            return {}

    return Wrapped(real, flush=flush)


def miscounts(real: Any) -> Any:
    return Wrapped(real, flush=lambda: dict.fromkeys(real.flush(), 1))


def repeats(real: Any) -> Any:
    def read(timeout_s: float | None = None) -> Any:
        reads = list(real.read(timeout_s))
        return [*reads, *reads]

    return Wrapped(real, read=read)


def keeps_errors(real: Any) -> Any:
    def read(timeout_s: float | None = None) -> Any:
        return [read._replace(error=None) for read in real.read(timeout_s)]

    return Wrapped(real, read=read)


def forgets_aborted(real: Any) -> Any:
    def read(timeout_s: float | None = None) -> Any:
        return [read._replace(aborted=()) for read in real.read(timeout_s)]

    return Wrapped(real, read=read)


def one_epoch(real: Any) -> Any:
    """Begins once, and says so for ever."""
    begun: list[Any] = []

    def begin() -> Any:
        begun.append(real.begin())
        return begun[0]

    return Wrapped(real, begin=begin)


def anything_goes(real: Any) -> Any:
    def commit(written: Any = None) -> None:
        real.commit()

    return Wrapped(real, commit=commit)


def nobody_is_fenced(peer: BlockingPeer) -> Any:
    numbers = iter(range(1000))

    def owner(transaction: Any, **options: Any) -> Any:
        if isinstance(transaction, str):
            transaction = f"{transaction}-{next(numbers)}"
        return peer.owner(transaction, **options)

    return Wrapped(peer, owner=owner)


def leaves_open(peer: BlockingPeer) -> Any:
    @contextmanager
    def owner(transaction: Any, **options: Any) -> Iterator[Any]:
        raised: list[BaseException] = []
        with peer.owner(transaction, **options) as real:
            try:
                yield real
            except Exception as error:
                raised.append(error)
        if raised:
            raise raised[0]

    return Wrapped(peer, owner=owner)


def all_offsets(peer: BlockingPeer, times: Mapping[TopicPartition, int], **options: Any) -> Any:
    return dict.fromkeys(times, 0) | peer.offsets(times, **options)


BAD: Mapping[str, tuple[str, Spoil]] = {
    "a cluster without an id": ("cluster", answering("cluster_id", lambda peer: "")),
    "leaders of what does not exist": (
        "cluster",
        answering("leaders", lambda peer, tps: dict.fromkeys(tps, next(iter(peer.leaders(tps).values())))),
    ),
    "batches in another order": ("order", within("appender", backwards)),
    "records that are miscounted": ("order", within("appender", miscounts)),
    "refusals that are not raised": ("refusals", within("appender", swallows)),
    "records that come twice": ("order", within("reader", repeats)),
    "errors that are not said": ("reading", within("reader", keeps_errors)),
    "offsets of what does not exist": ("offsets", answering("offsets", all_offsets)),
    "counts that are not compared": ("twice", within("owner", anything_goes)),
    "aborted records that are read": ("aborted", within("reader", forgets_aborted)),
    "one epoch for all": ("epochs", within("owner", one_epoch)),
    "owners that are not fenced": ("fencing", nobody_is_fenced),
    "a transaction of its own for each": (
        "resumed",
        answering("owner", lambda peer, it, **_: peer.owner("x")),
    ),
    "transactions that are left open": ("interrupted", leaves_open),
    "offsets that are not committed": ("groups", answering("commit", lambda peer, group, offsets: None)),
    "records that were never shared": (
        "shared",
        within("join", lambda real: Wrapped(real, send=lambda batches: None)),
    ),
}


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("what", list(BAD))
def test_what_is_wrong_is_found(peer: BlockingPeer, what: str) -> None:
    promise, spoil = BAD[what]
    assert blocking_peer_report(spoil(peer), only=frozenset({promise})).problems, what


def test_every_promise_is_spoiled_once() -> None:
    assert {promise for promise, _ in BAD.values()} == set(BLOCKING_PROMISES)


def test_all_that_is_wrong_is_raised(peer: BlockingPeer) -> None:
    spoiled = BAD["a cluster without an id"][1](peer)
    with pytest.raises(ContractError, match="the blocking peer Wrapped does not keep its contract") as caught:
        check_blocking_peer(spoiled, prefix="mine")
    assert [each.name for each in caught.value.report.checks] == list(BLOCKING_PROMISES)
    assert {each.name for each in caught.value.report.checks if each.problems} == {"cluster"}
    assert [name for name in peer.topics() if name.startswith("mine-")]
