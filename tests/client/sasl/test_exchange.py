"""The requests around a mechanism."""

from __future__ import annotations

import pytest

from leafcuttr.client.errors import AuthenticationRefused
from leafcuttr.client.sasl.exchange import SaslExchange
from leafcuttr.client.settings import ClientSasl
from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateResponse
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

PLAIN = ClientSasl(mechanism="PLAIN", username="alice", password="secret")


def begun(sasl: ClientSasl = PLAIN) -> SaslExchange:
    exchange = SaslExchange(sasl, "hub:9092")
    exchange.answered(SaslHandshakeResponse(mechanisms=[sasl.mechanism]))
    return exchange


@pytest.mark.parametrize(("lifetime_ms", "lifetime_s"), [(0, None), (1500, 1.5)])
def test_one_step(lifetime_ms: int, lifetime_s: float | None) -> None:
    exchange = SaslExchange(PLAIN, "hub:9092")
    assert exchange.request == SaslHandshakeRequest(mechanism="PLAIN")
    assert exchange.at_least == 1, "in version 0 tokens follow that are no requests"
    exchange.answered(SaslHandshakeResponse(mechanisms=["PLAIN"]))
    assert exchange.request.auth_bytes == b"\0alice\0secret"
    assert exchange.at_least == 0
    exchange.answered(SaslAuthenticateResponse(session_lifetime_ms=lifetime_ms))
    assert exchange.request is None
    assert exchange.lifetime_s == lifetime_s


def test_a_mechanism_that_the_broker_does_not_have() -> None:
    with pytest.raises(AuthenticationRefused) as caught:
        SaslExchange(PLAIN, "hub:9092").answered(
            SaslHandshakeResponse(error_code=33, mechanisms=["GSSAPI", "SCRAM-SHA-256"])
        )
    assert str(caught.value) == (
        "hub:9092: it does not offer sasl.mechanism=PLAIN; it offers 'GSSAPI', 'SCRAM-SHA-256'"
    )


def test_a_handshake_that_is_refused() -> None:
    with pytest.raises(
        AuthenticationRefused, match=r"hub:9092: it refuses SaslHandshake: .*\(ILLEGAL_SASL_STATE\)"
    ):
        SaslExchange(PLAIN, "hub:9092").answered(SaslHandshakeResponse(error_code=34))


def test_a_user_that_is_refused() -> None:
    with pytest.raises(AuthenticationRefused) as caught:
        begun().answered(
            SaslAuthenticateResponse(error_code=58, error_message="Invalid username or password")
        )
    assert str(caught.value) == (
        "hub:9092: the user alice is refused: Invalid username or password (SASL_AUTHENTICATION_FAILED)"
    )
    assert not caught.value.passes


def test_a_server_that_accepts_without_a_proof() -> None:
    """What a server would say that wants to be taken for the broker, and has no keys."""
    exchange = begun(ClientSasl(mechanism="SCRAM-SHA-256", username="alice", password="secret"))
    with pytest.raises(AuthenticationRefused, match="hub:9092: what it answers is no SCRAM"):
        exchange.answered(SaslAuthenticateResponse())
    assert exchange.request is not None
