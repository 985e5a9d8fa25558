"""Settings of GSSAPI act, at the start and while the broker runs. The tickets are not real (`support.tickets`)."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from confluent_kafka import KafkaException

from leafcuttr.errors import ErrorCode
from leafcuttr.state.security.kerberos import acceptor, names
from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.changing import alter_broker
from support.live_broker import LiveBroker
from support.refused_start import refusal
from support.tickets import PretendedAcceptor
from support.wire_client import WireClient

RULES, SERVICE = "sasl.kerberos.principal.to.local.rules", "sasl.kerberos.service.name"
GIVEN = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true "
        'keyTab="/k" principal="kafka/h@R";'
    ),
    "connection.failed.authentication.delay.ms": "0",
}


@pytest.fixture(autouse=True)
def tickets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of an hour."""
    monkeypatch.setattr(acceptor, "library", lambda: None)
    monkeypatch.setattr(acceptor, "open_acceptor", lambda key: PretendedAcceptor(lasts_s=3600))


def log_in(broker: LiveBroker, authorization: str = "") -> Any:
    with WireClient(f"127.0.0.1:{broker.broker.listeners[1].port}") as client:
        client.socket.settimeout(60)
        assert client.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1).error_code == 0
        send = partial(SaslAuthenticateRequest)
        answer = client.ask(send(auth_bytes=b"alice@R"), 2)
        if answer.error_code:
            return answer
        return client.ask(send(auth_bytes=answer.auth_bytes + authorization.encode()), 2)


@pytest.mark.setting("sasl.kerberos.principal.to.local.rules", while_running=True)
def test_names(serve: Any) -> None:
    """Whom a client may ask to be shows its name."""
    with serve({**GIVEN, RULES: "RULE:[1:first-$1]"}) as broker:
        assert log_in(broker, "first-alice").error_code == 0
        alter_broker(broker.address, "1", {RULES: "RULE:[1:second-$1]"})
        assert log_in(broker, "second-alice").error_code == 0
        assert log_in(broker, "first-alice").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        for name in (
            RULES,
            f"listener.name.sasl_plaintext.{RULES}",
            f"listener.name.sasl_plaintext.gssapi.{RULES}",
        ):
            with pytest.raises(KafkaException) as caught:
                alter_broker(broker.address, "1", {name: "DEFAULT,no rule"})
            error = caught.value.args[0]
            assert error.code() == ErrorCode.INVALID_CONFIG
            assert error.str() == (
                f"{name}: 'no rule' is neither DEFAULT nor RULE:[n:format](pattern)s/from/to/g/L"
            )
        assert log_in(broker, "second-alice").error_code == 0, "what was there stays"
    assert refusal(serve, {**GIVEN, RULES: "DEFAULT,RULE"}).startswith(f"{RULES}: 'RULE' is neither")


def test_rules_are_read_once_for_a_change(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    made = names.KerberosRules.__init__

    def counted(self: names.KerberosRules, rules: tuple[str, ...]) -> None:
        read.append(rules)
        made(self, rules)

    monkeypatch.setattr(names.KerberosRules, "__init__", counted)
    with serve({**GIVEN, RULES: "RULE:[1:once-$1]"}) as broker:
        alter_broker(broker.address, "1", {RULES: "RULE:[1:twice-$1]"})
        for _ in range(3):
            assert log_in(broker, "twice-alice").error_code == 0
    assert read == [("RULE:[1:once-$1]",), ("RULE:[1:twice-$1]",)]


@pytest.mark.setting("sasl.kerberos.service.name", while_running=True)
def test_the_service(serve: Any) -> None:
    with serve({**GIVEN, SERVICE: "kafka"}) as broker:
        assert log_in(broker).error_code == 0
        alter_broker(broker.address, "1", {SERVICE: "broker"})
        with pytest.raises(ConnectionError):
            log_in(broker)
    line = refusal(serve, {**GIVEN, SERVICE: "broker"})
    assert line == f"{SERVICE}=broker: the principal of the listener SASL_PLAINTEXT is kafka/h@R"


def test_a_session_lasts_as_long_as_the_ticket(serve: Any) -> None:
    with serve(GIVEN) as broker:
        assert log_in(broker).session_lifetime_ms == 3_600_000
    own = "listener.name.sasl_plaintext.gssapi.connections.max.reauth.ms"
    with serve({**GIVEN, own: "5000"}) as broker:
        assert log_in(broker).session_lifetime_ms == 5000
