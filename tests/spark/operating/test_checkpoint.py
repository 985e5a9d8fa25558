"""What Spark's checkpoint says, and where it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.operating.checkpoint import Checkpoint, read_checkpoint
from leafcuttr_spark.operating.places import checkpoint_of, local_path, own_folder
from leafcuttr_spark.pipelines.model import Pipeline

POSITIONS = json.dumps({"version": 1, "offsets": {"orders": {"0": 42, "1": 17}}, "topics": {}})
OTHER = json.dumps({"version": 1, "offsets": {"payments": {"0": 3}}, "topics": {}})
ABOUT = json.dumps({"batchWatermarkMs": 5000, "batchTimestampMs": 9000, "conf": {}})


def made(folder: Path, *, planned: int, done: int, lines: tuple[str, ...] = (POSITIONS, OTHER)) -> Path:
    """As Spark leaves it."""
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"b0a3"}')
    for number in range(planned + 1):
        (folder / "offsets" / str(number)).write_text("\n".join(["v1", ABOUT, *lines]))
        (folder / "offsets" / f".{number}.crc").write_text("x")
    for number in range(done + 1):
        (folder / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":6000}')
    return folder


def test_how_far_it_has_come(tmp_path: Path) -> None:
    found = read_checkpoint(made(tmp_path, planned=11, done=10))
    offsets = {
        TopicPartition("orders", 0): 42,
        TopicPartition("orders", 1): 17,
        TopicPartition("payments", 0): 3,
    }
    assert found == Checkpoint("b0a3", 11, 10, offsets, 5000, 9000)
    assert found.has_begun


def test_one_that_has_not_begun(tmp_path: Path) -> None:
    assert read_checkpoint(tmp_path) == Checkpoint("")
    assert not read_checkpoint(tmp_path / "nowhere").has_begun
    first = read_checkpoint(made(tmp_path, planned=0, done=-1))
    assert first == Checkpoint("b0a3", 0, None)
    assert first.has_begun


@pytest.mark.parametrize("lines", [(), ("-",), ("{", "[]", "7"), ('{"orders":{"0":5}}',), ("[" * 100_000,)])
def test_what_is_not_ours_is_left_out(tmp_path: Path, lines: tuple[str, ...]) -> None:
    found = read_checkpoint(made(tmp_path, planned=0, done=0, lines=lines))
    assert found == Checkpoint("b0a3", 0, 0, {}, 5000, 9000)


def test_damage(tmp_path: Path) -> None:
    made(tmp_path, planned=1, done=1)
    (tmp_path / "metadata").write_text("[]")
    (tmp_path / "offsets" / "1").write_bytes(b"\xff\xfe")
    assert read_checkpoint(tmp_path) == Checkpoint("", 1, 1)
    (tmp_path / "offsets" / "1").write_text("v1\n7")
    assert read_checkpoint(tmp_path) == Checkpoint("", 1, 1)


def test_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pipelines" / "orders.yaml"
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    monkeypatch.setenv("HOME", "/home/me")

    def at(checkpoint: str | None) -> str:
        return checkpoint_of(Pipeline("orders", {}, checkpoint=checkpoint, file=file))

    assert at(None) == "/state/leafcuttr/spark/orders"
    assert at("./state/../x") == str(tmp_path / "pipelines" / "x")
    assert at("/abs") == "/abs"
    assert at("~/x") == "/home/me/x"
    assert at("s3a://bucket/x") == "s3a://bucket/x"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert at(None) == "/home/me/.local/state/leafcuttr/spark/orders"


def test_which_folder_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert local_path("/a") == Path("/a")
    assert local_path("file:///a/b") == local_path("file:/a/b") == Path("/a/b")
    assert local_path("hdfs://name/a") is None
    assert own_folder("/a", "p") == Path("/a/leafcuttr")
    assert own_folder("file:/a", "p") == Path("/a/leafcuttr")
    address = own_folder("s3a://b/a", "p")
    assert address.parent.parent == Path("/state/leafcuttr/spark") and address.name == "leafcuttr"
    assert address.parent.name.startswith("p.")
    assert own_folder("s3a://b/a/", "p") == address != own_folder("s3a://b/c", "p")
