"""Which of a broker's TLS settings a listener has."""

from __future__ import annotations

import pytest

from leafcuttr.config.settings import Settings
from leafcuttr.net.listener_tls import concerns, tls_files
from leafcuttr.net.tls_files import VERSIONS, TlsError


def test_a_listener_has_its_own_and_else_the_common_ones() -> None:
    settings = Settings(
        {
            "ssl.keystore.location": "/all.pem",
            "ssl.key.password": "secret",
            "ssl.client.auth": "required",
            "listener.name.in.ssl.keystore.location": "/in.pem",
            "listener.name.in.ssl.client.auth": "none",
            "listener.name.in.ssl.truststore.location": "/ca.pem",
            "listener.name.in.ssl.enabled.protocols": "TLSv1.3",
        }
    )
    own = tls_files(settings, "IN")
    assert (own.keystore, own.key_password, own.client_auth, own.truststore) == (
        "/in.pem",
        "secret",
        "none",
        "/ca.pem",
    )
    assert own.versions == ("TLSv1.3",)
    assert own.name("keystore.location") == "listener.name.in.ssl.keystore.location"
    common = tls_files(settings, "OUT")
    assert (common.keystore, common.client_auth, common.truststore) == ("/all.pem", "required", None)
    assert common.versions == VERSIONS
    assert common.name("keystore.location") == "ssl.keystore.location"


def test_texts() -> None:
    settings = Settings(
        {
            "ssl.keystore.key": "K",
            "ssl.keystore.certificate.chain": "C",
            "ssl.truststore.certificates": "T",
            "ssl.cipher.suites": "A,B",
        }
    )
    found = tls_files(settings, "SSL")
    assert (found.key, found.chain, found.trusted, found.cipher_suites) == ("K", "C", "T", ("A", "B"))


def test_a_listener_without_a_key() -> None:
    with pytest.raises(
        TlsError, match=r"^the listener SSL is SSL and has no key: ssl\.keystore\.location or li"
    ):
        tls_files(Settings({}), "SSL")


def test_which_settings_count() -> None:
    assert concerns("ssl.client.auth", "SSL")
    assert concerns("listener.name.ssl.ssl.client.auth", "SSL")
    assert not concerns("listener.name.other.ssl.client.auth", "SSL")
    assert not concerns("listener.name.ssl.max.connections", "SSL")
