"""Durations, against what Go's own tests say of time.ParseDuration and Duration.String."""

import pytest

from leafcuttr_forward.relay.durations import parse_duration, show_duration

GOOD = {
    "0": 0.0,
    "5s": 5.0,
    "30s": 30.0,
    "1478s": 1478.0,
    "-5s": -5.0,
    "+5s": 5.0,
    "-0": 0.0,
    "+0": 0.0,
    "5.0s": 5.0,
    "5.6s": 5.6,
    "5.s": 5.0,
    ".5s": 0.5,
    "1.004s": 1.004,
    "100.00100s": 100.001,
    "10ns": 10e-9,
    "11us": 11e-6,
    "12µs": 12e-6,
    "12μs": 12e-6,
    "13ms": 13e-3,
    "14s": 14.0,
    "15m": 900.0,
    "16h": 57600.0,
    "3h30m": 12600.0,
    "10.5s4m": 250.5,
    "-2m3.4s": -123.4,
    "1h2m3s4ms5us6ns": 3723.004005006,
    "39h9m14.425s": 140954.425,
    "2562047h": 9223369200.0,
}
BAD = [
    "",
    "3",
    "-",
    "s",
    ".",
    "-.",
    ".s",
    "+.s",
    "1d",
    "3000000h",
    "1 s",
    " 1s",
    "1s ",
    "1e3s",
    "٣s",
    "+-5s",
    "1.2.3s",
]


@pytest.mark.parametrize("text", GOOD)
def test_what_go_reads(text: str) -> None:
    assert parse_duration(text) == pytest.approx(GOOD[text], rel=1e-12)


@pytest.mark.parametrize("text", BAD)
def test_what_go_refuses(text: str) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.1, "100ms"),
        (0.0005, "0.5ms"),
        (2, "2s"),
        (1.5, "1.5s"),
        (60, "1m"),
        (90, "1m30s"),
        (7320.25, "2h2m0.25s"),
    ],
)
def test_they_are_written_as_they_are_read(seconds: float, text: str) -> None:
    assert show_duration(seconds) == text
    assert parse_duration(text) == pytest.approx(seconds)
