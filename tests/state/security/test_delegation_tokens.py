"""Delegation tokens, in memory and on the disk. How they are asked for: tests/handlers/test_delegation_tokens.py."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import trio

from leafcuttr.config.settings import Settings
from leafcuttr.errors import StorageError
from leafcuttr.state.identity import Principal
from leafcuttr.state.metadata import MetadataStore
from leafcuttr.state.security.credentials import ScramMechanism
from leafcuttr.state.security.delegation_tokens import DelegationTokens
from leafcuttr.state.security.scram import fits
from support.logs import HandClock

ALICE, BOB = Principal("User", "alice"), Principal("User", "b,o:b\nü")
SETTINGS = Settings({"delegation.token.secret.key": "sesame"})
CLOCK = HandClock()


@pytest.fixture
def metadata(tmp_path: Path) -> Iterator[MetadataStore]:
    found = MetadataStore.open(tmp_path)
    yield found
    found.close()


def tokens(metadata: MetadataStore, settings: Settings = SETTINGS) -> DelegationTokens:
    return DelegationTokens(metadata, settings, CLOCK)


async def test_all_of_a_token_is_stored(metadata: MetadataStore) -> None:
    ours = tokens(metadata)
    token = await ours.create(ALICE, BOB, [BOB, ALICE], 5000)
    assert list(tokens(metadata)) == [token]
    renewed = await ours.renew(token, 3000)
    assert renewed is not None
    assert list(tokens(metadata)) == [renewed] == list(ours)


async def test_ids_are_not_guessed(metadata: MetadataStore) -> None:
    ours = tokens(metadata)
    ids = {(await ours.create(ALICE, ALICE, [], 0)).id for _ in range(20)}
    assert len(ids) == 20
    assert {len(each) for each in ids} == {22}, "as long as Kafka's"


async def test_a_token_that_is_gone_does_not_come_back(metadata: MetadataStore) -> None:
    """A renewal that was under way when it was revoked."""
    ours = tokens(metadata)
    token = await ours.create(ALICE, ALICE, [], 0)
    found = []

    async def renew() -> None:
        found.append(await ours.renew(token, 1000))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(ours.remove, [token])
        while not ours._turn.locked():
            await trio.lowlevel.checkpoint()
        nursery.start_soon(renew)
    assert found == [None]
    assert await ours.expire(token, 1000) is None
    assert not ours.holds(token) and ours.with_hmac(ours.hmac_of(token)) is None
    assert list(tokens(metadata)) == []


async def test_what_the_disk_refuses_changes_nothing(metadata: MetadataStore) -> None:
    ours = tokens(metadata)
    token = await ours.create(ALICE, ALICE, [], 0)
    metadata._connection.execute("PRAGMA query_only = ON")
    for change in (
        partial(ours.create, ALICE, ALICE, [], 0),
        partial(ours.renew, token, 1),
        partial(ours.remove, [token]),
    ):
        with pytest.raises(StorageError, match="attempt to write a readonly database"):
            await change()
    assert list(ours) == [token]
    assert list(tokens(metadata)) == [token]


async def test_who_is_told(metadata: MetadataStore) -> None:
    ours, seen = tokens(metadata), []
    ours.on_change(lambda: seen.append(len(list(ours))))
    token = await ours.create(ALICE, ALICE, [], 0)
    await ours.renew(token, 1000)
    await ours.remove([])
    await ours.remove_expired()
    await ours.remove([token])
    assert seen == [1, 1, 0]


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
async def test_what_scram_checks(metadata: MetadataStore, mechanism: ScramMechanism) -> None:
    """The HMAC in base64 is the password; made once."""
    ours = tokens(metadata)
    token = await ours.create(ALICE, ALICE, [], 0)
    credential = ours.credential(token, mechanism)
    assert credential.iterations == 4096
    assert fits(mechanism, credential, base64.b64encode(ours.hmac_of(token)))
    assert ours.credential(token, mechanism) is credential


async def test_what_holds(metadata: MetadataStore) -> None:
    """A token that lasts longer than it did is still good, one that ends sooner is another."""
    ours = tokens(metadata)
    token = await ours.create(ALICE, ALICE, [], 0)
    assert ours.holds(token)
    longer = await ours.expire(token, 10 * 86_400_000)
    assert longer is not None and longer.expires_ms > token.expires_ms
    assert ours.holds(token) and ours.holds(longer)
    shorter = await ours.expire(token, 1000)
    assert shorter is not None
    assert not ours.holds(token) and ours.holds(shorter)


async def test_times_that_are_beyond_all_numbers(metadata: MetadataStore) -> None:
    settings = {"delegation.token.secret.key": "s", "delegation.token.max.lifetime.ms": str(2**63 - 1)}
    token = await tokens(metadata, Settings(settings)).create(ALICE, ALICE, [], 0)
    assert token.last_ms == 2**63 - 1
    assert list(tokens(metadata)) == [token]
