"""murmur2 of whole arrays beside that of one key at a time, which is compared with Java's."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr_sdk.batches import murmur2, partition_of
from leafcuttr_spark.codec.murmur2 import murmur2_of, partitions_of
from spark.codec.records import binary
from support.gates_slice import sampled

keys = st.lists(st.binary(max_size=40), max_size=30)


@given(keys, st.integers(1, 100))
@settings(max_examples=sampled(80), deadline=None)
def test_it_is_that_of_each_key(some: list[bytes], partitions: int) -> None:
    array = binary(some)
    assert murmur2_of(array).tolist() == [murmur2(key) for key in some]
    assert partitions_of(array, partitions).tolist() == [partition_of(key, partitions) for key in some]
    assert murmur2_of(array.slice(1)).tolist() == [murmur2(key) for key in some[1:]]


def test_keys_of_java() -> None:
    """What org.apache.kafka.common.utils.Utils.murmur2 gives; from Kafka's UtilsTest."""
    known = {
        b"21": -973932308,
        b"foobar": -790332482,
        b"a-little-bit-long-string": -985981536,
        b"a-little-bit-longer-string": -1486304829,
        b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
        b"abc": 479470107,
    }
    assert murmur2_of(binary(known)).tolist() == [number & 0xFFFFFFFF for number in known.values()]


@given(st.lists(st.integers(0, 3000), min_size=1, max_size=5))
@settings(max_examples=sampled(20), deadline=None)
def test_long_keys(sizes: list[int]) -> None:
    some = [bytes(number % 251 for number in range(size)) for size in sizes]
    assert murmur2_of(binary(some)).tolist() == [murmur2(key) for key in some]


def test_a_null_harms_no_other() -> None:
    assert murmur2_of(binary([b"abc", None, b"21"])).tolist()[::2] == [murmur2(b"abc"), murmur2(b"21")]
