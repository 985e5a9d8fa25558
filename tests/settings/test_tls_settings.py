"""`ssl.*` of listeners for Kafka's clients: each acts at the start, for one listener too, and while the broker runs."""

from __future__ import annotations

import logging
import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from support.changing import alter_broker
from support.live_broker import LiveBroker, live_broker
from support.refused_start import refusal
from support.tls_peer import Certificates, Seen, shake_hands
from support.waiting import until

BOTH = {"listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"}
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
def test_the_file_of_the_key(serve: Any, ours: Certificates, caplog: pytest.LogCaptureFixture) -> None:
    first, second = ours.issue("127.0.0.1"), ours.issue("second.test", "127.0.0.1")
    context = ours.client()
    with serve({**BOTH, "ssl.keystore.location": first.file}) as broker:
        port = port_of(broker)
        alter(broker, {"ssl.keystore.location": second.file})
        until(lambda: "second.test" in seen(shake_hands(port, context)).names, "the new certificate")
        with caplog.at_level(logging.ERROR):
            alter(broker, {"ssl.keystore.location": "/nowhere.pem"})
            until(lambda: "/nowhere.pem" in caplog.text, "the line")
        assert "second.test" in seen(shake_hands(port, context)).names, "the one before stays"
        assert "the certificate that was read before stays in use" in caplog.text


@pytest.mark.setting("ssl.keystore.key", "ssl.keystore.certificate.chain", while_running=True)
def test_key_and_certificates_as_texts(serve: Any, ours: Certificates) -> None:
    first, second = ours.issue("127.0.0.1"), ours.issue("second.test", "127.0.0.1")

    def texts(identity: Any) -> dict[str, str | None]:
        return {"ssl.keystore.key": identity.key, "ssl.keystore.certificate.chain": identity.chain}

    with serve({**BOTH, **texts(first)}) as broker:
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
    with serve({**BOTH, "ssl.keystore.location": plain.file}) as broker:
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
