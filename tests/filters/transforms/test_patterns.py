"""What is an e-mail address, a card number, a phone number, and what only looks so."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcuttr_filters.transforms.patterns import MAY_BE, PATTERNS, is_card_number


def covered(name: str, text: str) -> str:
    return PATTERNS[name](text, lambda _: "#")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("ann.lee+x@mail.example.org", "#"),
        ("to ann@example.org, bo@example.se.", "to #, #."),
        ("<ann@example.org>", "<#>"),
        ("élodie@exemple.fr", "#"),
        ("x" * 70 + "@example.org", "x" * 6 + "#"),
        ("ann@localhost", "ann@localhost"),
        ("@example.org", "@example.org"),
        ("a@b@example.org", "a@#"),
        ("a@b.se@c.no", "#@c.no"),
        ("a@-b.se", "a@-b.se"),
    ],
)
def test_emails(text: str, left: str) -> None:
    assert covered("email", text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("4111111111111111", "#"),
        ("4111-1111-1111-1111", "#"),
        ("3782 822463 10005", "#"),
        ("6011111111111117", "#"),
        ("4222222222222", "#"),
        ("6304000000000000000", "#"),
        ("no 12 4111 1111 1111 1111 x", "no 12 # x"),
        ("4111 1111 1111 1111 5500 0000 0000 0004", "# #"),
        ("4111111111111112", "4111111111111112"),
        ("411111111111111", "411111111111111"),
        ("4111  1111 1111 1111", "4111  1111 1111 1111"),
        ("x4111111111111111y", "x#y"),
        ("24111111111111111", "24111111111111111"),
        ("2026-11-21 08:30", "2026-11-21 08:30"),
        ("41 11 1111 1111 1111", "41 11 1111 1111 1111"),
        ("4111 1111 1111 1 111", "4111 1111 1111 1 111"),
        ("6304 0000 0000 0000 000", "#"),
    ],
)
def test_cards(text: str, left: str) -> None:
    assert covered("card", text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("+46 8 123 456 78", "#"),
        ("+1 (555) 123-4567", "#"),
        ("call +4686543210!", "call #!"),
        ("(555) 123-4567", "#"),
        ("555-123-4567", "#"),
        ("555.123.4567", "#"),
        ("+123", "+123"),
        ("+12345678901234567", "+12345678901234567"),
        ("1555-123-4567", "1555-123-4567"),
        ("5551234567", "5551234567"),
    ],
)
def test_phones(text: str, left: str) -> None:
    assert covered("phone", text) == left


@given(st.integers(10**11, 10**18 - 1))
def test_one_check_digit_of_ten_is_right(number: int) -> None:
    right = [digit for digit in range(10) if is_card_number(f"{number}{digit}")]
    assert len(right) == 1


@given(st.sampled_from(sorted(PATTERNS)), st.text(alphabet="0123456789 -+().@ab", max_size=60))
def test_what_is_found_passes_the_quick_test(name: str, text: str) -> None:
    if covered(name, text) != text:
        assert MAY_BE[name](text.encode())
