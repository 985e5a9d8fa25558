"""Which partition rows go to."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_sdk.batches import partition_of
from leafcuttr_spark.sink.placing import PlacingError, placed
from spark.codec.records import binary

maybe = st.none() | st.binary(max_size=12)


@given(
    st.lists(st.tuples(maybe, st.none() | st.integers(0, 4)), max_size=30),
    st.integers(5, 9),
    st.integers(0, 2**30),
)
def test_the_column_wins_then_the_key(
    rows: list[tuple[bytes | None, int | None]], partitions: int, salt: int
) -> None:
    keys, chosen = binary(key for key, _ in rows), pa.array([one for _, one in rows], pa.int32())
    found = placed(keys, chosen, partitions, salt).tolist()
    for (key, given_), partition in zip(rows, found, strict=True):
        assert 0 <= partition < partitions
        if given_ is not None:
            assert partition == given_
        elif key is not None:
            assert partition == partition_of(key, partitions)
    assert (
        placed(keys, None, partitions, salt).tolist()
        == placed(keys, pa.nulls(len(rows), pa.int32()), partitions, salt).tolist()
    )


def test_rows_without_keys_go_round() -> None:
    found = placed(binary([None] * 2000), None, 4, 3)
    assert sorted({int(one) for one in found}) == [0, 1, 2, 3]
    assert found[0] == 3
    assert (found[:-1] != found[1:]).sum() == 7, "some to one partition, then some to the next"


@pytest.mark.parametrize("wrong", [-1, 4])
def test_a_partition_that_the_topic_does_not_have(wrong: int) -> None:
    with pytest.raises(PlacingError, match=f"a row is for partition {wrong}, and the topic has 4"):
        placed(binary([b"k", None]), pa.array([None, wrong], pa.int32()), 4)
