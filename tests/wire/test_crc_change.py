"""A CRC of which the beginning changes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from leafcuttr.wire.crc_change import changed
from leafcuttr_sdk.batches.checksum import crc32c
from support.gates_slice import sampled


@given(st.binary(max_size=80), st.data(), st.integers(0, 5000))
@settings(max_examples=sampled(200))
def test_it_is_that_of_the_new_whole(before: bytes, data: st.DataObject, behind: int) -> None:
    after = data.draw(st.binary(min_size=len(before), max_size=len(before)))
    rest = bytes(at * 31 & 0xFF for at in range(behind))
    new = changed(crc32c(before + rest), crc32c(before), crc32c(after), behind)
    assert new == crc32c(after + rest)


def test_lengths_of_a_batch() -> None:
    for behind in (1 << 20, (1 << 20) - 1, 983_041, 3 << 20):
        rest = bytes(behind)
        assert changed(crc32c(b"ab" + rest), crc32c(b"ab"), crc32c(b"cd"), behind) == crc32c(b"cd" + rest)


def test_one_that_was_wrong_stays_as_wrong() -> None:
    right, rest = crc32c(b"ab" + bytes(100)), bytes(100)
    for bit in range(32):
        wrong = changed(right ^ 1 << bit, crc32c(b"ab"), crc32c(b"cd"), 100)
        assert wrong == crc32c(b"cd" + rest) ^ 1 << bit
