"""Quotas in memory and on the disk, and the buckets that clients share."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leafcuttr.config.settings import Settings
from leafcuttr.errors import StorageError
from leafcuttr.state.metadata import MetadataStore
from leafcuttr.state.security import quota_buckets
from leafcuttr.state.security.limits import ClientLimits
from leafcuttr.state.security.quota_entities import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    entity_of,
)
from leafcuttr.state.security.quotas import Quotas

ALICE = entity_of({"user": "alice"})
EVERY_USER = entity_of({"user": None})
EVERY_CLIENT = entity_of({"client-id": None})
SETTINGS = Settings({"controller.quota.window.num": "3", "controller.quota.window.size.seconds": "2"})


class Now:
    def __init__(self) -> None:
        self.s = 0.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def metadata(tmp_path: Path) -> Iterator[MetadataStore]:
    found = MetadataStore.open(tmp_path)
    yield found
    found.close()


@pytest.fixture
def opened(metadata: MetadataStore, now: Now) -> Callable[[], Quotas]:
    return lambda: Quotas(metadata, SETTINGS, now)


async def test_what_was_altered_is_there_after_a_restart(opened: Callable[[], Quotas]) -> None:
    quotas, calls = opened(), list[int]()
    quotas.on_change(lambda: calls.append(len(quotas.entries())))
    assert not quotas.of_clients
    await quotas.alter({ALICE: {PRODUCER_BYTE_RATE: 1000.0}, EVERY_USER: {REQUEST_PERCENTAGE: 0.5}})
    await quotas.alter(
        {ALICE: {PRODUCER_BYTE_RATE: 2000.0, CONSUMER_BYTE_RATE: 3.0}, EVERY_USER: {REQUEST_PERCENTAGE: None}}
    )
    assert calls == [2, 1]
    for each in (quotas, opened()):
        assert each.entries() == {ALICE: {PRODUCER_BYTE_RATE: 2000.0, CONSUMER_BYTE_RATE: 3.0}}
        assert (each.of_clients, each.of_loop_time, each.of_addresses) == (True, False, False)
    await quotas.alter({ALICE: {PRODUCER_BYTE_RATE: None, CONSUMER_BYTE_RATE: None}})
    assert quotas.entries() == opened().entries() == {}
    assert not quotas.of_clients


async def test_what_changes_nothing_is_not_written(
    opened: Callable[[], Quotas], metadata: MetadataStore
) -> None:
    quotas, calls = opened(), list[None]()
    await quotas.alter({ALICE: {PRODUCER_BYTE_RATE: 1000.0}})
    quotas.on_change(lambda: calls.append(None))
    before = metadata.changes
    await quotas.alter({ALICE: {PRODUCER_BYTE_RATE: 1000.0, REQUEST_PERCENTAGE: None}, EVERY_USER: {}})
    assert (metadata.changes, calls) == (before, [])


async def test_what_the_disk_refuses_changes_nothing(
    opened: Callable[[], Quotas], metadata: MetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    quotas = opened()

    def refuse(*_: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(metadata, "set_quotas", refuse)
    with pytest.raises(StorageError):
        await quotas.alter({ALICE: {PRODUCER_BYTE_RATE: 1000.0}})
    assert quotas.entries() == {}
    assert quotas.limits_of("alice", "c") is None


async def test_each_quota_is_found_by_itself(opened: Callable[[], Quotas]) -> None:
    """One may be that of the user, another that of the client id."""
    quotas = opened()
    await quotas.alter(
        {
            ALICE: {PRODUCER_BYTE_RATE: 1.0},
            EVERY_CLIENT: {PRODUCER_BYTE_RATE: 2.0, CONSUMER_BYTE_RATE: 3.0},
            entity_of({"user": None, "client-id": "c"}): {REQUEST_PERCENTAGE: 50.0},
        }
    )
    limits = quotas.limits_of("alice", "c")
    assert limits is not None
    assert limits.producer is not None and limits.producer.rate == 1
    assert limits.consumer is not None and limits.consumer.rate == 3
    assert limits.request is not None and limits.request.rate == 0.5
    assert limits.mutations is None
    other = quotas.limits_of("bob", "d")
    assert other is not None and other.producer is not None and other.producer.rate == 2
    assert quotas.limits_of("bob", None) is None


async def test_who_shares_a_bucket(opened: Callable[[], Quotas]) -> None:
    """All clients of a user share the quota of the user; of a default, each has its own."""
    quotas = opened()
    await quotas.alter({EVERY_USER: {PRODUCER_BYTE_RATE: 1.0}, EVERY_CLIENT: {CONSUMER_BYTE_RATE: 1.0}})
    alice, again, bob = (quotas.limits_of(user, client) for user, client in ("ac", "ad", "bc"))
    assert alice and again and bob
    assert alice.producer is again.producer is not bob.producer
    assert alice.consumer is bob.consumer is not again.consumer


async def test_how_buckets_begin(opened: Callable[[], Quotas], now: Now) -> None:
    quotas = opened()
    await quotas.alter(
        {
            ALICE: {
                PRODUCER_BYTE_RATE: 100.0,
                REQUEST_PERCENTAGE: 25.0,
                CONTROLLER_MUTATION_RATE: 2.0,
            }
        }
    )
    limits = quotas.limits_of("alice", None)
    assert limits and limits.producer and limits.request and limits.mutations
    assert (limits.producer.level(0), limits.producer.most) == (100, 200)
    assert (limits.request.level(0), limits.request.most, limits.request.longest_s) == (0.25, 0.5, 1)
    assert (limits.mutations.level(0), limits.mutations.most) == (12, 12), "full, as Kafka's"


async def test_another_quota_goes_on_with_the_same_bucket(opened: Callable[[], Quotas], now: Now) -> None:
    quotas = opened()
    await quotas.alter({ALICE: {PRODUCER_BYTE_RATE: 100.0}})
    limits = quotas.limits_of("alice", None)
    assert limits and limits.producer
    limits.producer.take(600, 0)
    await quotas.alter({ALICE: {PRODUCER_BYTE_RATE: 1000.0}})
    again = quotas.limits_of("alice", None)
    assert again and again.producer is limits.producer
    assert (again.producer.rate, again.producer.most, again.producer.wait_s(0)) == (1000, 2000, 0.5)


async def test_a_client_that_comes_back_finds_its_debt(opened: Callable[[], Quotas], now: Now) -> None:
    quotas = opened()
    await quotas.alter({ALICE: {PRODUCER_BYTE_RATE: 100.0}})

    def left() -> float:
        limits = quotas.limits_of("alice", None)
        assert limits and limits.producer
        return limits.producer.level(now())

    limits = quotas.limits_of("alice", None)
    assert limits and limits.producer
    limits.producer.take(600, 0)
    del limits
    gc.collect()
    assert left() == -500


async def test_buckets_of_those_that_have_gone_do_not_stay(
    opened: Callable[[], Quotas], now: Now, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota_buckets, "_FEW", 10)
    quotas = opened()
    await quotas.alter({EVERY_CLIENT: {PRODUCER_BYTE_RATE: 100.0}})
    stays = quotas.limits_of("u", "stays")
    owes = quotas.limits_of("u", "owes")
    assert stays and stays.producer and owes and owes.producer
    owes.producer.take(1e6, 0)
    del owes
    for number in range(1000):
        now.s += 5
        quotas.limits_of("u", f"c{number}")
    assert len(quotas._all_buckets()._kept) < 30
    owes = quotas.limits_of("u", "owes")
    assert owes and owes.producer and owes.producer.level(now()) < 0
    # One that was full meanwhile, and in use.
    stays.producer.take(1e6, now())
    del stays
    gc.collect()
    stays = quotas.limits_of("u", "stays")
    assert stays and stays.producer and stays.producer.level(now()) < 0


async def test_addresses(opened: Callable[[], Quotas]) -> None:
    quotas = opened()
    assert quotas.of_address("10.0.0.1") is None
    rates = {"10.0.0.1": 1.0, "::ffff:10.0.0.2": 2.0, "edge.example": 3.0, None: 9.0}
    await quotas.alter(
        {entity_of({"ip": name}): {CONNECTION_CREATION_RATE: rate} for name, rate in rates.items()}
    )
    assert quotas.of_addresses and not quotas.of_clients
    assert quotas.named_hosts == ("edge.example",)

    def rate(address: str, name: str | None = None) -> float:
        bucket = quotas.of_address(address, name)
        assert bucket is not None
        return bucket.rate

    assert [rate("10.0.0.1"), rate("10.0.0.2"), rate("10.0.0.3")] == [1, 2, 9]
    assert rate("10.0.0.3", "edge.example") == 3
    await quotas.alter({entity_of({"ip": None}): {CONNECTION_CREATION_RATE: None}})
    assert quotas.of_address("10.0.0.3") is None
    assert quotas.limits_of("10.0.0.1", "10.0.0.1") is None


def test_nothing_is_looked_for_where_there_are_none(opened: Callable[[], Quotas]) -> None:
    assert opened().limits_of("alice", "c") is None
    assert ClientLimits() == ClientLimits(None, None, None, None)
