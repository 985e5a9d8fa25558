"""What commands print for people: numbers, names, tables, progress."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest

from leafcuttr.cli.common.output import count, print_json, printable, size
from support.broker_process import clean_environ


def test_numbers_for_people() -> None:
    assert [size(number) for number in (0, 1023, 1024, 1536, 1 << 40)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 KiB",
        "1.0 TiB",
    ]
    assert (count(1, "record"), count(1200, "record")) == ("1 record", "1,200 records")


def test_what_would_move_the_cursor_is_escaped() -> None:
    assert printable("orders-é") == "orders-é"
    assert printable("a\x1b[2Jb\n") == "a\\x1b[2Jb\\n"


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ({"a": "é"}, '{"a": "é"}'),
        (["é", b"caf\xe9".decode(errors="surrogateescape")], '["\\u00e9", "caf\\udce9"]'),
    ],
)
def test_json_is_utf8_whatever_is_in_it(
    value: object, printed: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    print_json(value)
    out = capfdbinary.readouterr().out
    assert out == printed.encode() + b"\n"
    assert json.loads(out) == value


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
