"""Positions in a partition as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.cli.common.options.positions import Position, PositionKind, parse_position, parse_time

NOW = 1_700_000_000_000
# More digits than Python reads at once, and more than a float can hold.
LONGEST = [sign + "9" * 5000 + unit for sign in ("", "-", "@") for unit in ("", "d")] + [f"-PT{'9' * 400}S"]


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", Position(PositionKind.EARLIEST)),
        ("latest", Position(PositionKind.LATEST)),
        ("end", Position(PositionKind.LATEST)),
        ("0", Position(PositionKind.OFFSET, 0)),
        ("42", Position(PositionKind.OFFSET, 42)),
        ("-10", Position(PositionKind.BEFORE_END, 10)),
        ("-1h", Position(PositionKind.TIME, NOW - 3_600_000)),
        ("-250ms", Position(PositionKind.TIME, NOW - 250)),
        ("now", Position(PositionKind.TIME, NOW)),
        ("@1600000000000", Position(PositionKind.TIME, 1_600_000_000_000)),
        ("@-2d", Position(PositionKind.TIME, NOW - 172_800_000)),
        ("2023-11-14T22:13:20Z", Position(PositionKind.TIME, NOW)),
        ("2023-11-14T23:13:20+01:00", Position(PositionKind.TIME, NOW)),
        ("2023-11-14", Position(PositionKind.TIME, 1_699_920_000_000)),
        ("2023-11-14 22:13", Position(PositionKind.TIME, 1_699_999_980_000)),
        ("-999999w", Position(PositionKind.TIME, 0)),
    ],
)
def test_a_place(text: str, position: Position) -> None:
    assert parse_position(text, NOW) == position


@pytest.mark.parametrize(
    "text", ["yesterday", "", "-", "@", "1.5", "-1y", "2023-13-01", "9" * 30, "-" + "9" * 30, "٣", *LONGEST]
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"no position|beyond"):
        parse_position(text, NOW)


@given(st.text(max_size=30))
def test_nothing_but_a_value_error(text: str) -> None:
    for parse in (parse_position, parse_time):
        try:
            parse(text, NOW)
        except ValueError as error:
            assert str(error)
