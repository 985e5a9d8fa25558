"""The partitioner, against kafka-python's and by its distribution."""

from __future__ import annotations

import itertools
import random
from collections import Counter

from kafka.partitioner.default import murmur2 as kafka_murmur2

from leafcuttr_sdk.batches import Sticky, murmur2, partition_of
from leafcuttr_sdk.batches.partitioner import STICKS_BYTES


def test_the_hash_is_that_of_java() -> None:
    # Of org.apache.kafka.common.utils.UtilsTest.testMurmur2
    known = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536,
             b"a-little-bit-longer-string": -1486304829,
             b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971, b"abc": 479470107}  # fmt: skip
    for key, hashed in known.items():
        assert murmur2(key) == hashed & 0xFFFFFFFF
    dice = random.Random(6)
    for length in [*range(70), 300, 1000]:
        key = dice.randbytes(length)
        assert murmur2(key) == kafka_murmur2(key) & 0xFFFFFFFF
        for count in (1, 7, 1000):
            assert partition_of(key, count) == (kafka_murmur2(key) & 0x7FFFFFFF) % count


def test_a_partition_is_kept_for_some_bytes_and_then_another_one_is_chosen() -> None:
    sticky = Sticky()
    assert sticky.partition == -1
    chosen = [sticky.take(STICKS_BYTES // 4, range(5)) for _ in range(400)]
    runs = [chosen[start : start + 4] for start in range(0, 400, 4)]
    assert all(len(set(run)) == 1 for run in runs)
    assert all(before[-1] != after[0] for before, after in itertools.pairwise(runs))
    assert all(count > 5 for count in Counter(run[0] for run in runs).values())
    assert set(chosen) == set(range(5))
    assert sticky.partition == chosen[-1]


def test_one_that_takes_no_records_is_left() -> None:
    sticky = Sticky()
    first = sticky.take(1, range(3))
    assert sticky.take(1, [2 if first != 2 else 1]) == first, "what can be used is looked at only at a change"
    sticky.leave()
    second = sticky.take(1, [number for number in range(3) if number != first])
    assert second != first
    # With no other the last one stays, and before there was any, the first partition is it.
    sticky.leave()
    assert sticky.take(1, [second]) == second
    assert sticky.take(1, []) == second
    assert Sticky().take(1, []) == 0
