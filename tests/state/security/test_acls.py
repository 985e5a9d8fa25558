"""ACLs in memory and on the disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from leafcuttr.errors import InvalidRequest, StorageError
from leafcuttr.state.metadata import MetadataStore
from leafcuttr.state.security import acls as module
from leafcuttr.state.security.acl import (
    Acl,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    PatternType,
)
from leafcuttr.state.security.acls import Acls


@pytest.fixture
def metadata(tmp_path: Path) -> Iterator[MetadataStore]:
    found = MetadataStore.open(tmp_path)
    yield found
    found.close()


def acl(name: str, operation: AclOperation = AclOperation.READ) -> Acl:
    return Acl(
        AclResourceType.TOPIC, name, PatternType.PREFIXED, "User:a", "*", operation, AclPermission.ALLOW
    )


async def test_what_was_changed_is_there_after_a_restart(metadata: MetadataStore) -> None:
    acls = Acls(metadata)
    changes: list[tuple[Sequence[Acl], Sequence[Acl]]] = []
    acls.on_change(lambda new, gone: changes.append((new, gone)))
    one, two, three = acl("one"), acl("two"), acl("three")
    await acls.create([two, one, two])
    await acls.create([one, three])
    assert await acls.delete([AclFilter(name="one"), AclFilter(name="none"), AclFilter(name="one")]) == [
        [one],
        [],
        [one],
    ]
    assert changes == [([two, one], []), ([three], []), ([], [one])]
    assert (list(acls), len(acls), two in acls, one in acls) == ([two, three], 2, True, False)
    assert set(Acls(metadata)) == {two, three}
    assert await Acls(metadata).matching(AclFilter(name="two")) == [two]


async def test_what_changes_nothing_is_not_stored(metadata: MetadataStore) -> None:
    acls = Acls(metadata)
    await acls.create([acl("one")])
    before = metadata.changes
    await acls.create([acl("one")])
    await acls.create([])
    assert await acls.delete([AclFilter(name="none")]) == [[]]
    assert metadata.changes == before


async def test_what_the_disk_refuses_changes_nothing(
    metadata: MetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    acls = Acls(metadata)
    await acls.create([acl("one")])
    acls.on_change(lambda *_: pytest.fail("nothing has changed"))

    def refuse(*_: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(metadata, "change_acls", refuse)
    with pytest.raises(StorageError):
        await acls.create([acl("two")])
    with pytest.raises(StorageError):
        await acls.delete([AclFilter()])
    assert list(acls) == [acl("one")]


async def test_too_many_at_once_are_not_deleted(
    metadata: MetadataStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    acls = Acls(metadata)
    await acls.create([acl(str(number)) for number in range(4)])
    monkeypatch.setattr(module, "MOST_AT_ONCE", 3)
    with pytest.raises(InvalidRequest, match="more than 3 acls"):
        await acls.delete([AclFilter()])
    monkeypatch.setattr(module, "MOST_AT_ONCE", 4)
    monkeypatch.setattr(module, "_MOST_TAKEN", 7)
    with pytest.raises(InvalidRequest):
        await acls.delete([AclFilter(), AclFilter()])
    assert len(acls) == 4
    assert await acls.delete([AclFilter()]) == [[acl(str(number)) for number in range(4)]]
