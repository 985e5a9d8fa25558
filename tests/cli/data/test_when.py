"""Places in a partition as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr.cli.common.options.positions import Kind, Point, parse_point, parse_time

NOW = 1_700_000_000_000
# More digits than Python reads at once, and more than a float can hold.
LONGEST = [sign + "9" * 5000 + unit for sign in ("", "-", "@") for unit in ("", "d")] + [f"-PT{'9' * 400}S"]


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("earliest", Point(Kind.EARLIEST)),
        ("latest", Point(Kind.LATEST)),
        ("end", Point(Kind.LATEST)),
        ("0", Point(Kind.OFFSET, 0)),
        ("42", Point(Kind.OFFSET, 42)),
        ("-10", Point(Kind.BEFORE_END, 10)),
        ("-1h", Point(Kind.TIME, NOW - 3_600_000)),
        ("-250ms", Point(Kind.TIME, NOW - 250)),
        ("now", Point(Kind.TIME, NOW)),
        ("@1600000000000", Point(Kind.TIME, 1_600_000_000_000)),
        ("@-2d", Point(Kind.TIME, NOW - 172_800_000)),
        ("2023-11-14T22:13:20Z", Point(Kind.TIME, NOW)),
        ("2023-11-14T23:13:20+01:00", Point(Kind.TIME, NOW)),
        ("2023-11-14", Point(Kind.TIME, 1_699_920_000_000)),
        ("2023-11-14 22:13", Point(Kind.TIME, 1_699_999_980_000)),
        ("-999999w", Point(Kind.TIME, 0)),
    ],
)
def test_a_place(text: str, point: Point) -> None:
    assert parse_point(text, NOW) == point


@pytest.mark.parametrize(
    "text", ["yesterday", "", "-", "@", "1.5", "-1y", "2023-13-01", "9" * 30, "-" + "9" * 30, "٣", *LONGEST]
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match=r"no place|beyond"):
        parse_point(text, NOW)


@given(st.text(max_size=30))
def test_nothing_but_a_value_error(text: str) -> None:
    for parse in (parse_point, parse_time):
        try:
            parse(text, NOW)
        except ValueError as error:
            assert str(error)
