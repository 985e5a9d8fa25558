"""At the limit of open files what needs a descriptor gets one that somebody else can have again."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from leafcuttr.errors import StorageError
from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.log.files.pool import FilePool
from leafcuttr.runtime.descriptors import NO_DESCRIPTORS, DescriptorGuard


class Limit:
    """Opens nothing before `free` holders have let one go."""

    def __init__(self, error: int, free: int) -> None:
        self.error = error
        self.free = free
        self.tries = 0

    def __call__(self) -> str:
        self.tries += 1
        if self.free:
            self.free -= 1
            raise OSError(self.error, os.strerror(self.error))
        return "opened"


class Owner:
    file: OpenFile | None = None


def pool_of(guard: DescriptorGuard, folder: Path, count: int) -> tuple[FilePool, list[Owner]]:
    pool, owners = FilePool(descriptors=guard), [Owner() for _ in range(count)]
    for number, owner in enumerate(owners):
        pool.open(owner, str(folder / str(number)), create=True)
    return pool, owners


@pytest.mark.parametrize("error", NO_DESCRIPTORS)
def test_the_pool_lets_one_go_for_each_that_is_missing(tmp_path: Path, error: int) -> None:
    guard = DescriptorGuard()
    pool, owners = pool_of(guard, tmp_path, 5)
    opens = Limit(error, 3)
    assert guard.opening(opens) == "opened"
    assert (opens.tries, len(pool)) == (4, 2)
    assert sum(owner.file is None for owner in owners) == 3


def test_the_next_holder_is_asked_when_the_first_has_none(tmp_path: Path) -> None:
    guard = DescriptorGuard()
    first, _ = pool_of(guard, tmp_path, 1)
    (tmp_path / "other").mkdir()
    second, _ = pool_of(guard, tmp_path / "other", 2)
    assert guard.opening(Limit(errno.EMFILE, 2)) == "opened"
    assert (len(first), len(second)) == (0, 1)


def test_with_nothing_left_the_error_is_raised(tmp_path: Path) -> None:
    guard = DescriptorGuard()
    pool, _ = pool_of(guard, tmp_path, 2)
    opens = Limit(errno.EMFILE, 3)
    with pytest.raises(OSError, match="Too many open files"):
        guard.opening(opens)
    assert (opens.tries, len(pool)) == (3, 0)


def test_another_error_takes_nothing_from_anybody(tmp_path: Path) -> None:
    guard = DescriptorGuard()
    pool, _ = pool_of(guard, tmp_path, 1)
    with pytest.raises(FileNotFoundError):
        guard.opening(lambda: os.open(tmp_path / "none", os.O_RDONLY))
    assert len(pool) == 1


def test_an_import_that_finds_no_descriptor_is_a_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard = DescriptorGuard()
    pool, _ = pool_of(guard, tmp_path, 1)
    done: list[str] = []

    def late(*names: str) -> None:
        if len(pool):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        done.extend(names)

    monkeypatch.setattr("leafcuttr.runtime.descriptors.import_late", late)
    guard.import_late("one", "two")
    assert done == ["one", "two"]

    def never(*names: str) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr("leafcuttr.runtime.descriptors.import_late", never)
    with pytest.raises(StorageError, match="Too many open files"):
        guard.import_late("three")
