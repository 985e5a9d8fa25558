"""The pool of open files, and regions of them."""

import os
from pathlib import Path

from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.log.files.pool import FilePool
from leafcuttr.log.files.region import FileRegion


class Owner:
    file: OpenFile | None = None


def owners(folder: Path, pool: FilePool, count: int) -> list[Owner]:
    out = [Owner() for _ in range(count)]
    for number, owner in enumerate(out):
        pool.open(owner, str(folder / str(number)), create=True)
    return out


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    pool = FilePool(3)
    first, second, third = owners(tmp_path, pool, 3)
    for owner in (first, second, third):
        assert owner.file is not None
        owner.file.used = False
    pool.open(first, str(tmp_path / "0"))
    fourth = Owner()
    pool.open(fourth, str(tmp_path / "new"), create=True)
    assert len(pool) == 3
    assert second.file is None
    assert first.file is not None and third.file is not None and fourth.file is not None


def test_an_evicted_descriptor_closes_with_its_last_region(tmp_path: Path) -> None:
    pool = FilePool(1)
    (owner,) = owners(tmp_path, pool, 1)
    assert owner.file is not None
    os.write(owner.file.fd, b"hello")
    region, fd = FileRegion(owner.file, 1, 3), owner.file.fd
    pool.open(Owner(), str(tmp_path / "other"), create=True)
    assert owner.file is None
    assert region.read() == b"ell"
    del region
    try:
        target = str(Path(f"/proc/self/fd/{fd}").readlink())
    except FileNotFoundError:
        target = ""
    assert target != str(tmp_path / "0")


def test_ten_thousand_files_through_fifty_descriptors(tmp_path: Path) -> None:
    pool = FilePool(50)
    before = len(list(Path("/proc/self/fd").iterdir()))
    all_owners = owners(tmp_path, pool, 2000)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 51
    for number in (0, 999, 1999):
        assert pool.open(all_owners[number], str(tmp_path / str(number))).fd >= 0
    for owner in all_owners:
        pool.close(owner)
    assert len(pool) == 0


def test_cached_or_not(tmp_path: Path) -> None:
    path = tmp_path / "data"
    content = os.urandom(700_000)
    path.write_bytes(content)
    pool, owner = FilePool(), Owner()
    file = pool.open(owner, str(path))
    region = FileRegion(file, 0, len(content))
    os.fsync(file.fd)
    os.posix_fadvise(file.fd, 0, 0, os.POSIX_FADV_DONTNEED)
    cold = region.is_cached()
    region.warm()
    assert region.is_cached()
    assert region.read() == content
    assert file.pread(10, 699_995, may_block=False) == content[-5:]
    assert isinstance(cold, bool)  # a file system in memory is never cold


def test_what_is_open_still_of_what_was_let_go_is_counted(tmp_path: Path) -> None:
    """By an answer, or by who has just used it; however it came to be let go."""
    pool = FilePool(2)
    first, second = owners(tmp_path, pool, 2)
    assert first.file is not None and second.file is not None
    regions = [FileRegion(first.file, 0, 1), FileRegion(second.file, 0, 1)]
    assert pool.let_go == 0, "the pool has them"
    for number in range(2, 4):
        pool.open(Owner(), str(tmp_path / str(number)), create=True)
    assert pool.let_go == 2
    for number in range(4, 9):
        pool.open(Owner(), str(tmp_path / str(number)), create=True)
    assert pool.let_go == 2, "others are closed as they go"
    regions.pop()
    assert pool.let_go == 1
    third = Owner()
    regions.append(FileRegion(pool.open(third, str(tmp_path / "3")), 0, 1))
    assert pool.release_one() and pool.release_one() and not pool.release_one()
    assert pool.let_go == 2
    regions.clear()
    assert (pool.let_go, len(pool)) == (0, 0)
