"""SASL PLAIN."""

from __future__ import annotations

import pytest

from leafcuttr.client.sasl.mechanism import SaslRefusal
from leafcuttr.client.sasl.plain import Plain
from leafcuttr.client.settings import ClientSasl


def plain(username: str, password: str) -> Plain:
    return Plain(ClientSasl(mechanism="PLAIN", username=username, password=password))


def test_the_message_of_the_rfc() -> None:
    mechanism = plain("tim", "tanstaaftanstaaf")  # RFC 4616, section 4
    assert mechanism.first() == b"\0tim\0tanstaaftanstaaf"
    assert mechanism.respond(b"") is None
    assert plain("é", "ü").first() == "\0é\0ü".encode()


@pytest.mark.parametrize("words", [("a\0b", "c"), ("a", "b\0c")])
def test_a_nul_would_move_the_end_of_the_name(words: tuple[str, str]) -> None:
    with pytest.raises(SaslRefusal, match="NUL"):
        plain(*words).first()
