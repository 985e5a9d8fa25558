"""Kafka's text files: what is written is read again, what is damaged is named."""

from pathlib import Path

import pytest

from leafcuttr.log.layout import checkpoints
from leafcuttr.log.layout.checkpoints import DamagedCheckpointError, uuid_bytes, uuid_text
from leafcuttr_sdk import TopicPartition

A_TOPIC_ID = bytes(range(16))


def test_an_offset_checkpoint_is_kafkas_text(tmp_path: Path) -> None:
    path = tmp_path / checkpoints.RECOVERY_POINTS
    offsets = {TopicPartition("a.b_c-d", 0): 7, TopicPartition("a.b_c-d", 12): 2**60}
    checkpoints.write_offsets(path, offsets)
    assert path.read_text() == f"0\n2\na.b_c-d 0 7\na.b_c-d 12 {2**60}\n"
    assert checkpoints.read_offsets(path) == offsets
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_missing_or_empty_checkpoint_is_empty(tmp_path: Path) -> None:
    path = tmp_path / checkpoints.LOG_START_OFFSETS
    assert checkpoints.read_offsets(path) == {}
    path.touch()
    assert checkpoints.read_offsets(path) == {}
    assert checkpoints.read_leader_epochs(path) == []
    assert checkpoints.read_topic_id(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"1\n0\n", "version '1'"),
        (b"0\n", "line 2"),
        (b"0\nx\n", "line 2"),
        (b"0\n2\na 0 1\n", "holds 1 entries"),
        (b"0\n1\na 0 1\nb 0 1\n", "holds 2 entries, line 2 promises 1"),
        (b"0\n1\na 0\n", "line 3 has 2 fields"),
        (b"0\n2\na 0 1\na 1 2 3\n", "line 4 has 4 fields instead of 3"),
        (b"0\n1\na -1 0\n", "negative"),
        (b"0\n1\na 0 x\n", "a 0 x"),
        (b"0\n1\na 0 -1\n", "negative"),
        (b"\xff\xfe\x00", "not text"),
    ],
)
def test_a_damaged_offset_checkpoint_is_named(tmp_path: Path, content: bytes, fault: str) -> None:
    path = tmp_path / checkpoints.RECOVERY_POINTS
    path.write_bytes(content)
    with pytest.raises(DamagedCheckpointError, match=fault) as caught:
        checkpoints.read_offsets(path)
    assert str(path) in str(caught.value)


def test_leader_epochs_rise(tmp_path: Path) -> None:
    path = tmp_path / checkpoints.LEADER_EPOCHS
    checkpoints.write_leader_epochs(path, [(0, 0), (3, 10)])
    assert path.read_text() == "0\n2\n0 0\n3 10\n"
    assert checkpoints.read_leader_epochs(path) == [(0, 0), (3, 10)]
    path.write_text("0\n2\n3 10\n0 0\n")
    with pytest.raises(DamagedCheckpointError, match="goes back"):
        checkpoints.read_leader_epochs(path)


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        (["3 10", "3 20"], "3 20 goes back"),
        (["3 10", "4 9"], "4 9 goes back"),
        (["-1 0"], "-1 0 goes back"),
        (["0 -1"], "0 -1 goes back"),
        ([f"{2**31} 0"], "no epoch is above 2147483647"),
        (["1 0 0"], "line 3 has 3 fields instead of 2"),
        (["x 0"], "x 0 is not a pair of numbers"),
    ],
)
def test_damaged_leader_epochs_are_named(tmp_path: Path, rows: list[str], fault: str) -> None:
    path = tmp_path / checkpoints.LEADER_EPOCHS
    path.write_text("\n".join(["0", str(len(rows)), *rows, ""]))
    with pytest.raises(DamagedCheckpointError, match=fault):
        checkpoints.read_leader_epochs(path)


@pytest.mark.parametrize("epochs", [[(3, 10), (4, 10)], [(0, 0)], [(2**31 - 1, 2**63 - 1)], []])
def test_leader_epochs_that_may_be(tmp_path: Path, epochs: list[tuple[int, int]]) -> None:
    """An epoch in which nothing was written begins where the next one does."""
    path = tmp_path / checkpoints.LEADER_EPOCHS
    checkpoints.write_leader_epochs(path, epochs)
    assert checkpoints.read_leader_epochs(path) == epochs


@pytest.mark.parametrize("content", [b"", bytes(50)])
def test_a_partition_metadata_that_was_lost_says_nothing(tmp_path: Path, content: bytes) -> None:
    """As the loss of power leaves one: empty, or zeros."""
    path = tmp_path / checkpoints.PARTITION_METADATA
    path.write_bytes(content)
    assert checkpoints.read_topic_id(path) is None


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"topic_id: AAECAwQFBgcICQoLDA0ODw\n", "says version 'nothing'"),
        (b"version: 0\n", "'' is not a Kafka UUID"),
        (b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0O\n", "not a Kafka UUID"),
        (b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODxAR\n", "not a Kafka UUID"),
        (b"\xff\xfe", "is not text"),
    ],
)
def test_a_damaged_partition_metadata_is_named(tmp_path: Path, content: bytes, fault: str) -> None:
    path = tmp_path / checkpoints.PARTITION_METADATA
    path.write_bytes(content)
    with pytest.raises(DamagedCheckpointError, match=fault) as caught:
        checkpoints.read_topic_id(path)
    assert str(path) in str(caught.value)


def test_a_topic_id_is_kafkas_text(tmp_path: Path) -> None:
    path = tmp_path / checkpoints.PARTITION_METADATA
    checkpoints.write_topic_id(path, A_TOPIC_ID)
    assert path.read_text() == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n"
    assert checkpoints.read_topic_id(path) == A_TOPIC_ID
    path.write_text("version: 0\ntopic_id: short\n")
    with pytest.raises(DamagedCheckpointError, match="not a Kafka UUID"):
        checkpoints.read_topic_id(path)
    path.write_text("version: 1\n")
    with pytest.raises(DamagedCheckpointError, match="version '1'"):
        checkpoints.read_topic_id(path)


def test_uuid_text_goes_both_ways() -> None:
    assert uuid_bytes(uuid_text(A_TOPIC_ID)) == A_TOPIC_ID
    assert uuid_text(b"\xff" * 16) == "_____________________w"
    with pytest.raises(ValueError, match="not a Kafka UUID"):
        uuid_bytes("not base64!")
