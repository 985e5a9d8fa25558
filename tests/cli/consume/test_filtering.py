"""Conditions on messages of confluent-kafka. The language is tested in tests/sdk/conditions."""

from __future__ import annotations

from typing import Any

import pytest

from leafcuttr.cli.common.records.json_lines import Codecs
from leafcuttr.cli.common.records.own_formats import Base64Format, JsonFormat, TextFormat
from leafcuttr.cli.consume.filtering import MessageFilter
from leafcuttr_sdk.conditions import parse
from leafcuttr_sdk.formats import Place


class Message:
    """What confluent-kafka hands out, with the six methods that are called."""

    def __init__(self, value: bytes | None, headers: Any = None, kind: int = 1) -> None:
        self._value, self._headers, self._kind = value, headers, kind

    def value(self) -> bytes | None:
        return self._value

    def key(self) -> bytes | None:
        return b"user-7"

    def headers(self) -> Any:
        return self._headers

    def timestamp(self) -> tuple[int, int]:
        return self._kind, 1_700_000_000_000

    def topic(self) -> str:
        return "orders"

    def partition(self) -> int:
        return 3

    def offset(self) -> int:
        return 41


@pytest.mark.parametrize(
    "condition",
    [
        'key == "user-7" and value.total > 99 and topic == "orders" and partition == 3 and offset == 41',
        'headers.tag == "b" and not headers.other and headers.none == null',
        'timestamp == 1700000000000 and timestamp > "-1h"',
    ],
)
def test_every_field_of_a_message(condition: str) -> None:
    codecs = Codecs("orders", TextFormat(), TextFormat())
    message = Message(b'{"total": 99.5}', [("tag", b"a"), ("tag", b"b"), ("none", None)])
    assert MessageFilter(parse(condition, now_ms=1_700_000_000_000), codecs)(message)
    assert not MessageFilter(parse(f"not ({condition})", now_ms=1_700_000_000_000), codecs)(message)


def test_a_message_without_headers_time_or_value() -> None:
    codecs = Codecs("orders", TextFormat(), TextFormat())
    nothing = Message(None, None, kind=0)
    assert MessageFilter(parse("not headers.a and timestamp == null and value == null"), codecs)(nothing)


def test_a_format_by_headers_gets_them() -> None:
    class Named(TextFormat):
        needs_headers = True

        def decode(self, data: bytes, place: Place) -> str:
            return str(dict(place.headers)["name"])

    message = Message(b"", [("name", "alice")])
    assert MessageFilter(parse('value == "alice"'), Codecs("t", TextFormat(), Named()))(message)
    assert MessageFilter(parse('key == "alice"'), Codecs("t", Named(), TextFormat()))(message)


def test_texts_are_those_of_the_formats() -> None:
    assert MessageFilter(
        parse('key == "dXNlci03" and value.a == 1'), Codecs("t", Base64Format(), JsonFormat())
    )(Message(b'{"a": 1}'))
    no_json = MessageFilter(parse("value == null"), Codecs("t", TextFormat(), JsonFormat()))
    assert no_json(Message(b"{"))
    assert not no_json(Message(b"{}"))
