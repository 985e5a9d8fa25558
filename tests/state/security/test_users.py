"""Users in memory and on the disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leafcuttr.errors import StorageError
from leafcuttr.state.metadata import MetadataStore
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
