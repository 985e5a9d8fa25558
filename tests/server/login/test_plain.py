"""PLAIN (RFC 4616), against users of the settings and stored ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from leafcuttr.server.login.mechanisms import LoginRefused
from leafcuttr.server.login.plain import PlainServer
from leafcuttr.state.metadata import MetadataStore
from leafcuttr.state.security.credentials import ScramMechanism
from leafcuttr.state.security.scram import new_credential
from leafcuttr.state.security.users import CredentialUpsertion, Users

NAMED = {"alice": "secret", "ü": "ß"}


@pytest.fixture
def users(tmp_path: Path) -> Iterator[Users]:
    metadata = MetadataStore.open(tmp_path)
    yield Users(metadata)
    metadata.close()


async def answer(users: Users, data: bytes, named: dict[str, str] | None = NAMED) -> str | None:
    """The user, or the refusal."""
    plain = PlainServer(lambda: named, users, trio.CapacityLimiter(1))
    try:
        step = await plain.step(data)
    except LoginRefused as refused:
        return str(refused)
    assert step.answer == b""
    return f"user {step.user}"


WRONG = "Authentication failed: Invalid username or password"


@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"\0alice\0secret", "user alice"),
        (b"alice\0alice\0secret", "user alice"),
        ("\0ü\0ß".encode(), "user ü"),
        (b"\0alice\0Secret", WRONG),
        (b"\0alice\0secretx", WRONG),
        (b"\0bob\0secret", WRONG),
        (b"\0bob\0x", WRONG),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"bob\0alice\0secret", "Authentication failed: Client requested an authorization id that is diffe"),
        (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0al\xffce\0secret", "Authentication failed: not UTF-8"),
    ],
)
async def test_users_of_the_settings(users: Users, data: bytes, wanted: str) -> None:
    assert str(await answer(users, data)).startswith(wanted)


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
async def test_stored_users(users: Users, mechanism: ScramMechanism) -> None:
    credential = new_credential(mechanism, b"secret", 4096)
    await users.alter([CredentialUpsertion("alice", mechanism, credential)], [])
    assert await answer(users, b"\0alice\0secret", None) == "user alice"
    assert await answer(users, b"\0alice\0Secret", None) == WRONG
    assert await answer(users, b"\0bob\0secret", None) == WRONG
    assert await answer(users, b"\0alice\0secret", {}) == WRONG, "the settings name users: none"


async def test_a_user_of_the_settings_that_is_changed_or_gone(users: Users) -> None:
    named = {"alice": "secret", "bob": "b"}
    given: list[dict[str, str] | None] = [named]
    plain = PlainServer(lambda: given[0], users, trio.CapacityLimiter(1))
    holds = (await plain.step(b"\0alice\0secret")).still_holds
    assert holds is not None and holds()
    for change, wanted in (
        ({**named, "bob": "other"}, True),
        ({**named, "alice": "other"}, False),
        ({"bob": "b"}, False),
        (None, False),
        (named, True),
    ):
        given[0] = change
        assert holds() is wanted


async def test_a_stored_user_that_is_changed_or_gone(users: Users) -> None:
    mechanism = ScramMechanism.SCRAM_SHA_256
    upsertion = CredentialUpsertion("alice", mechanism, new_credential(mechanism, b"secret", 4096))
    await users.alter([upsertion], [])
    plain = PlainServer(lambda: None, users, trio.CapacityLimiter(1))
    holds = (await plain.step(b"\0alice\0secret")).still_holds
    assert holds is not None and holds()
    again = new_credential(mechanism, b"secret", 4096)
    await users.alter([upsertion._replace(name="bob", credential=again)], [])
    assert holds()
    await users.alter([upsertion._replace(credential=again)], [])
    assert not holds()


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
@pytest.mark.parametrize("iterations", [4096, 16_384])
async def test_a_user_that_there_is_not_takes_the_same_work(
    users: Users, monkeypatch: pytest.MonkeyPatch, mechanism: ScramMechanism, iterations: int
) -> None:
    """So its time does not tell which names there are."""
    credential = new_credential(mechanism, b"secret", iterations)
    await users.alter([CredentialUpsertion("alice", mechanism, credential)], [])
    work: list[list[object]] = []
    derive = hashlib.pbkdf2_hmac

    def noted(hash_name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
        work[-1] += [hash_name, len(password), len(salt), iterations]
        return derive(hash_name, password, salt, iterations)

    monkeypatch.setattr(hashlib, "pbkdf2_hmac", noted)
    for name in ("alice", "nobody", "bob"):
        work.append([])
        assert await answer(users, f"\0{name}\0wrong".encode(), None) == WRONG
    assert work == [[mechanism.hash_name, 5, len(credential.salt), iterations]] * 3
