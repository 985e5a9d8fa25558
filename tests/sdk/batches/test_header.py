"""The header of a batch, which is made right as a whole."""

from __future__ import annotations

import pytest

from leafcuttr.wire.records import Record, encode_batch
from leafcuttr_sdk.batches import batches_in
from leafcuttr_sdk.batches.header import seal, sequence_after


def test_length_magic_and_crc_are_made_right() -> None:
    whole = encode_batch([Record(0, 7, b"k", b"v")])
    (before,) = batches_in(bytes(whole))
    broken = bytearray(whole)
    seal(broken, before.header._replace(length=1, magic=1, crc=1, base_offset=9))
    (after,) = batches_in(broken)
    assert after.header == before.header._replace(base_offset=9)
    after.check()


@pytest.mark.parametrize(
    ("sequence", "more", "expected"),
    [(0, 1, 1), (2**31 - 1, 1, 0), (2**31 - 2, 3, 1), (-1, 5, -1)],
)
def test_sequence_numbers_begin_again_after_the_last(sequence: int, more: int, expected: int) -> None:
    assert sequence_after(sequence, more) == expected
