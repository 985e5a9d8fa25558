"""Users in memory and on the disk."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from leafcuttr.errors import StorageError
from leafcuttr.state.metadata import MetadataStore
from leafcuttr.state.security.credential_shapes import CredentialShape
from leafcuttr.state.security.credentials import ScramCredential, ScramMechanism
from leafcuttr.state.security.users import CredentialDeletion, CredentialUpsertion, Users

SHA_256, SHA_512 = ScramMechanism
ONE, OTHER = ScramCredential(b"s", b"k", b"v", 4096), ScramCredential(b"t", b"l", b"w", 8192)


@pytest.fixture
def metadata(tmp_path: Path) -> Iterator[MetadataStore]:
    found = MetadataStore.open(tmp_path)
    yield found
    found.close()


async def test_what_was_altered_is_there_after_a_restart(metadata: MetadataStore) -> None:
    users = Users(metadata)
    changed: list[str] = []
    users.on_change(changed.append)
    await users.alter(
        [
            CredentialUpsertion("a", SHA_256, ONE),
            CredentialUpsertion("a", SHA_512, OTHER),
            CredentialUpsertion("b", SHA_256, ONE),
        ],
        [],
    )
    await users.alter(
        [CredentialUpsertion("a", SHA_256, OTHER)],
        [CredentialDeletion("b", SHA_256), CredentialDeletion("a", SHA_512)],
    )
    assert changed == ["a", "b", "b", "a"]
    for each in (users, Users(metadata)):
        assert each.names() == ["a"]
        assert each.credentials("a") == {SHA_256: OTHER}
        assert each.credentials("b") == {}
        assert "a" in each and "b" not in each


async def test_what_the_disk_refuses_changes_nothing(
    metadata: MetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    users = Users(metadata)
    await users.alter([CredentialUpsertion("a", SHA_256, ONE)], [])

    def refuse(*_: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(metadata, "set_scram_credentials", refuse)
    with pytest.raises(StorageError):
        await users.alter([CredentialUpsertion("a", SHA_256, OTHER)], [])
    assert users.credentials("a") == {SHA_256: ONE}


def test_the_secret_is_made_once(metadata: MetadataStore, tmp_path: Path) -> None:
    secret = Users(metadata).secret
    assert len(secret) == 32
    assert Users(metadata).secret == secret
    (tmp_path / "other").mkdir()
    other = MetadataStore.open(tmp_path / "other")
    assert Users(other).secret != secret
    other.close()


async def test_a_name_that_nobody_has_looks_like_those_of_the_users(metadata: MetadataStore) -> None:
    usual = CredentialShape(SHA_256, 5000, 24)
    first, second = CredentialShape(SHA_256, 4096, 1, True), CredentialShape(SHA_512, 8192, 1, True)

    def of_nobody(users: Users) -> list[CredentialShape]:
        return [users.shape_of_nobody("nobody", each, usual) for each in (SHA_256, SHA_512, None)]

    users = Users(metadata)
    assert of_nobody(users) == [usual] * 3
    await users.alter([CredentialUpsertion("a", SHA_256, ONE), CredentialUpsertion("a", SHA_512, OTHER)], [])
    assert of_nobody(users) == of_nobody(Users(metadata)) == [first, second, first]
    await users.alter([], [CredentialDeletion("a", SHA_256)])
    assert of_nobody(users) == of_nobody(Users(metadata)) == [usual, second, second]
    await users.alter([CredentialUpsertion("a", SHA_512, ONE)], [])
    assert of_nobody(users)[1] == second._replace(iterations=4096)
    await users.alter([], [CredentialDeletion("a", SHA_512)])
    assert of_nobody(users) == [usual] * 3


async def test_the_secret_is_made_in_a_worker(
    metadata: MetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    users, threads = Users(metadata), set()
    secret = metadata.secret

    def noted(name: str) -> bytes:
        threads.add(threading.current_thread())
        return secret(name)

    monkeypatch.setattr(metadata, "secret", noted)
    for _ in range(2):
        await users.have_secret(trio.CapacityLimiter(1))
    assert users.secret == secret("unknown users")
    assert len(threads) == 1 and threading.main_thread() not in threads
