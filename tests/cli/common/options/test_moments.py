"""Date and time and durations on the command line, and as text for people."""

from __future__ import annotations

import click
import pytest

from leafcuttr.cli.common.options.moments import (
    duration,
    moment,
    parse_duration,
    parse_moment,
    show_duration,
    show_moment,
)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1700000000000", 1_700_000_000_000),
        ("2023-11-14T22:13:20", 1_700_000_000_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T22:13:20.5", 1_700_000_000_500),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000),
        ("2023-11-14T23:13:20.000+0100", 1_700_000_000_000),
        ("2023-11-14", 1_699_920_000_000),
        ("20231114", 1_699_920_000_000),
        ("1969-12-31", None),
        ("99999999999999999999999", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_moments(text: str, ms: int | None) -> None:
    assert parse_moment(text) == ms
    if ms is None:
        with pytest.raises(click.BadParameter, match="expected a moment"):
            moment(text)


def test_moments_for_people() -> None:
    assert show_moment(1_700_000_000_042) == "2023-11-14T22:13:20.042Z"
    assert show_moment(-1) is None
    assert show_moment(1 << 62) == str(1 << 62)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("250ms", 250),
        ("90s", 90_000),
        ("2h", 7_200_000),
        ("7d", 604_800_000),
        ("PT1H", 3_600_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("P2W", 1_209_600_000),
        ("P", None),
        ("PT", None),
        ("1h30m", None),
        ("-2h", None),
        ("5", None),
        ("99999999999999999999d", None),
    ],
)
def test_durations(text: str, ms: int | None) -> None:
    assert parse_duration(text) == ms
    if ms is None:
        with pytest.raises(click.BadParameter, match="expected a duration"):
            duration(text)


@pytest.mark.parametrize("digits", ["9" * 20, "9" * 400, "9" * 5000])
@pytest.mark.parametrize("form", ["{}d", "{}ms", "P{}W", "PT{}H", "PT{}S", "PT{}.5S", "P1DT{}M"])
def test_durations_of_many_digits(form: str, digits: str) -> None:
    assert parse_duration(form.format(digits)) is None
    assert parse_moment(digits) is None


def test_durations_for_people() -> None:
    shown = {0: "0.000s", 250: "0.250s", 61_000: "1m 1s", 90_061_000: "1d 1h", 3_600_000: "1h", -5: "0.000s"}
    assert {ms: show_duration(ms) for ms in shown} == shown
