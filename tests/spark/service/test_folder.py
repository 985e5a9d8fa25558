"""Which pipelines a folder has."""

from __future__ import annotations

from pathlib import Path

import pytest

from leafcuttr_spark.service.folder import LARGEST, MOST, FolderError, Found, scan, settled


def test_files_by_their_names(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.txt", ".d.yaml", "e.yaml~"):
        (tmp_path / name).write_text(name)
    (tmp_path / "f.yaml").mkdir()
    found = scan(tmp_path)
    assert list(found) == ["a", "b"]
    assert [one.path.name for one in found.values()] == ["a.yml", "b.yaml"]
    assert all(one.digest and not one.trouble for one in found.values())


def test_what_cannot_be_run_has_a_line(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a")
    (tmp_path / "a.yml").write_text("a")
    (tmp_path / "b\nc.yaml").write_text("b")
    (tmp_path / "big.yaml").write_bytes(bytes(LARGEST + 1))
    (tmp_path / "fits.yaml").write_bytes(bytes(LARGEST))
    (tmp_path / "gone.yaml").symlink_to(tmp_path / "nowhere")
    found = scan(tmp_path)
    assert {name: one.trouble for name, one in found.items()} == {
        "a": "",
        "a.yml": "a.yaml is a pipeline of that name",
        "'b\\nc.yaml'": "its name has to be of letters, digits, '.', '_' and '-', 100 at most",
        "big": f"{tmp_path}/big.yaml has more than {LARGEST} bytes",
        "fits": "",
        "gone": f"{tmp_path}/gone.yaml cannot be read: No such file or directory",
    }
    assert all(bool(one.digest) is not bool(one.trouble) for one in found.values())


def test_there_are_so_many_at_most(tmp_path: Path) -> None:
    for number in range(MOST + 1):
        (tmp_path / f"{number:04}.yaml").write_text("x")
    found = scan(tmp_path)
    assert [name for name, one in found.items() if one.trouble] == [f"{MOST:04}"]
    assert found[f"{MOST:04}"].trouble == f"a broker runs {MOST} at most"


def test_a_folder_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="nowhere cannot be read: No such file or directory"):
        scan(tmp_path / "nowhere")


def test_settled_is_what_two_scans_have_found() -> None:
    old, new = Found(Path("a"), "1"), Found(Path("a"), "2")
    assert settled({"a": old}, {"a": old, "b": new}) == {"a": old}
    assert settled({"a": old}, {"a": new}) == {}
    assert settled({"a": old}, {}) == {}
