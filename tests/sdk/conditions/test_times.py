"""Moments and durations: what the commands take is tested with them, in tests/cli/common/options."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_sdk.conditions.times import parse_duration, parse_int64, parse_moment, parse_time


@given(st.text(max_size=20) | st.from_regex(r"-?[0-9PTWDHMSmshdw:.Z+-]{0,30}", fullmatch=True))
def test_any_text_is_a_time_or_a_value_error(text: str) -> None:
    for parse in (parse_moment, parse_duration):
        found = parse(text)
        assert found is None or 0 <= found < 2**63
    try:
        assert 0 <= parse_time(text, 1_700_000_000_000) < 2**63
    except ValueError as error:
        assert len(str(error).splitlines()) <= 1


def test_numbers_of_64_bits() -> None:
    assert parse_int64("0" * 5000 + "7") == 7
    assert parse_int64("9223372036854775807") == 2**63 - 1
    for digits in ("9223372036854775808", "9" * 5000):
        with pytest.raises(ValueError, match="beyond what an offset or a time can be"):
            parse_int64(digits)
