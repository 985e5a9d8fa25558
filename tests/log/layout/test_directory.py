"""The data directory: held by one process, known to Kafka, upgraded or refused in one line."""

import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from leafcuttr.errors import StartError
from leafcuttr.log.layout import directory
from leafcuttr.log.layout.directory import DataDirectory, identity, lock_owner, written_format


def refusal(path: Path, **arguments: object) -> str:
    with pytest.raises(StartError) as caught:
        DataDirectory.open(path, **{"node_id": 1, **arguments})  # type: ignore[arg-type]
    line = str(caught.value)
    assert str(path) in line
    assert "\n" not in line
    return line


def test_a_new_directory_gets_an_identity_and_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "data"
    first = DataDirectory.open(path, node_id=1)
    first.close()
    second = DataDirectory.open(path, node_id=1, cluster_id="another")
    second.close()
    assert (first.cluster_id, first.directory_id) == (second.cluster_id, second.directory_id)
    pairs = (path / "meta.properties").read_text()
    assert re.fullmatch(
        rf"cluster.id={first.cluster_id}\ndirectory.id={first.directory_id}\nnode.id=1\nversion=1\n", pairs
    )
    assert re.fullmatch(r"[\w-]{22}", first.cluster_id)


def test_kafkas_own_meta_properties_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(
        "#\n#Mon Jan 01 00:00:00 UTC 2026\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\\=\\=\nversion=1\nnode.id=7\n"
    )
    opened = DataDirectory.open(tmp_path, node_id=7)
    opened.close()
    assert opened.cluster_id == "MkU3OEVBNTcwNTJENDM2Qg=="
    assert f"directory.id={opened.directory_id}\n" in (tmp_path / "meta.properties").read_text()


def test_another_node_is_refused(tmp_path: Path) -> None:
    DataDirectory.open(tmp_path, node_id=1).close()
    assert "node.id 1" in refusal(tmp_path, node_id=2)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "version None"),
        ("version=0\nbroker.id=1\n", "version '0'"),
        ("version=1\nnode.id=1\n", "no cluster.id"),
    ],
)
def test_a_meta_properties_that_says_too_little_is_refused(tmp_path: Path, content: str, fault: str) -> None:
    (tmp_path / "meta.properties").write_text(content)
    assert fault in refusal(tmp_path)


def test_a_second_broker_is_refused_and_a_later_one_is_not(tmp_path: Path) -> None:
    held = DataDirectory.open(tmp_path, node_id=1)
    assert "in use by another broker (process " in refusal(tmp_path)
    held.close()
    held.close()
    DataDirectory.open(tmp_path, node_id=1).close()


def test_another_process_is_refused(tmp_path: Path) -> None:
    held = DataDirectory.open(tmp_path, node_id=1)
    code = (
        "import sys; from pathlib import Path\n"
        "from leafcuttr.errors import StartError\n"
        "from leafcuttr.log.layout.directory import DataDirectory\n"
        "try: DataDirectory.open(Path(sys.argv[1]), node_id=1)\n"
        "except StartError as error: sys.exit(str(error))\n"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    held.close()
    assert answer.returncode == 1
    assert "in use by another broker" in answer.stderr


def test_a_lock_left_by_a_dead_process_does_not_hold(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("1\n")
    DataDirectory.open(tmp_path, node_id=1).close()


def test_the_flock_of_a_broker_that_died_while_it_forked_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = hold_as_a_fork_of_the_dead(tmp_path)
    waits: list[float] = []

    def released(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            left.close()

    monkeypatch.setattr(directory, "sleep", released)
    DataDirectory.open(tmp_path, node_id=1).close()
    assert len(waits) == 3


def test_but_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(directory, "sleep", waits.append)
    with hold_as_a_fork_of_the_dead(tmp_path):
        assert "in use by another broker (process 999999999)" in refusal(tmp_path)
    assert 1 <= sum(waits) <= 3


def hold_as_a_fork_of_the_dead(path: Path) -> IO[str]:
    """What is left between fork and exec: the inherited flock, and no record lock."""
    file = (path / ".lock").open("w+")
    print("999999999", file=file, flush=True)
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def test_an_older_directory_is_upgraded_step_by_step(tmp_path: Path) -> None:
    DataDirectory.open(tmp_path, node_id=1).close()
    steps: list[str] = []
    upgrades = {1: lambda path: steps.append(f"1 {path}"), 2: lambda path: steps.append(f"2 {path}")}
    DataDirectory.open(tmp_path, node_id=1, format_version=3, upgrades=upgrades).close()
    assert steps == [f"1 {tmp_path}", f"2 {tmp_path}"]
    assert (tmp_path / directory.FORMAT_FILE).read_text() == "version=3\n"


def test_an_upgrade_that_fails_is_taken_up_again(tmp_path: Path) -> None:
    DataDirectory.open(tmp_path, node_id=1).close()

    def fail(path: Path) -> None:
        raise OSError(28, "No space left on device", str(path / "x"))

    assert "No space left" in refusal(tmp_path, format_version=3, upgrades={1: lambda path: None, 2: fail})
    assert (tmp_path / directory.FORMAT_FILE).read_text() == "version=2\n"
    done: list[Path] = []
    DataDirectory.open(tmp_path, node_id=1, format_version=3, upgrades={2: done.append}).close()
    assert done == [tmp_path]


def test_a_newer_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / directory.FORMAT_FILE).write_text("version=2\n")
    assert "newer LeafCuttr (format 2, this one knows 1)" in refusal(tmp_path)


def test_a_format_without_an_upgrade_is_refused(tmp_path: Path) -> None:
    (tmp_path / directory.FORMAT_FILE).write_text("version=0\n")
    assert "format 0, which this LeafCuttr cannot upgrade" in refusal(tmp_path)


def test_a_format_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / directory.FORMAT_FILE).write_bytes(b"\xff\xff")
    assert "does not say version=N" in refusal(tmp_path)


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_text("not a directory")
    assert "cannot be used" in refusal(path)


def test_a_place_where_nothing_can_be_made_is_refused() -> None:
    assert "cannot be used" in refusal(Path("/proc/self/leafcuttr"))


def test_what_others_than_its_broker_read(tmp_path: Path) -> None:
    assert written_format(tmp_path) is None
    opened = DataDirectory.open(tmp_path, node_id=7)
    opened.close()
    assert (written_format(tmp_path), lock_owner(tmp_path)) == (1, os.getpid())
    found = identity(tmp_path)
    assert (found["node.id"], found["cluster.id"], found["directory.id"]) == (
        "7",
        opened.cluster_id,
        opened.directory_id,
    )


@pytest.mark.parametrize(
    ("text", "found"), [("version=12\n", 12), ("version=x", "version=x"), ("other=1", "other=1"), ("", "")]
)
def test_the_format_that_is_written(tmp_path: Path, text: str, found: int | str) -> None:
    (tmp_path / "leafcuttr.format").write_text(text)
    assert written_format(tmp_path) == found


@pytest.mark.parametrize(("text", "owner"), [("12\n", 12), ("", None), ("no number", None)])
def test_the_process_that_has_the_lock(tmp_path: Path, text: str, owner: int | None) -> None:
    (tmp_path / ".lock").write_text(text)
    assert lock_owner(tmp_path) == owner
