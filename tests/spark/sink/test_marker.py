"""Which micro-batch was carried by a transaction, by the group's offsets."""

from __future__ import annotations

import pytest

from leafcuttr_sdk.groups import CommittedOffset
from leafcuttr_sdk.types import TopicPartition
from leafcuttr_spark.sink.marker import MicroBatch, StaleCheckpointError, is_done, last_done, mark

OURS = MicroBatch("q1", 17, "abc")


def test_a_mark_is_read_again() -> None:
    marked = mark(OURS, {"sums", "counts"})
    assert list(marked) == [TopicPartition("counts", 0)]
    assert marked[TopicPartition("counts", 0)].offset == 18
    assert last_done(marked, "q1") == (OURS, None)
    assert last_done(marked, "q2") == (None, OURS)


def test_the_last_of_several_marks_counts() -> None:
    marks = {
        **mark(OURS, {"a"}),
        **mark(OURS._replace(batch=19), {"b"}),
        **mark(OURS._replace(batch=18), {"c"}),
    }
    assert last_done(marks, "q1") == (OURS._replace(batch=19), None)
    assert last_done({**marks, **mark(MicroBatch("q2", 3, ""), {"d"})}, "q2")[0] == MicroBatch("q2", 3, "")


@pytest.mark.parametrize(
    "metadata",
    ["", "{}", "[]", "null", "x", '{"query": "q1", "batch": "x", "offsets": ""}', "[" * 100_000, "9" * 5000],
)
def test_what_others_have_committed_is_no_mark(metadata: str) -> None:
    assert last_done({TopicPartition("a", 0): CommittedOffset(18, metadata)}, "q1") == (None, None)


def test_an_offset_that_does_not_fit_is_no_mark() -> None:
    (mark_,) = mark(OURS, {"a"}).values()
    assert last_done({TopicPartition("a", 0): mark_._replace(offset=5)}, "q1") == (None, None)


def test_only_the_very_same_batch_is_skipped() -> None:
    assert not is_done(OURS, None)
    assert is_done(OURS, OURS)
    assert not is_done(OURS._replace(batch=18), OURS)
    assert not is_done(OURS._replace(batch=25), OURS), "batches without rows leave no mark"


@pytest.mark.parametrize("this", [OURS._replace(batch=16), OURS._replace(offsets="other")])
def test_a_checkpoint_from_a_backup_is_refused(this: MicroBatch) -> None:
    """To skip the batch would lose records, to write it would write some twice."""
    with pytest.raises(
        StaleCheckpointError, match=f"batch {this.batch} of query q1 cannot be written: batch 17 was"
    ):
        is_done(this, OURS)
