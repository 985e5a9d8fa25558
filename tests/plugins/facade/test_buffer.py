"""What a consumer has fetched and not handed out: each partition's records, and where to go on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.plugins.facade.consumer.buffer import RecordBuffer
from leafcuttr_sdk import StoredRecord, TopicPartition

counts = st.lists(st.integers(0, 40), min_size=1, max_size=6)
limits = st.lists(st.integers(1, 30), min_size=1, max_size=100)


@given(counts, limits)
def test_all_are_handed_out_in_order(counts: list[int], limits: list[int]) -> None:
    """Partitions of two topics, some without records, whose offsets have gaps."""
    partitions = [TopicPartition("tu"[number % 2], number // 2) for number in range(len(counts))]
    records = [
        StoredRecord(*partition, offset * 3, 0, None, b"v")
        for partition, count in zip(partitions, counts, strict=True)
        for offset in range(count)
    ]
    positions: dict[TopicPartition, int] = {}
    buffer = RecordBuffer(positions.__setitem__)
    buffer.put(records, dict.fromkeys(partitions, 1000))
    assert positions == {p: 1000 for p, count in zip(partitions, counts, strict=True) if not count}
    taken: list[StoredRecord] = []
    for limit in limits:
        some = buffer.take(limit)
        assert len(some) == min(limit, len(records) - len(taken))
        taken += some
        assert len(buffer) == len(records) - len(taken)
        for last in some:
            following = [one for one in records[len(taken) :] if one[:2] == last[:2]]
            due = following[0].offset if following else 1000
            assert positions[TopicPartition(*last[:2])] == due
    assert taken == records[: len(taken)]
    assert bool(buffer) == (taken != records)


def test_what_is_dropped_is_one_partition() -> None:
    records = [StoredRecord("t", n // 5, n % 5, 0, None, None) for n in range(15)]
    positions: dict[TopicPartition, int] = {}
    buffer = RecordBuffer(positions.__setitem__)
    buffer.put(records, {TopicPartition("t", number): 5 for number in range(3)})
    buffer.drop(TopicPartition("t", 1))
    assert buffer.take() == records[:5] + records[10:]
    assert positions == {TopicPartition("t", 0): 5, TopicPartition("t", 2): 5}
