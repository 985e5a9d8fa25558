"""Positions as records: what is written, and what stands of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_forward.flows.positions import (
    POSITIONS,
    Position,
    Standing,
    batch_of,
    digest_of,
    ensure_topic,
    key_of,
    position_of,
    read_entries,
    read_positions,
    value_of,
)
from leafcuttr_forward.flows.spec import FLOWS_TOPIC
from leafcuttr_sdk.batches.header import CONTROL
from leafcuttr_sdk.records import NewBatch
from leafcuttr_sdk.types import TopicPartition
from support.flows import two_clusters
from support.forwarded_batches import Seen, stored

PARTITION = TopicPartition("orders", 3)


@given(
    st.builds(
        Position,
        st.integers(0, 1 << 62),
        st.integers(-1, 1 << 31),
        st.text(max_size=8),
        st.text(max_size=8),
        st.integers(-1, 1 << 62),
        st.text(max_size=8),
        st.integers(-1, 1 << 62),
    )
)
def test_a_position_is_read_as_it_was_written(position: Position) -> None:
    assert position_of(value_of(position)) == position


@pytest.mark.parametrize(
    "value", [b"", b"{", b"[]", b"3", b"{}", b'{"offset":"3"}', b'{"offset":-1}', b'{"offset":true}', b"\xff"]
)
def test_what_is_no_position(value: bytes) -> None:
    assert position_of(value) is None


def test_fields_of_other_types_and_later_versions_are_left_out() -> None:
    assert position_of(b'{"offset":3,"epoch":"x","later":1}') == Position(3)


def test_the_format() -> None:
    """Other programs may read it: it does not change."""
    assert key_of("f", "c", PARTITION) == b'{"flow":"f","cluster":"c","topic":"orders","partition":3}'
    assert value_of(Position(5)) == b'{"offset":5}'
    assert value_of(Position(5, 2, "ab", "id", 4, "d", 9)) == (
        b'{"offset":5,"epoch":2,"topic_id":"ab","source":"id","last":4,"digest":"d","target_offset":9}'
    )


def test_digests_tell_keys_from_values() -> None:
    found = {
        digest_of(key, value)
        for key, value in [(None, None), (b"", None), (None, b""), (b"a", b"b"), (b"ab", b""), (b"", b"ab")]
    }
    assert len(found) == 6
    assert digest_of(memoryview(b"a"), memoryview(b"b")) == digest_of(b"a", b"b")


# What stands


def marker(producer: int, kind: int, base: int) -> bytes:
    from leafcuttr_sdk.batches import BatchHeader
    from leafcuttr_sdk.batches.header import HEADER, seal

    key = b"\0\0" + kind.to_bytes(2, "big")
    data = bytearray(
        stored([(0, Seen(0, key, bytes(6)))], base=base, producer=producer, transactional=True).data
    )
    header = BatchHeader._make(HEADER.unpack_from(data))
    seal(data, header._replace(attributes=header.attributes | CONTROL))
    return bytes(data)


def written(key: bytes, value: bytes | None, base: int, producer: int = -1) -> bytes:
    return stored([(0, Seen(0, key, value))], base=base, producer=producer, transactional=producer >= 0).data


def entries(*data: bytes, position: int = 0) -> dict[bytes, bytes]:
    standing = Standing()
    for one in data:
        standing.take(one, position)
    return standing.entries


def test_the_last_value_stands_and_a_tombstone_takes_it_away() -> None:
    assert entries(written(b"a", b"1", 0) + written(b"a", b"2", 1) + written(b"b", b"3", 2)) == {
        b"a": b"2",
        b"b": b"3",
    }
    assert entries(written(b"a", b"1", 0), written(b"a", None, 1)) == {}


def test_a_transaction_counts_once_it_is_committed() -> None:
    first = written(b"a", b"1", 0)
    open_one = written(b"a", b"2", 1, producer=7)
    assert entries(first, open_one) == {b"a": b"1"}
    assert entries(first, open_one, marker(7, 0, 2)) == {b"a": b"1"}
    assert entries(first, open_one, marker(8, 1, 2)) == {b"a": b"1"}
    assert entries(first, open_one, marker(7, 1, 2)) == {b"a": b"2"}
    assert entries(open_one, marker(7, 0, 2), written(b"b", b"3", 3, producer=7), marker(7, 1, 4)) == {
        b"b": b"3"
    }


def test_records_before_the_position_do_not_count() -> None:
    assert entries(written(b"a", b"1", 0), written(b"b", b"2", 1), position=1) == {b"b": b"2"}


async def test_positions_are_found_whatever_other_flows_have_open(tmp_path: Path) -> None:
    async with two_clusters(tmp_path) as ends:
        target = ends.target
        assert await ensure_topic(target) == 2
        assert await ensure_topic(target) == 2
        configs = (await target.topic_configs([FLOWS_TOPIC]))[FLOWS_TOPIC]
        assert configs["cleanup.policy"] == "compact"

        def of(flow: str, cluster: str, offset: int) -> NewBatch:
            text = value_of(Position(offset))
            return NewBatch(POSITIONS, batch_of({key_of(flow, cluster, PARTITION): text}, 1))

        async with target.transaction("another") as other, other.begin() as transaction:
            await transaction.append([of("another", "c", 1)])
            async with target.transaction("f") as mine, mine.begin() as committed:
                await committed.append([of("f", "c", 5), of("f", "d", 6)])
            async with target.appender() as appender:
                await appender.append([NewBatch(POSITIONS, batch_of({b"x": b"y", b"{}": b"{}"}, 1))])
            assert await read_positions(target, "f", "c") == {PARTITION: Position(5)}
            assert await read_positions(target, "f", "d") == {PARTITION: Position(6)}
            assert await read_positions(target, "another", "c") == {}
        assert await read_positions(target, "another", "c") == {PARTITION: Position(1)}
        assert await read_entries(target, TopicPartition("none", 0)) == {}
