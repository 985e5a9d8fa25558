"""Which of a broker's TLS settings a listener has."""

from __future__ import annotations

import pytest

from leafcuttr.config.listeners import Listener
from leafcuttr.config.settings import Settings
from leafcuttr.net.listener_tls import concerns, rules_of, tls_files
from leafcuttr.net.tls_files import VERSIONS, TlsError


def listener(name: str, protocol: str = "SSL") -> Listener:
    return Listener(name, "localhost", 9092, "localhost", 9092, protocol)


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
    own = tls_files(settings, listener("IN"))
    assert (own.keystore, own.key_password, own.client_auth, own.truststore) == (
        "/in.pem",
        "secret",
        "none",
        "/ca.pem",
    )
    assert own.versions == ("TLSv1.3",)
    assert own.name("keystore.location") == "listener.name.in.ssl.keystore.location"
    common = tls_files(settings, listener("OUT"))
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
    found = tls_files(settings, listener("SSL"))
    assert (found.key, found.chain, found.trusted, found.cipher_suites) == ("K", "C", "T", ("A", "B"))


def test_a_listener_without_a_key() -> None:
    with pytest.raises(
        TlsError, match=r"^the listener SSL is SSL and has no key: ssl\.keystore\.location or li"
    ):
        tls_files(Settings({}), listener("SSL"))


def test_which_settings_count() -> None:
    assert concerns("ssl.client.auth", "SSL")
    assert concerns("listener.name.ssl.ssl.client.auth", "SSL")
    assert not concerns("listener.name.other.ssl.client.auth", "SSL")
    assert not concerns("listener.name.ssl.max.connections", "SSL")


def test_passwords_and_what_a_replacement_may_change() -> None:
    settings = Settings(
        {
            "ssl.keystore.location": "/k",
            "ssl.keystore.password": "",
            "ssl.truststore.password": "t",
            "listener.name.in.ssl.allow.dn.changes": "true",
            "listener.name.in.ssl.keystore.password": "k",
        }
    )
    own = tls_files(settings, listener("IN"))
    assert (own.keystore_password, own.truststore_password, own.key_password) == ("k", "t", None)
    assert (own.allows_other_subject, own.allows_other_names) == (True, False)
    assert own.store_password_name == "listener.name.in.ssl.keystore.password"
    assert own.name("keystore.location") == "ssl.keystore.location", "each is named where it was given"
    common = tls_files(settings, listener("OUT"))
    assert common.keystore_password == "", "an empty password is one"
    assert common.store_password_name == "ssl.keystore.password"
    assert not common.allows_other_subject


def test_the_common_client_auth_is_not_for_listeners_with_a_log_in() -> None:
    """KIP-684: there it has to be given for the listener."""
    settings = Settings(
        {
            "ssl.keystore.location": "/k",
            "ssl.client.auth": "required",
            "listener.name.own.ssl.client.auth": "requested",
        }
    )
    assert tls_files(settings, listener("A", "SSL")).client_auth == "required"
    assert tls_files(settings, listener("A", "SASL_SSL")).client_auth == "none"
    assert tls_files(settings, listener("OWN", "SASL_SSL")).client_auth == "requested"


def test_rules() -> None:
    settings = Settings(
        {
            "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/",
            "listener.name.in.ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1/U",
        }
    )
    assert rules_of(settings, "IN").name("CN=a") == "A"
    assert rules_of(settings, "OUT").name("CN=a") == "a"
    assert rules_of(Settings(), "OUT").name("CN=a") == "CN=a"
    wrong = Settings({"listener.name.in.ssl.principal.mapping.rules": "x"})
    with pytest.raises(TlsError, match=r"^listener\.name\.in\.ssl\.principal\.mapping\.rules: 'x' does not"):
        rules_of(wrong, "IN")
    with pytest.raises(TlsError, match=r"^ssl\.principal\.mapping\.rules: there is no rule"):
        rules_of(Settings({"ssl.principal.mapping.rules": ""}), "IN")
