"""What the commands read from the line and print for people: moments, durations, partitions, sizes, tables."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import click
import pytest

from leafcuttr.cli.common.failures import Failure, reason
from leafcuttr.cli.common.options.moments import (
    duration,
    moment,
    parse_duration,
    parse_moment,
    show_duration,
    show_moment,
)
from leafcuttr.cli.common.options.partitions import Selection, by_topic, select, selection
from leafcuttr.cli.common.output import count, printable, size
from leafcuttr.cli.common.pairs import pairs
from leafcuttr_sdk.types import TopicPartition
from support.broker_process import clean_environ


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


def test_partitions() -> None:
    assert selection("orders") == Selection("orders", None)
    assert selection("orders:0,2,0") == Selection("orders", (0, 2))
    for wrong in ("orders:", "orders:a", "orders:-1", ":0", "orders:0,"):
        with pytest.raises(click.BadParameter):
            selection(wrong)
    known = {"a": [0, 1], "b": [0]}
    found = select([selection("a:1"), selection("b"), selection("a")], known)
    assert found == [TopicPartition("a", 1), TopicPartition("b", 0), TopicPartition("a", 0)]
    assert by_topic(found) == {"a": [1, 0], "b": [0]}
    with pytest.raises(Failure, match="there is no topic c"):
        select([selection("c")], known)


def test_numbers_for_people() -> None:
    assert [size(number) for number in (0, 1023, 1024, 1536, 1 << 40)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 KiB",
        "1.0 TiB",
    ]
    assert (count(1, "record"), count(1200, "record")) == ("1 record", "1,200 records")


def test_pairs() -> None:
    assert pairs("-c", ["a=1", "b=c=d", "e="]) == {"a": "1", "b": "c=d", "e": ""}
    for wrong in ("a", "=1"):
        with pytest.raises(click.UsageError, match="expected KEY=VALUE"):
            pairs("-c", [wrong])


def test_error_codes_in_words() -> None:
    assert reason(3) == "unknown topic or partition (UNKNOWN_TOPIC_OR_PARTITION)"
    assert reason(40, "retention.ms: no.") == "retention.ms: no (INVALID_CONFIG)"
    assert reason(9999) == "refused (error 9999)"


def test_what_would_move_the_cursor_is_escaped() -> None:
    assert printable("orders-é") == "orders-é"
    assert printable("a\x1b[2Jb\n") == "a\\x1b[2Jb\\n"


def on_a_terminal(script: str) -> str:
    """What the script writes to a terminal of 60 columns."""
    main, other = pty.openpty()
    environ = clean_environ({"TERM": "xterm", "COLUMNS": "60"})
    with subprocess.Popen([sys.executable, "-c", script], stdout=other, stderr=other, env=environ) as process:
        os.close(other)
        shown = b""
        while True:
            try:
                piece = os.read(main, 4096)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            shown += piece
    os.close(main)
    assert process.returncode == 0, shown
    return shown.decode()


def test_a_table_on_a_terminal_takes_names_as_they_are() -> None:
    table = "print_table(('GROUP', 'LAG'), [('[red]odd[/red] :smile:', 3), ('\\x1b[2J', None)])"
    shown = on_a_terminal(f"from leafcuttr.cli.common.output import print_table\n{table}")
    assert "[red]odd[/red] :smile:" in shown
    assert "\\x1b[2J" in shown
    assert "\x1b[2J" not in shown


def test_progress_on_a_terminal() -> None:
    shown = on_a_terminal(
        "from leafcuttr.cli.common.output import progress\n"
        "with progress('partitions', 2) as advance:\n"
        "    advance(1)\n"
        "    advance(1)\n"
    )
    assert "partitions" in shown
    assert "100%" in shown
