"""Heartbeats, checkpoints and offset syncs as bytes; what MirrorMaker's own classes say of them is in test_java."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_forward.mm2.records import Checkpoint, Heartbeat, OffsetSync
from leafcuttr_sdk.types import TopicPartition

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
PARTITIONS = st.builds(TopicPartition, TEXTS, st.integers(-(1 << 31), (1 << 31) - 1))


def test_a_heartbeat() -> None:
    beat = Heartbeat("edge", "hub", 1_700_000_000_000)
    assert beat.key() == b"\x00\x04edge\x00\x03hub"
    assert beat.value() == b"\x00\x00" + (1_700_000_000_000).to_bytes(8, "big")


def test_a_checkpoint() -> None:
    checkpoint = Checkpoint("readers", TopicPartition("edge.orders", 3), 17, 11, "m")
    assert checkpoint.key() == b"\x00\x07readers\x00\x0bedge.orders\x00\x00\x00\x03"
    assert checkpoint.value() == b"\x00\x00" + bytes(7) + b"\x11" + bytes(7) + b"\x0b\x00\x01m"


def test_an_offset_sync() -> None:
    sync = OffsetSync(TopicPartition("orders", 1), 5, 4)
    assert sync.key() == b"\x00\x06orders\x00\x00\x00\x01"
    assert sync.value() == bytes(7) + b"\x05" + bytes(7) + b"\x04"


@given(st.builds(Heartbeat, TEXTS, TEXTS, LONGS))
def test_heartbeats_read_back(beat: Heartbeat) -> None:
    assert Heartbeat.parse(beat.key(), beat.value()) == beat


@given(st.builds(Checkpoint, TEXTS, PARTITIONS, LONGS, LONGS, TEXTS))
def test_checkpoints_read_back(checkpoint: Checkpoint) -> None:
    assert Checkpoint.parse(checkpoint.key(), checkpoint.value()) == checkpoint


@given(st.builds(OffsetSync, PARTITIONS, LONGS, LONGS))
def test_offset_syncs_read_back(sync: OffsetSync) -> None:
    assert OffsetSync.parse(sync.key(), sync.value()) == sync


@given(st.none() | st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_in_a_line(key: bytes | None, value: bytes | None) -> None:
    for kind in (Heartbeat, Checkpoint, OffsetSync):
        try:
            kind.parse(key, value)
        except ValueError as error:
            assert str(error) and "\n" not in str(error)


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        (None, b"", "no heartbeat: key or value is null"),
        (b"\x00\x01a\x00\x01b", None, "no heartbeat: key or value is null"),
        (b"\x00\x01a\x00\x01b", b"\x00\x01" + bytes(8), "a heartbeat of version 1; known is 0"),
        (b"\x00\x01a\x00\x02b", b"\x00\x00" + bytes(8), "no heartbeat: it ends after 6 bytes"),
        (b"\x00\x01a\xff\xff", b"\x00\x00" + bytes(8), "no heartbeat: a text is -1 bytes long"),
        (b"\x00\x01\xff\x00\x01b", b"\x00\x00" + bytes(8), "no heartbeat: a text is no UTF-8"),
    ],
    ids=["no key", "no value", "version", "short", "null text", "no UTF-8"],
)
def test_what_is_no_heartbeat(key: bytes | None, value: bytes | None, line: str) -> None:
    with pytest.raises(ValueError, match=f"^{line}$"):
        Heartbeat.parse(key, value)


def test_a_metadata_that_is_too_long_is_left_out() -> None:
    checkpoint = Checkpoint("g", TopicPartition("t", 0), 1, 1, "m" * 0x8000)
    assert Checkpoint.parse(checkpoint.key(), checkpoint.value()).metadata == ""


def test_a_name_that_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="32768 bytes; allowed are 32767"):
        Checkpoint("g" * 0x8000, TopicPartition("t", 0), 1, 1).key()
