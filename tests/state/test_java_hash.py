"""Java's hash of strings."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leafcuttr.state.java_hash import _remembered, java_hash


@given(st.text(max_size=1000))
@example("h" * 255)
@example("h" * 256)
@example("h" * 257)
@example("h" * 32_767)
def test_java_hash_of_any_length(text: str) -> None:
    value = 0
    for unit in memoryview(text.encode("utf-16-le")).cast("H"):
        value = (31 * value + unit) % 2**32
    assert java_hash(text) % 2**32 == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("a", 97),
        ("group", 98629247),
        ("polygenelubricants", -(2**31)),
        ("grüße\U0001f600", 428562490),
    ],
)
def test_java_hash(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_a_short_text_is_remembered_and_a_long_one_not() -> None:
    """An id may have 32767 characters: a thousand of those would be memory that clients decide about."""
    _remembered.cache_clear()
    for text in ("h" * 255, "h" * 255, "h" * 256):
        java_hash(text)
    found = _remembered.cache_info()
    assert (found.hits, found.currsize, found.maxsize) == (1, 1, 1024)
