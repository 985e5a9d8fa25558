"""`ssl.*` of listeners for Kafka's clients: each acts at the start, for one listener too, and while the broker runs."""

from __future__ import annotations

import re
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from confluent_kafka import KafkaException
from cryptography.hazmat.primitives import serialization

from leafcuttr.net.pkcs12 import read_pkcs12
from support.changing import alter_broker
from support.live_broker import LiveBroker, live_broker
from support.refused_start import refusal
from support.tls_peer import Certificates, Seen, shake_hands
from support.waiting import until

BOTH = {"listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"}
CHANGES = {"ssl.allow.dn.changes": "true", "ssl.allow.san.changes": "true"}
KEYSTORES = Path(__file__).parent.parent / "net" / "keystores"
OWN = "1"
OLD, NEW = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


@pytest.fixture
def ours(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


def port_of(broker: LiveBroker, name: str = "SSL") -> int:
    (port,) = broker.call(lambda: [each.port for each in broker.broker.listeners if each.name == name])
    return int(port)


def alter(broker: LiveBroker, settings: dict[str, str | None]) -> None:
    """Of the listener: Kafka refuses these for all of them together."""
    alter_broker(
        broker.address, OWN, {f"listener.name.ssl.{name}": value for name, value in settings.items()}
    )


def seen(found: Seen | str) -> Seen:
    assert isinstance(found, Seen), found
    return found


@pytest.mark.setting("ssl.keystore.location", while_running=True)
def test_the_file_of_the_key(serve: Any, ours: Certificates) -> None:
    first, second = ours.issue("127.0.0.1"), ours.issue("second.test", "127.0.0.1")
    context = ours.client()
    with serve({**BOTH, **CHANGES, "ssl.keystore.location": first.file}) as broker:
        port = port_of(broker)
        alter(broker, {"ssl.keystore.location": second.file})
        assert "second.test" in seen(shake_hands(port, context)).names, "from the answer on"
        with pytest.raises(
            KafkaException, match=r"listener\.name\.ssl\.ssl\.keystore\.location=/nowhere\.pem: No such"
        ):
            alter(broker, {"ssl.keystore.location": "/nowhere.pem"})
        assert "second.test" in seen(shake_hands(port, context)).names, "the one before stays"


def test_the_same_path_has_the_file_read_again(serve: Any, ours: Certificates) -> None:
    """KIP-226: what is refused is refused in the answer, and stays out of use."""
    first, second = ours.issue("127.0.0.1"), ours.issue("second.test", "127.0.0.1")
    path = Path(first.file)
    given = {**BOTH, **CHANGES, "lc.tls.reload.interval.ms": "0", "ssl.keystore.location": first.file}
    with serve(given) as broker:
        port = port_of(broker)
        path.write_text("nothing")
        with pytest.raises(KafkaException, match="it has no PEM"):
            alter(broker, {"ssl.keystore.location": str(path)})
        assert seen(shake_hands(port, ours.client())).names == ("127.0.0.1",)
        path.write_bytes(Path(second.file).read_bytes())
        assert seen(shake_hands(port, ours.client())).names == ("127.0.0.1",), "nobody has looked"
        alter(broker, {"ssl.keystore.location": str(path)})
        assert "second.test" in seen(shake_hands(port, ours.client())).names
        path.write_text("nothing")
        with pytest.raises(KafkaException, match="it has no PEM"):
            alter(broker, {"ssl.keystore.location": None})
        path.write_bytes(Path(second.file).read_bytes())
        alter(broker, {"ssl.keystore.location": None})


def test_a_file_that_changes_is_read_without_being_told(serve: Any, ours: Certificates) -> None:
    first, second = ours.issue("127.0.0.1"), ours.issue("second.test", "127.0.0.1")
    given = {**BOTH, **CHANGES, "lc.tls.reload.interval.ms": "20", "ssl.keystore.location": first.file}
    with serve(given) as broker:
        port = port_of(broker)
        Path(first.file).write_bytes(Path(second.file).read_bytes())
        until(lambda: "second.test" in seen(shake_hands(port, ours.client())).names, "the new certificate")


def test_a_change_outlasts_the_broker(serve: Any, ours: Certificates) -> None:
    first, second = ours.issue("127.0.0.1"), ours.issue("second.test", "127.0.0.1")
    given = {**BOTH, **CHANGES, "ssl.keystore.location": first.file}
    with serve(given) as broker:
        alter(broker, {"ssl.keystore.location": second.file})
    with serve(given) as broker:
        assert "second.test" in seen(shake_hands(port_of(broker), ours.client())).names


@pytest.mark.setting("ssl.allow.dn.changes", "ssl.allow.san.changes")
@pytest.mark.parametrize("kind", ["dn", "san"])
def test_what_a_replacement_may_change(serve: Any, tmp_path: Path, kind: str) -> None:
    authority = trustme.CA()
    file = tmp_path / "key.pem"

    def write(*names: str, common_name: str = "a") -> None:
        found = authority.issue_cert(*names, common_name=common_name, organization_unit_name="web")
        found.private_key_and_cert_chain_pem.write_to_path(file)

    write("127.0.0.1", "old.test")
    given = {**BOTH, "ssl.keystore.location": str(file)}
    name = f"ssl.allow.{kind}.changes"
    with serve(given) as broker:
        write("127.0.0.1", "old.test", "new.test")
        alter(broker, {"ssl.keystore.location": str(file)})
        if kind == "dn":
            write("127.0.0.1", "old.test", "new.test", common_name="b")
        else:
            write("127.0.0.1", "new.test")
        with pytest.raises(KafkaException, match=rf"\({name}=true allows"):
            alter(broker, {"ssl.keystore.location": str(file)})
    write("127.0.0.1", "old.test")
    with serve({**given, **CHANGES}, directory="other") as broker:
        if kind == "dn":
            write("127.0.0.1", "old.test", common_name="b")
        else:
            write("127.0.0.1")
        alter(broker, {"ssl.keystore.location": str(file)})


@pytest.mark.setting("ssl.keystore.password", "ssl.truststore.password", while_running=True)
def test_passwords_of_keystores(serve: Any) -> None:
    """JKS and PKCS#12 of Java's keytool; each is refused without its password."""
    trusted = ssl.DER_cert_to_PEM_cert(
        read_pkcs12((KEYSTORES / "key.p12").read_bytes(), "store-secret")[1] or b""
    )
    context = ssl.create_default_context(cadata=trusted)
    context.check_hostname = False
    jks = {
        **BOTH,
        "ssl.keystore.location": str(KEYSTORES / "key.jks"),
        "ssl.key.password": "key-secret",
        "ssl.truststore.location": str(KEYSTORES / "trust.p12"),
    }
    assert refusal(serve, jks).endswith("it is a JKS keystore, and ssl.keystore.password is not given")
    with_key = {**jks, "ssl.keystore.password": "store-secret"}
    assert "PKCS#12 keystore; ssl.truststore.password is not given" in refusal(serve, with_key)
    with serve({**with_key, **CHANGES, "ssl.truststore.password": "trust-secret"}) as broker:
        p12: dict[str, str | None] = {
            "ssl.keystore.location": str(KEYSTORES / "key.p12"),
            "ssl.truststore.location": str(KEYSTORES / "trust.jks"),
        }
        with pytest.raises(KafkaException, match="a PKCS#12 keystore has one password"):
            alter(broker, p12)
        with pytest.raises(
            KafkaException, match=r"listener\.name\.ssl\.ssl\.truststore\.password does not open it"
        ):
            alter(broker, {**p12, "ssl.key.password": "store-secret", "ssl.truststore.password": "x"})
        alter(broker, {**p12, "ssl.key.password": "store-secret", "ssl.keystore.password": "store-secret"})
        assert seen(shake_hands(port_of(broker), context)).names == ("localhost",)


@pytest.mark.setting("ssl.principal.mapping.rules")
def test_principals(serve: Any, ours: Certificates) -> None:
    """The subject of the certificate, as Java writes it; by the rules, for one listener too."""
    given = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,RULES://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,RULES:SSL",
        "ssl.keystore.location": ours.issue("127.0.0.1").file,
        "ssl.truststore.location": ours.trusted,
        "ssl.client.auth": "requested",
        "listener.name.rules.ssl.principal.mapping.rules": "RULE:^CN=([a-z]+),.*$/$1/U",
    }
    device, other = (ours.client(ours.issue(common_name=name)) for name in ("device", "Other"))

    def principals(port: int, context: ssl.SSLContext) -> list[str]:
        with (
            socket.create_connection(("127.0.0.1", port), 60) as sock,
            context.wrap_socket(sock, server_hostname="127.0.0.1") as tls,
        ):
            tls.sendall(b"\0\0\0\x0a" + b"\0\x12\0\0\0\0\0\1\xff\xff")
            if not tls.recv(4):
                return []
            open_now = broker.call(lambda: list(broker.broker.tls._connections.all))
            return [str(each.context.client.principal) for each in open_now]

    with serve(given) as broker:
        (name,) = principals(port_of(broker), device)
        assert re.fullmatch(r"User:CN=device,OU=Testing cert .+,O=trustme v[\d.]+", name)
        assert principals(port_of(broker), ours.client()) == ["User:ANONYMOUS"]
        assert principals(port_of(broker, "RULES"), device) == ["User:DEVICE"]
        assert shake_hands(port_of(broker, "RULES"), other) == "the connection was closed", "no rule matches"
    wrong = {**given, "ssl.principal.mapping.rules": "RULE:CN=(.*/$1/"}
    assert refusal(serve, wrong).startswith("ssl.principal.mapping.rules: the pattern 'CN=(.*': ")


def test_the_common_client_auth_beside_a_log_in(
    serve: Any, ours: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    """It is for SSL only (KIP-684), which a line says."""
    given = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "ssl.keystore.location": ours.issue("127.0.0.1").file,
        "ssl.truststore.location": ours.trusted,
        "ssl.client.auth": "required",
    }
    with serve(given) as broker:
        assert isinstance(shake_hands(port_of(broker, "SASL_SSL"), ours.client()), Seen)
    assert [each for each in caplog.messages if "ssl.client.auth" in each] == [
        "ssl.client.auth=required is not for listener SASL_SSL, whose clients log in; where both are wanted: "
        "listener.name.sasl_ssl.ssl.client.auth"
    ]
    caplog.clear()
    own = {**given, "listener.name.sasl_ssl.ssl.client.auth": "required"}
    with serve(own, directory="other") as broker:
        assert isinstance(shake_hands(port_of(broker, "SASL_SSL"), ours.client()), str)
    assert not [each for each in caplog.messages if "is not for listener" in each]


def test_a_listener_that_becomes_open_has_a_warning(
    serve: Any, ours: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    given = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://0.0.0.0:0",
        "ssl.keystore.location": ours.issue("127.0.0.1").file,
        "ssl.truststore.location": ours.trusted,
        "ssl.client.auth": "required",
    }
    with serve(given) as broker:
        assert "without authentication" not in caplog.text
        for auth in ("none", "required", "none"):
            alter(broker, {"ssl.client.auth": auth})
        assert len([each for each in caplog.messages if "may use the listener SSL without" in each]) == 1


def test_handshakes_that_fail_are_counted(serve: Any, ours: Certificates) -> None:
    with serve({**BOTH, "ssl.keystore.location": ours.issue("127.0.0.1").file}) as broker:
        port = port_of(broker)
        assert isinstance(shake_hands(port, ours.client()), Seen)
        assert isinstance(shake_hands(port, ssl.create_default_context()), str), "the client refuses"
        connections = broker.broker.tls._connections
        until(lambda: broker.call(lambda: dict(connections.not_admitted)) == {"SSL": 1}, "the count")


@pytest.mark.setting("lc.listeners.open")
def test_open_listeners_are_refused(serve: Any, ours: Certificates) -> None:
    """But those of this machine, and those where every client says who it is."""
    given = {
        "lc.listeners.open": "refuse",
        "ssl.keystore.location": ours.issue("127.0.0.1").file,
        "ssl.truststore.location": ours.trusted,
    }
    for protocol in ("PLAINTEXT", "SSL"):
        line = refusal(serve, {**given, "listeners": f"{protocol}://0.0.0.0:0"})
        assert re.fullmatch(
            rf"every host that reaches 0\.0\.0\.0 port \d+ may use the listener {protocol} without authentication "
            r"\(listeners\), which lc\.listeners\.open=refuse forbids",
            line,
        )
    assert "read metrics and health" in refusal(
        serve, {**given, "lc.metrics.enable": "true", "lc.metrics.host": "0.0.0.0", "lc.metrics.port": "0"}
    )
    required = {
        "ssl.client.auth": "required",
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": "SCRAM-SHA-256",
    }
    open_to_all = "PLAINTEXT://127.0.0.1:0,SSL://0.0.0.0:0,SASL_SSL://0.0.0.0:0"
    with (
        serve({**given, **required, "listeners": open_to_all}) as broker,
        pytest.raises(KafkaException, match=r"which lc\.listeners\.open=refuse forbids"),
    ):
        alter(broker, {"ssl.client.auth": "requested"})


@pytest.mark.setting("ssl.keystore.key", "ssl.keystore.certificate.chain", while_running=True)
def test_key_and_certificates_as_texts(serve: Any, ours: Certificates) -> None:
    first, second = ours.issue("127.0.0.1"), ours.issue("second.test", "127.0.0.1")

    def texts(identity: Any) -> dict[str, str | None]:
        return {"ssl.keystore.key": identity.key, "ssl.keystore.certificate.chain": identity.chain}

    with serve({**BOTH, **CHANGES, **texts(first)}) as broker:
        port = port_of(broker)
        assert seen(shake_hands(port, ours.client())).names == ("127.0.0.1",)
        alter(broker, texts(second))
        until(lambda: "second.test" in seen(shake_hands(port, ours.client())).names, "the new certificate")


@pytest.mark.setting("ssl.key.password", while_running=True)
def test_an_encrypted_key(serve: Any, ours: Certificates, tmp_path: Path) -> None:
    first = ours.issue("locked.test", "127.0.0.1")
    key = serialization.load_pem_private_key(first.key.encode(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"sesame"),
    )
    file = tmp_path / "locked.pem"
    file.write_bytes(locked + first.chain.encode())
    given = {**BOTH, "ssl.keystore.location": str(file)}
    assert refusal(serve, given).endswith("is encrypted, and ssl.key.password is not given")
    with serve({**given, "ssl.key.password": "sesame"}) as broker:
        assert "locked.test" in seen(shake_hands(port_of(broker), ours.client())).names
    plain = ours.issue("127.0.0.1")
    with serve({**BOTH, **CHANGES, "ssl.keystore.location": plain.file}) as broker:
        alter(broker, {"ssl.keystore.location": str(file), "ssl.key.password": "sesame"})
        port = port_of(broker)
        until(lambda: "locked.test" in seen(shake_hands(port, ours.client())).names, "the new key")


@pytest.mark.setting(
    "ssl.client.auth", "ssl.truststore.location", "ssl.truststore.certificates", while_running=True
)
def test_certificates_of_clients(serve: Any, ours: Certificates, tmp_path: Path) -> None:
    server, device = ours.issue("127.0.0.1"), ours.issue(common_name="device")
    others = Certificates(tmp_path, "others")
    stranger = ours.client(others.issue(common_name="stranger"))
    given = {
        **BOTH,
        "ssl.keystore.location": server.file,
        "ssl.truststore.location": ours.trusted,
        "ssl.client.auth": "required",
    }
    known, without = ours.client(device), ours.client()
    with serve(given) as broker:
        port = port_of(broker)
        assert isinstance(shake_hands(port, known), Seen)
        assert isinstance(shake_hands(port, without), str)
        assert isinstance(shake_hands(port, stranger), str)
        alter(broker, {"ssl.client.auth": "requested"})
        until(lambda: isinstance(shake_hands(port, without), Seen), "a client without a certificate")
        assert isinstance(shake_hands(port, stranger), str), "one that is shown has to be trusted"
        alter(broker, {"ssl.truststore.location": others.trusted})
        until(lambda: isinstance(shake_hands(port, stranger), Seen), "a client of the other authority")
        assert isinstance(shake_hands(port, known), str)
    texts = {**given, "ssl.truststore.certificates": ours.trusted_text}
    del texts["ssl.truststore.location"]
    with serve(texts, directory="other") as broker:
        port = port_of(broker)
        assert isinstance(shake_hands(port, known), Seen)
        alter(broker, {"ssl.truststore.certificates": others.trusted_text})
        until(lambda: isinstance(shake_hands(port, stranger), Seen), "a client of the other authority")


@pytest.mark.setting("ssl.enabled.protocols", while_running=True)
def test_versions(serve: Any, ours: Certificates) -> None:
    given = {**BOTH, "ssl.keystore.location": ours.issue("127.0.0.1").file}
    with serve({**given, "ssl.enabled.protocols": "TLSv1.2"}) as broker:
        port = port_of(broker)
        assert seen(shake_hands(port, ours.client())).version == "TLSv1.2"
        assert isinstance(shake_hands(port, ours.client(only=NEW)), str)
        alter(broker, {"ssl.enabled.protocols": "TLSv1.3"})
        until(lambda: isinstance(shake_hands(port, ours.client(only=NEW)), Seen), "TLS 1.3")
        assert isinstance(shake_hands(port, ours.client(only=OLD)), str)
    old = {**given, "ssl.enabled.protocols": "TLSv1.1,TLSv1.2"}
    wanted = "ssl.enabled.protocols: TLSv1.1 is not spoken; allowed are TLSv1.2 and TLSv1.3"
    assert refusal(serve, old) == wanted


@pytest.mark.setting("ssl.cipher.suites", while_running=True)
def test_cipher_suites(serve: Any, ours: Certificates) -> None:
    suites = {
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    }
    (one, its_name), (other, others_name) = suites.items()
    given = {
        **BOTH,
        "ssl.keystore.location": ours.issue("127.0.0.1").file,
        "ssl.enabled.protocols": "TLSv1.2",
    }
    with serve({**given, "ssl.cipher.suites": one}) as broker:
        port = port_of(broker)
        assert seen(shake_hands(port, ours.client())).cipher == its_name
        alter(broker, {"ssl.cipher.suites": other})
        until(lambda: seen(shake_hands(port, ours.client())).cipher == others_name, "the other suite")


def test_a_listener_has_settings_of_its_own(tmp_path: Path, ours: Certificates) -> None:
    """KIP-103"""
    everywhere, inside = ours.issue("127.0.0.1"), ours.issue("inside.test", "127.0.0.1")
    device = ours.client(ours.issue(common_name="device"))
    given = {
        "listeners": "OUT://127.0.0.1:0,IN://127.0.0.1:0",
        "listener.security.protocol.map": "OUT:SSL,IN:SSL",
        "ssl.keystore.location": everywhere.file,
        "listener.name.in.ssl.keystore.location": inside.file,
        "listener.name.in.ssl.client.auth": "required",
        "ssl.truststore.location": ours.trusted,
    }
    with live_broker(tmp_path / "data", given) as broker:
        assert seen(shake_hands(port_of(broker, "OUT"), ours.client())).names == ("127.0.0.1",)
        assert isinstance(shake_hands(port_of(broker, "IN"), ours.client()), str)
        assert "inside.test" in seen(shake_hands(port_of(broker, "IN"), device)).names


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        (
            {},
            "the listener SSL is SSL and has no key: ssl.keystore.location or listener.name.ssl.ssl.keystore",
        ),
        ({"ssl.keystore.location": "/nowhere"}, "ssl.keystore.location=/nowhere: No such file"),
        (
            {"listener.name.ssl.ssl.keystore.location": "/nowhere"},
            "listener.name.ssl.ssl.keystore.location=/nowhere: No such file",
        ),
        ({"ssl.keystore.key": "x"}, "ssl.keystore.certificate.chain is not given: ssl.keystore.key and"),
    ],
)
def test_what_cannot_be_served_stops_the_start(serve: Any, settings: dict[str, str], line: str) -> None:
    assert refusal(serve, {**BOTH, **settings}).startswith(line)
