"""What the crash suite leaves at the end of a log is a batch that was cut short, never a whole one."""

import random
from pathlib import Path

import pytest

from crash.broker_run import torn_batch
from leafcuttr.wire.records import Record, encode_batch


@pytest.mark.parametrize("value", [None, b"v" * 20, b"v" * 1000], ids=["a header", "short", "long"])
def test_it_is_never_a_whole_batch(tmp_path: Path, value: bytes | None) -> None:
    batch = encode_batch([Record(0, 1, b"k", value)])
    if value is None:
        # As the cleaner leaves it: no records, and a length that says so.
        batch = batch[:8] + (61 - 12).to_bytes(4, "big") + batch[12:61]
    log = tmp_path / "0.log"
    log.write_bytes(batch * 2)
    dice = random.Random(7)
    sizes = {len(torn_batch(log, dice)) for _ in range(2000)}
    assert sizes == set(range(1, min(len(batch), 91)))
