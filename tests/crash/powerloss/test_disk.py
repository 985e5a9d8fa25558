"""The model of a disk that loses its power: what it keeps, and what it may lose."""

from __future__ import annotations

from crash.powerloss.disk import PAGE, SECTOR, Chance, Disk, Fate, Outcome, plain_outcomes
from crash.powerloss.recording import Entry

ROOT, FOLDER, FILE, OTHER = 1, 2, 3, 4
NOTHING = Outcome("nothing", Fate.LOST, False)
EVERYTHING = Outcome("everything", Fate.THERE, True)
NAMES = Outcome("names and sizes", Fate.SIZE, True)


def made(*, synced: bool = True) -> Disk:
    """A folder with an empty file; their names are on the disk."""
    disk = Disk(ROOT)
    disk.take([Entry("M", FOLDER, 0, 0, "/d", b""), Entry("O", FILE, 1, 0, "/d/f", b"")])
    if synced:
        disk.take([*sync(ROOT), *sync(FOLDER)])
    return disk


def sync(inode: int, number: int = 7) -> list[Entry]:
    return [Entry("S", inode, 0, number, "", b""), Entry("s", inode, 0, number, "", b"")]


def wrote(at: int, data: bytes, inode: int = FILE) -> Entry:
    return Entry("W", inode, at, 0, "", data)


def test_names_are_lost_until_both_folders_are_synced() -> None:
    disk = made(synced=False)
    disk.take([wrote(0, b"abc"), *sync(FILE)])
    assert disk.left(NOTHING) == {}
    disk.take(sync(FOLDER))
    assert disk.left(NOTHING) == {}
    disk.take(sync(ROOT))
    assert disk.left(NOTHING) == {"d": None, "d/f": b"abc"}


def test_a_sync_keeps_what_was_written_before_it_began() -> None:
    disk = made()
    begin, end = sync(FILE)
    disk.take([wrote(0, b"abc"), begin, wrote(3, b"def")])
    assert disk.left(NOTHING)["d/f"] == b""
    disk.take([end])
    assert disk.left(NOTHING)["d/f"] == b"abc"
    assert disk.left(EVERYTHING)["d/f"] == b"abcdef"


def test_a_sync_that_fails_keeps_nothing() -> None:
    disk = made()
    disk.take([wrote(0, b"abc"), sync(FILE)[0], Entry("s", FILE, -1, 7, "", b"")])
    assert disk.left(NOTHING)["d/f"] == b""


def test_a_write_through_keeps_itself_and_the_size_alone() -> None:
    disk = made()
    through = [Entry("w", FILE, 3, 9, "", b"def"), Entry("e", FILE, 3, 9, "", b"")]
    disk.take([wrote(0, b"abc"), *through])
    assert disk.left(NOTHING)["d/f"] == b"\0\0\0def"
    disk.take(
        [Entry("T", FILE, 2, 0, "", b""), Entry("w", FILE, 2, 9, "", b"XY"), Entry("e", FILE, 1, 9, "", b"")]
    )
    assert disk.left(NOTHING)["d/f"] == b"\0\0X"


def test_a_write_through_may_be_cut_short_until_it_returns() -> None:
    disk = made()
    disk.take([Entry("w", FILE, 0, 9, "", b"a" * 3 * SECTOR)])
    found = {disk.left(Chance(seed)).get("d/f") for seed in range(300)}
    torn = [content for content in found if content and content.strip(b"\0") and content != b"a" * 3 * SECTOR]
    assert {b"", b"a" * 3 * SECTOR, bytes(3 * SECTOR)} <= found
    assert torn
    for content in torn:
        for at in range(0, 3 * SECTOR, SECTOR):
            assert content[at : at + SECTOR] in (b"a" * SECTOR, bytes(SECTOR))


def test_size_without_data_reads_as_zeros() -> None:
    disk = made()
    disk.take([wrote(0, b"abc"), *sync(FILE), wrote(3, b"d" * PAGE), Entry("A", FILE, 9000, 0, "", b"")])
    assert disk.left(NAMES)["d/f"] == b"abc" + bytes(9000 - 3)


def test_a_rename_is_there_or_not_and_never_half() -> None:
    disk = made()
    disk.take([Entry("O", OTHER, 1, 0, "/d/f.tmp", b""), wrote(0, b"new", OTHER)])
    disk.take([Entry("R", 0, 0, 0, "/d/f.tmp", b"/d/f")])
    assert disk.left(NOTHING) == {"d": None, "d/f": b""}
    assert disk.left(EVERYTHING) == {"d": None, "d/f": b"new"}
    assert disk.left(NAMES) == {"d": None, "d/f": bytes(3)}
    for seed in range(100):
        assert disk.left(Chance(seed)).keys() <= {"d", "d/f", "d/f.tmp"}
        assert "d/f" in disk.left(Chance(seed))


def test_a_deleted_file_may_come_back() -> None:
    disk = made()
    disk.take([wrote(0, b"abc"), *sync(FILE), Entry("U", 0, 0, 0, "/d/f", b"")])
    assert disk.left(NOTHING) == {"d": None, "d/f": b"abc"}
    assert disk.left(EVERYTHING) == {"d": None}
    disk.take(sync(FOLDER))
    assert disk.left(NOTHING) == {"d": None}


def test_changes_of_names_are_lost_from_the_end_in_every_folder() -> None:
    disk = made()
    names = [f"/d/{number}" for number in range(10)]
    disk.take([Entry("O", 100 + number, 1, 0, name, b"") for number, name in enumerate(names)])
    for seed in range(100):
        left = disk.left(Chance(seed)).keys() - {"d", "d/f"}
        assert left == {name[1:] for name in names[: len(left)]}


def test_a_seed_says_everything() -> None:
    disk = made()
    disk.take([wrote(at, b"abc") for at in range(0, 3000, 3)])
    assert [disk.left(Chance(seed)) for seed in range(20)] == [disk.left(Chance(seed)) for seed in range(20)]
    assert len({outcome.name for outcome in plain_outcomes()}) == len(plain_outcomes())


def test_broken_syncs_keep_nothing() -> None:
    disk = Disk(ROOT, breaks="/f$")
    disk.take([Entry("M", FOLDER, 0, 0, "/d", b""), Entry("O", FILE, 1, 0, "/d/f", b"")])
    disk.take([wrote(0, b"abc"), *sync(FILE), *sync(ROOT), *sync(FOLDER)])
    assert disk.left(NOTHING) == {"d": None, "d/f": b""}
