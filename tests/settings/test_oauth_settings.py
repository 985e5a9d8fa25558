"""Settings of OAUTHBEARER act: tokens that come in with them, and do not without."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.live_broker import LiveBroker
from support.logs import NOW
from support.refused_start import refusal
from support.tls_peer import Certificates
from support.token_issuer import Issuer
from support.waiting import until
from support.wire_client import WireClient

PREFIX = "sasl.oauthbearer."
URL = f"{PREFIX}jwks.endpoint.url"


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    found = Issuer(NOW / 1000)
    found.add("ES256", "a")
    found.add("ES256", "b")
    return found


def given(url: str, **more: str) -> dict[str, str]:
    """Settings; those of tokens with `_` for `.`."""
    return {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "connection.failed.authentication.delay.ms": "0",
        URL: url,
        **{PREFIX + name.replace("_", "."): value for name, value in more.items()},
    }


def log_in(broker: LiveBroker, token: str) -> Any:
    """The last answer: of a token that is refused, what says so."""
    with WireClient(broker.address) as client:
        assert client.ask(SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1).error_code == 0
        message = f"n,,\x01auth=Bearer {token}\x01\x01".encode()
        answer = client.ask(SaslAuthenticateRequest(auth_bytes=message), 2)
        if bytes(answer.auth_bytes):
            assert answer.error_code == 0
            answer = client.ask(SaslAuthenticateRequest(auth_bytes=b"\x01"), 2)
        return answer


def comes_in(broker: LiveBroker, token: str) -> bool:
    answer = log_in(broker, token)
    assert answer.error_message == ('{"status":"invalid_token"}' if answer.error_code else None)
    return not answer.error_code


@pytest.mark.setting("sasl.oauthbearer.jwks.endpoint.url")
def test_keys_of_a_file(serve: Any, issuer: Issuer, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    url = issuer.write(tmp_path / "keys.json", "a")
    with serve(given(url)) as broker:
        assert comes_in(broker, issuer.token("a"))
        assert not comes_in(broker, issuer.token("b"))
        why = "a token of OAUTHBEARER is refused: no key for ES256 has its kid"
        until(lambda: why in caplog.text, "the line")
        issuer.write(tmp_path / "keys.json")
        broker.clock.ms += 60_000
        assert comes_in(broker, issuer.token("b"))
    missing = refusal(serve, given(""))
    assert missing.startswith("the listener SASL_PLAINTEXT offers OAUTHBEARER, and nothing says which keys")
    wrong = refusal(serve, given("file:///nowhere"))
    assert wrong == f"{URL}=file:///nowhere: no keys to check tokens with: No such file or directory"


def test_the_session_lasts_as_long_as_the_token(serve: Any, issuer: Issuer, tmp_path: Path) -> None:
    url = issuer.write(tmp_path / "keys.json")
    with serve(given(url)) as broker:
        token = issuer.token("a", exp=NOW // 1000 + 100)
        assert log_in(broker, token).session_lifetime_ms == 100_000 - NOW % 1000


@pytest.mark.setting("sasl.oauthbearer.expected.issuer")
@pytest.mark.setting("sasl.oauthbearer.expected.audience")
def test_issuer_and_audience(serve: Any, issuer: Issuer, tmp_path: Path) -> None:
    settings = given(
        issuer.write(tmp_path / "keys.json"), expected_issuer="https://i/", expected_audience="kafka,x"
    )
    with serve(settings) as broker:
        assert comes_in(broker, issuer.token("a", iss="https://i/", aud=["x"]))
        assert not comes_in(broker, issuer.token("a", iss="https://j/", aud="kafka"))
        assert not comes_in(broker, issuer.token("a", iss="https://i/", aud="other"))
        assert not comes_in(broker, issuer.token("a"))


@pytest.mark.setting("sasl.oauthbearer.sub.claim.name")
def test_the_claim_with_the_name(serve: Any, issuer: Issuer, tmp_path: Path) -> None:
    with serve(given(issuer.write(tmp_path / "keys.json"), sub_claim_name="email")) as broker:
        assert comes_in(broker, issuer.token("a", email="alice@example.org"))
        assert not comes_in(broker, issuer.token("a"))


@pytest.mark.setting("sasl.oauthbearer.scope.claim.name")
def test_the_claim_with_the_scopes(serve: Any, issuer: Issuer, tmp_path: Path) -> None:
    """They decide nothing, and a token in which they are malformed is refused, as by Kafka."""
    with serve(given(issuer.write(tmp_path / "keys.json"), scope_claim_name="scp")) as broker:
        assert comes_in(broker, issuer.token("a", scp="read", scope=7))
        assert not comes_in(broker, issuer.token("a", scp=7))


@pytest.mark.setting("sasl.oauthbearer.clock.skew.seconds")
def test_clocks_that_differ(serve: Any, issuer: Issuer, tmp_path: Path) -> None:
    now, url = NOW // 1000, issuer.write(tmp_path / "keys.json")
    token = issuer.token("a", iat=now - 200, exp=now - 50)
    with serve(given(url, clock_skew_seconds="60")) as broker:
        assert comes_in(broker, token)
    with serve(given(url)) as broker:
        assert not comes_in(broker, token)


@pytest.mark.setting("sasl.oauthbearer.jwks.endpoint.refresh.ms")
@pytest.mark.setting("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms")
@pytest.mark.setting("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms")
def test_an_endpoint_is_read_again(serve: Any, issuer: Issuer) -> None:
    with issuer.endpoint("a") as endpoint:
        settings = given(
            endpoint.url,
            jwks_endpoint_refresh_ms="5000",
            jwks_endpoint_retry_backoff_ms="300",
            jwks_endpoint_retry_backoff_max_ms="900",
        )
        with serve(settings) as broker:
            assert endpoint.requests == 1
            (source,) = broker.broker.token_keys
            endpoint.status = 500
            broker.clock.ms += 5000
            until(lambda: source._failures == 1, "the refresh")
            for count, pause_ms in ((2, 300), (3, 600), (4, 900), (5, 900)):
                broker.clock.ms += pause_ms + 1
                until(partial(_has_failed, source, count), "another try")
            endpoint.status, endpoint.text = 200, issuer.key_set("b")
            broker.clock.ms += 900
            until(lambda: not source._failures, "the keys")
            assert comes_in(broker, issuer.token("b"))
            assert not comes_in(broker, issuer.token("a"))


def _has_failed(source: Any, count: int) -> bool:
    """So many times, one after the other."""
    return bool(source._failures == count)


def test_an_endpoint_that_is_away_stops_the_start(serve: Any, issuer: Issuer, tmp_path: Path) -> None:
    """As in Kafka: nobody could come in. Its certificate is checked, by what the JAAS entry trusts."""
    ours = Certificates(tmp_path)
    with issuer.endpoint(certificate=ours.issue("127.0.0.1").file) as endpoint:
        line = refusal(serve, given(endpoint.url))
        assert line.startswith(
            f"{URL}={endpoint.url}: no keys to check tokens with: the certificate of the server"
        )
        jaas = f'M required ssl.truststore.location="{ours.trusted}";'
        own = {"listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": jaas}
        with serve({**given(endpoint.url), **own}) as broker:
            assert comes_in(broker, issuer.token("a"))
    assert refusal(serve, given(endpoint.url)).endswith("Connection refused")


HANDLER = "listener.name.sasl_plaintext.oauthbearer.sasl.server.callback.handler.class"
KAFKAS = "org.apache.kafka.common.security.oauthbearer"


def test_classes_that_a_file_for_kafka_names(serve: Any, issuer: Issuer, tmp_path: Path) -> None:
    url = issuer.write(tmp_path / "keys.json")
    for name in ("OAuthBearerValidatorCallbackHandler", "secured.OAuthBearerValidatorCallbackHandler"):
        with serve({**given(url), HANDLER: f"{KAFKAS}.{name}"}) as broker:
            assert comes_in(broker, issuer.token("a"))
