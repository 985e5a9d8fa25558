"""What a child prints, within bounds."""

from __future__ import annotations

import pytest

from leafcuttr.plugins.children.output import BURST, BYTES, LONGEST, RATE, BoundedLines


def test_lines_as_they_come() -> None:
    lines = BoundedLines(0)
    assert list(lines.received(b"one\ntwo\nth", 0)) == ["one", "two"]
    assert list(lines.received(b"ree\n", 1)) == ["three"]
    assert list(lines.received(b"last", 1)) == []
    assert list(lines.ended(1)) == ["last"]
    assert list(lines.ended(1)) == []
    assert (lines.last, lines.left_out) == ("last", 0)


def test_empty_lines_are_none_and_what_is_no_text_is_shown() -> None:
    lines = BoundedLines(0)
    data = b"\n \r\n\x1b[31mred\x1b[0m\r\n" + b"\xff\xfe\n\ttab\x00nul\n" + "grün\u2028next\n".encode()
    assert list(lines.received(data, 0)) == [" [31mred [0m", "\\xff\\xfe", "    tab nul", "grün next"]
    assert lines.last == "grün next"


@pytest.mark.parametrize("pieces", [1, 7])
def test_a_line_is_cut(pieces: int) -> None:
    lines = BoundedLines(0)
    data = b"x" * (LONGEST + 1) + b"\n" + b"y" * LONGEST + b"\n" + b"z" * 1_000_000 + b"\nshort\n"
    found: list[str] = []
    step = -(-len(data) // pieces)
    for at in range(0, len(data), step):
        found += lines.received(data[at : at + step], 0)
    assert found == ["x" * (LONGEST - 1) + "…", "y" * LONGEST, "z" * (LONGEST - 1) + "…", "short"]


def test_a_line_of_wide_characters_is_cut() -> None:
    """Of which as many as a line has are kept, and no more."""
    lines = BoundedLines(0)
    wide = "\U0001f600"
    data = f"{wide * (LONGEST + 1)}\n{wide * LONGEST}\n".encode()
    assert list(lines.received(data, 0)) == [wide * (LONGEST - 1) + "…", wide * LONGEST]


def test_a_line_without_an_end_is_not_kept() -> None:
    lines = BoundedLines(0)
    for _ in range(100):
        assert list(lines.received(b"x" * 100_000, 0)) == []
    assert len(lines._begun) <= 4 * LONGEST
    assert [len(line) for line in lines.ended(0)] == [LONGEST]


def test_so_many_may_come_at_once_and_so_many_a_second() -> None:
    lines = BoundedLines(0)
    found = list(lines.received(b"".join(b"%d\n" % number for number in range(BURST + 50)), 0))
    assert found == [str(number) for number in range(BURST)]
    assert lines.left_out == 50
    assert list(lines.received(b"still\n", 0.5 / RATE)) == []
    assert list(lines.received(b"again\nand\n", 1 / RATE)) == ["(51 lines left out)", "again"]
    assert lines.last == "and"
    assert list(lines.received(b"one\n", 2 / RATE)) == ["(1 line left out)", "one"]
    # What was not used is kept, up to the burst.
    assert len(list(lines.received(b"a\n" * 3 * BURST, 1e6))) == BURST
    assert list(lines.ended(1e6)) == [f"({2 * BURST} lines left out)"]
    assert lines.left_out == 52 + 2 * BURST


def test_a_clock_that_goes_back_gives_nothing() -> None:
    lines = BoundedLines(100)
    assert len(list(lines.received(b"a\n" * BURST, 100))) == BURST
    assert list(lines.received(b"b\n", 0)) == []
    assert list(lines.received(b"c\n", 0.5 / RATE)) == []


def test_what_may_be_read_is_bounded() -> None:
    lines = BoundedLines(0)
    assert lines.may_read(0) == BYTES
    list(lines.received(b"x" * BYTES, 0))
    assert lines.may_read(0) == 0
    assert lines.may_read(0.5) == BYTES // 2
    assert lines.may_read(100) == BYTES
