"""`headers`, beside what Kafka Connect makes of the same (`test_as_connect`)."""

from __future__ import annotations

from support.making_filters import made, of, reason_of

DOCUMENT = {"type": "é", "tenant": {"id": 5, "x": 1}, "list": [1], "none": None}
FIELDS = "headers fields=type,tenant.id,list,none,missing headers=a,b,c,d,e"
HEADERS = (("old", b"1"), ("a", "é".encode()), ("b", b"5"), ("c", b"[1]"), ("d", None), ("e", None))


def test_copied() -> None:
    record = of(DOCUMENT, headers=(("old", b"1"),))
    assert made(FIELDS).filter(record) == record._replace(headers=HEADERS)


def test_moved() -> None:
    moved = made(f"{FIELDS} operation=move").filter(of(DOCUMENT, headers=(("old", b"1"),)))
    assert moved == of(b'{"tenant":{"x":1}}', headers=HEADERS)
    none = made("headers fields=x headers=x operation=move").filter(of({"a": 1}))
    assert none == of({"a": 1}, headers=(("x", None),))


def test_of_the_key() -> None:
    record = of(b"no json", b'{"id":5}')
    assert made("headers fields=id headers=id part=key operation=move").filter(record) == of(
        b"no json", b"{}", headers=(("id", b"5"),)
    )
    tombstone = of(None)
    assert made(FIELDS).filter(tombstone) is tombstone


def test_what_cannot_be_a_header() -> None:
    assert reason_of("headers fields=a headers=a", b'{"a":"\\udc00"}') == (
        "headers: a text in it cannot be written as UTF-8"
    )
    assert reason_of("headers fields=a headers=a", [1]) == "headers: it is no JSON object"
