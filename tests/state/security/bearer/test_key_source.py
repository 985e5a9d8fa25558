"""Keys from files and endpoints: when they are read, what becomes of the old ones, and who waits."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from leafcuttr.state.security.bearer.key_source import KeySettings, KeySource
from leafcuttr.state.security.bearer.keys import KeysError
from support.logs import HandClock
from support.token_issuer import Endpoint, Issuer


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    found = Issuer()
    found.add("ES256", "a")
    found.add("ES256", "b")
    return found


@pytest.fixture
def endpoint(issuer: Issuer) -> Iterator[Endpoint]:
    with issuer.endpoint("a") as found:
        yield found


def source(url: str, clock: HandClock | None = None) -> KeySource:
    """With keys that have been read, if there is a clock."""
    found = KeySource(KeySettings(url, refresh_s=100, backoff_s=0.5, most_backoff_s=3))
    if clock is not None:
        found.read()
        found.was_read(clock)
    return found


def test_a_file(issuer: Issuer, tmp_path: Path) -> None:
    path = tmp_path / "a key set.json"
    found = source(issuer.write(path, "a"))
    assert not len(found.keys)
    found.read()
    assert found.keys.has("a")
    for text, why in (("{", "it is no JSON"), ("x" * (1 << 20) + "x", "it has more than 1048576 bytes")):
        path.write_text(text)
        with pytest.raises(KeysError) as caught:
            found.read()
        assert str(caught.value) == why
    path.unlink()
    with pytest.raises(KeysError, match="No such file or directory"):
        found.read()
    assert found.keys.has("a"), "those that were read stay"


def test_an_endpoint(endpoint: Endpoint) -> None:
    found = source(endpoint.url)
    found.read()
    assert found.keys.has("a")
    assert endpoint.asked["Accept"] == "application/jwk-set+json, application/json"
    endpoint.status = 503
    with pytest.raises(KeysError, match="the answer is 503 Service Unavailable"):
        found.read()


@pytest.mark.parametrize("url", ["", "keys.json", "file:keys.json", "file://host/keys.json", "ftp://x/y"])
def test_places_that_are_none(url: str) -> None:
    with pytest.raises(ValueError, match=r"it is no URL of https|followed by the whole path"):
        KeySource(KeySettings(url))


async def test_they_are_read_again_in_time(issuer: Issuer, endpoint: Endpoint) -> None:
    clock = HandClock()
    found = source(endpoint.url, clock)
    endpoint.text = issuer.key_set("b")
    clock.ms += 99_999
    await found.follow(clock)
    assert endpoint.requests == 1
    clock.ms += 1
    await found.follow(clock)
    await found.follow(clock)
    assert endpoint.requests == 2
    assert found.keys.has("b") and not found.keys.has("a")


async def test_an_endpoint_that_fails_has_longer_and_longer_pauses(
    endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    clock = HandClock()
    found = source(endpoint.url, clock)
    endpoint.status = 500
    clock.ms += 100_000
    with caplog.at_level(logging.INFO):
        await found.follow(clock)
        for pause_ms in (500, 1000, 2000, 3000, 3000):
            before = endpoint.requests
            clock.ms += pause_ms - 1
            await found.follow(clock)
            assert endpoint.requests == before
            clock.ms += 1
            await found.follow(clock)
            assert endpoint.requests == before + 1
        assert found.keys.has("a")
        endpoint.status = 200
        clock.ms += 3000
        await found.follow(clock)
        clock.ms += 99_999
        before = endpoint.requests
        await found.follow(clock)
    assert endpoint.requests == before, "and then as before"
    assert [each.getMessage() for each in caplog.records] == [
        f"the keys at {endpoint.url} cannot be read: the answer is 500 Internal Server Error; "
        "1 from before stay in use",
        f"the keys at {endpoint.url} can be read again",
    ]


async def test_a_key_that_nobody_knows_is_looked_for_once_a_minute(
    issuer: Issuer, endpoint: Endpoint
) -> None:
    clock = HandClock()
    found = source(endpoint.url, clock)
    endpoint.text = issuer.key_set()
    await found.find_unknown(clock)
    assert found.keys.has("b")
    clock.ms += 59_999
    await found.find_unknown(clock)
    assert endpoint.requests == 2
    clock.ms += 1
    await found.find_unknown(clock)
    assert endpoint.requests == 3


async def test_all_wait_for_the_one_that_reads(issuer: Issuer, endpoint: Endpoint) -> None:
    clock = HandClock()
    found = source(endpoint.url, clock)
    endpoint.text = issuer.key_set()
    endpoint.held.clear()
    seen = []

    async def look() -> None:
        await found.find_unknown(clock)
        seen.append(found.keys.has("b"))

    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(look)
        while endpoint.requests < 2:
            await trio.sleep(0.001)
        assert not seen
        endpoint.held.set()
    assert seen == [True] * 3
    assert endpoint.requests == 2


async def test_who_waits_does_not_wait_for_ever(
    endpoint: Endpoint, autojump_clock: trio.testing.MockClock
) -> None:
    clock = HandClock()
    found = source(endpoint.url, clock)
    endpoint.held.clear()
    began = trio.current_time()
    await found.find_unknown(clock)
    assert trio.current_time() - began == 5
    endpoint.held.set()
