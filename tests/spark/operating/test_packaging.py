"""The archive for executors."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from leafcuttr_spark.operating import packaging
from leafcuttr_spark.operating.packaging import PackagingError, members, required, write_archive

TASK = """
import leafcuttr_spark.source.reading, leafcuttr_spark.sink.writing, leafcuttr_spark.formats
from leafcuttr_sdk.blocking_peers import open_peer
with open_peer({"bootstrap.servers": "127.0.0.1:1"}) as peer:
    print(peer.name, leafcuttr_spark.__file__)
import shop.functions
"""


def installed(*names: str) -> bool:
    try:
        return all(distribution(name) for name in names)
    except ModuleNotFoundError:
        return False


WITH_ALL = pytest.mark.skipif(
    not installed("pandas", "pyarrow"), reason="the extra spark-worker is not installed"
)


@WITH_ALL
def test_what_tasks_need_and_nothing_of_brokers() -> None:
    found = {one.metadata["Name"].lower() for one in required()}
    assert {"numpy", "pandas", "pyarrow", "fastavro", "protobuf", "trio", "crc32c"} <= found
    assert not found & {"leafcuttr", "pyspark", "confluent-kafka", "rich", "click", "quart-trio", "pytest"}


@WITH_ALL
def test_files_are_named_as_they_are_imported() -> None:
    found = {member.name for member in members(["support.waiting"])}
    assert {"leafcuttr/__init__.py", "leafcuttr_sdk/peers.py", "leafcuttr_spark/codec/avro.py"} <= found
    assert {"pyspark_leafcuttr.py", "numpy/__init__.py", "support/waiting.py"} <= found
    assert any(
        name.startswith("leafcuttr-") and name.endswith(".dist-info/entry_points.txt") for name in found
    )
    assert not any("__pycache__" in name or ".." in name for name in found)


def test_what_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(PackagingError, match="there is no module nowhere"):
        list(packaging._of_module("nowhere"))
    monkeypatch.setattr(packaging, "_MODULES", ("nowhere",))
    with pytest.raises(PackagingError):
        write_archive(tmp_path / "archive.tar.gz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("marker", "holds"),
    [
        ("", True),
        ('sys_platform == "win32"', False),
        ("os_name == 'nt'", False),
        ('python_version < "3.0"', False),
        ('python_version >= "3.11"', True),
        ('implementation_name != "cpython" and os_name == "posix"', False),
    ],
)
def test_markers(marker: str, holds: bool) -> None:
    assert packaging._holds(marker) is holds


@WITH_ALL
@pytest.mark.long
def test_a_python_without_anything_runs_tasks_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own" / "shop"
    own.mkdir(parents=True)
    (own / "__init__.py").touch()
    (own / "functions.py").touch()
    monkeypatch.syspath_prepend(str(own.parent))
    path, unpacked = tmp_path / "leafcuttr.tar.gz", tmp_path / "unpacked"
    count = write_archive(path, ["shop"])
    with tarfile.open(path) as archive:
        assert len(archive.getnames()) == count + 1
        archive.extractall(unpacked, filter="data")
    said = subprocess.run(
        [sys.executable, "-S", "-c", TASK],
        env={"PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
        cwd="/",
    )
    assert (said.stdout, said.stderr) == (f"127.0.0.1:1 {unpacked}/leafcuttr_spark/__init__.py\n", "")
