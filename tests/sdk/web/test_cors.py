"""Which pages of other origins may call, by the headers that they are told (the Fetch standard's CORS protocol)."""

from __future__ import annotations

import pytest

from leafcuttr_sdk.web import ApiError
from leafcuttr_sdk.web.cors import Cors, CorsHeaders

ALLOWED = CorsHeaders(methods=b"GET", headers=b"x-a", exposed=b"x-b")
EXPOSED = (b"access-control-expose-headers", b"x-b")


def cors(*origins: str) -> Cors:
    return Cors(frozenset(origins), ALLOWED, "lc.x.origins")


def test_no_origin_but_its_own() -> None:
    assert list(cors().headers("https://a.example")) == []
    assert cors().preflight("https://a.example") is None


def test_every_origin() -> None:
    assert list(cors("*").headers("https://a.example")) == [(b"access-control-allow-origin", b"*"), EXPOSED]
    assert cors("*").preflight("https://a.example")


@pytest.mark.parametrize("origin", ["https://a.example", "HTTPS://A.example"])
def test_one_that_is_named(origin: str) -> None:
    """It is told its own name back, and caches that the answer depends on it."""
    found = cors("https://a.example", "https://b.example")
    assert list(found.headers(origin)) == [
        (b"access-control-allow-origin", origin.encode()),
        EXPOSED,
        (b"vary", b"origin"),
    ]
    assert list(found.preflight(origin) or ()) == [
        (b"access-control-allow-methods", b"GET"),
        (b"access-control-allow-headers", b"x-a"),
        (b"access-control-max-age", b"600"),
    ]


@pytest.mark.parametrize(
    "origin", ["https://c.example", "null", "https://a.example.evil", "http://a.example", ""]
)
def test_one_that_is_not(origin: str) -> None:
    found = cors("https://a.example")
    assert list(found.headers(origin)) == [(b"vary", b"origin")]
    assert found.preflight(origin) is None


UNASKED = [None, "text/plain", "Text/Plain; charset=utf-8", "multipart/form-data; boundary=x"]
UNASKED += ["application/x-www-form-urlencoded", "text/ping", "application/csp-report"]


@pytest.mark.parametrize("content_type", UNASKED)
@pytest.mark.parametrize("origin", ["https://c.example", "null", "http://host", "http://host:8081"])
def test_what_a_page_posts_unasked_is_refused(origin: str, content_type: str | None) -> None:
    with pytest.raises(ApiError, match=r"Pages of '[^ ]+' may not send this; lc\.x\.origins names") as raised:
        cors("https://a.example").check_post(origin, "host:8080", content_type)
    assert raised.value.code == 403


@pytest.mark.parametrize("content_type", UNASKED)
@pytest.mark.parametrize(
    "origin", ["https://a.example", "https://A.example:443", "http://host:8080", "HTTP://Host:8080"]
)
def test_pages_that_may_call_post_unasked(origin: str, content_type: str | None) -> None:
    cors("https://a.example").check_post(origin, "host:8080", content_type)
    cors("*").check_post("https://c.example", "host:8080", content_type)


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/vnd.kafka.v2+json", "text/csv", ""]
)
def test_for_all_other_types_a_browser_asks_first(content_type: str) -> None:
    cors().check_post("https://c.example", "host:8080", content_type)
