"""Media types, and what a client's Accept chooses (RFC 9110, 12.5.1)."""

from __future__ import annotations

import pytest

from leafcuttr_sdk.web.errors import ApiError
from leafcuttr_sdk.web.negotiation import MediaType, choose, media_type


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("application/json", MediaType("application/json")),
        (" Application/JSON ; Charset=UTF-8", MediaType("application/json", "utf-8")),
        ('text/plain;charset="latin-1";a=b', MediaType("text/plain", "latin-1")),
        ("", MediaType("")),
        (";;;", MediaType("")),
    ],
)
def test_a_content_type(header: str, found: MediaType) -> None:
    assert media_type(header) == found
    assert media_type(header + ";" * 300) == found


OFFERS = ("application/a", "application/b", "text/c")


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, "application/a"),
        ("", "application/a"),
        ("*/*", "application/a"),
        ("text/*", "text/c"),
        ("application/b", "application/b"),
        ("APPLICATION/B", "application/b"),
        ("application/a;q=0.5, application/b;q=0.6", "application/b"),
        ("application/*;q=0.5, application/b;q=0.4, text/c;q=0.45", "application/a"),
        ("*/*, application/a;q=0", "application/b"),
        ("text/c;q=9, application/a;q=1", "application/a"),
        ("text/c, application/a;q=nonsense", "text/c"),
        ("text/c;q=0.1;x=y, ,", "text/c"),
    ],
)
def test_what_the_client_likes_best(accept: str | None, chosen: str) -> None:
    assert choose(accept, OFFERS) == chosen
    if accept:
        assert choose(accept + "," * 300, OFFERS) == chosen


@pytest.mark.parametrize("accept", ["image/png", "application/a;q=0", "*/*;q=0", "a", "text/c;q=-1"])
def test_nothing_that_it_takes(accept: str) -> None:
    with pytest.raises(ApiError, match="only application/a, application/b, text/c") as raised:
        choose(accept, OFFERS)
    assert raised.value.code == 406
