"""Keys of runs of records of the same shape, against the records one by one; and that runs are found."""

import pytest

from leafcuttr.log.cleaner.compaction.walk import _places, _run, walk
from leafcuttr.wire.records import Record, encode_batch, record_bytes


@pytest.mark.parametrize("step_ms", [0, 1, 1000])
@pytest.mark.parametrize("value", [b"v" * 20, None])
def test_a_run_of_records_of_one_shape(step_ms: int, value: bytes | None) -> None:
    records = [Record(at, 5000 + at * step_ms, b"key %03d" % at, value) for at in range(200)]
    data = bytes(record_bytes(encode_batch(records)))
    walked = walk(data, 0, len(data), len(records))
    assert walked.keys == [record.key for record in records]
    assert walked.nulls == [at for at, record in enumerate(records) if record.value is None]
    assert (walked.longest, walked.keyless, len(walked.bounds)) == (7, False, 201)


def test_a_run_is_found_by_the_layout_of_records() -> None:
    """Where none is found the keys are the same, and take longer."""
    records = [Record(at, 5000 + at, b"key %03d" % at, b"value") for at in range(70, 200)]
    data = bytes(record_bytes(encode_batch([Record(0, 5000, None, None), *records])))
    bounds = walk(data, 0, len(data), 131).bounds
    start, stride = bounds[1], bounds[2] - bounds[1]
    assert _run(data, start, len(data), stride, _places(data, start)) == 130
