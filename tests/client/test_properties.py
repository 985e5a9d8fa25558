"""Settings of a client as texts: Java's names, librdkafka's names, what is refused and how it is said."""

from __future__ import annotations

import re

import pytest

from imports.graph import ROOT
from leafcuttr.client.errors import ClientSettingError
from leafcuttr.client.known_names import KNOWN
from leafcuttr.client.properties import (
    _ALIASES,
    _NUMBERS,
    _TEXTS,
    addresses,
    client_settings,
    jaas_options,
)
from leafcuttr.client.settings import ClientSasl, ClientSettings, ClientTls, HostPort, Pem

HUB = {"bootstrap.servers": "hub:9092"}
SECRET = "open sesame"


def refused(**properties: str) -> str:
    """Why; names with _ for the dot."""
    with pytest.raises(ClientSettingError) as caught:
        client_settings(HUB | {name.replace("_", "."): value for name, value in properties.items()})
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_defaults_are_those_of_java() -> None:
    found = client_settings(HUB)
    assert found == ClientSettings(bootstrap=(HostPort("hub", 9092),))
    assert (found.request_timeout_s, found.connect_timeout_s, found.delivery_timeout_s) == (30, 10, 120)
    assert (found.reconnect_backoff_s, found.reconnect_backoff_max_s) == (0.05, 1)
    assert found.metadata_max_age_s == 300
    assert found.servers == "hub:9092"


def test_addresses_of_brokers() -> None:
    assert addresses("x", "one:1,two, [::1]:3 ,PLAINTEXT://four:4,[::5]") == (
        ("one", 1),
        ("two", 9092),
        ("::1", 3),
        ("four", 4),
        ("::5", 9092),
    )
    assert [str(each) for each in addresses("x", "a,[::1]:3")] == ["a:9092", "[::1]:3"]


@pytest.mark.parametrize(
    "wrong", ["", "host:", "host:port", "host:0", "host:65536", ":9092", "a,,b", "a:９０"]
)
def test_addresses_that_cannot_be(wrong: str) -> None:
    with pytest.raises(ClientSettingError, match=r"bootstrap\.servers '.*': expected HOST:PORT"):
        client_settings({"bootstrap.servers": wrong})


@pytest.mark.parametrize(
    ("java", "librdkafka", "value", "field", "expected"),
    [
        ("bootstrap.servers", "metadata.broker.list", "b:1", "servers", "b:1"),
        ("request.timeout.ms", "socket.timeout.ms", "1500", "request_timeout_s", 1.5),
        ("metadata.max.age.ms", "topic.metadata.refresh.interval.ms", "7000", "metadata_max_age_s", 7),
        ("delivery.timeout.ms", "message.timeout.ms", "9", "delivery_timeout_s", 0.009),
        ("fetch.max.wait.ms", "fetch.wait.max.ms", "20", "fetch_max_wait_s", 0.02),
        ("max.partition.fetch.bytes", "fetch.message.max.bytes", "5", "max_partition_fetch_bytes", 5),
        ("max.request.size", "message.max.bytes", "77", "max_request_size", 77),
        ("send.buffer.bytes", "socket.send.buffer.bytes", "65536", "send_buffer_bytes", 65536),
        ("receive.buffer.bytes", "socket.receive.buffer.bytes", "-1", "receive_buffer_bytes", None),
        ("client.id", "client.id", "me", "client_id", "me"),
        ("client.rack", "client.rack", "r1", "client_rack", "r1"),
        ("reconnect.backoff.ms", "reconnect.backoff.ms", "10", "reconnect_backoff_s", 0.01),
        ("reconnect.backoff.max.ms", "reconnect.backoff.max.ms", "10", "reconnect_backoff_max_s", 0.01),
        ("retry.backoff.ms", "retry.backoff.ms", "10", "retry_backoff_s", 0.01),
        ("retry.backoff.max.ms", "retry.backoff.max.ms", "10", "retry_backoff_max_s", 0.01),
        ("fetch.min.bytes", "fetch.min.bytes", "10", "fetch_min_bytes", 10),
        ("fetch.max.bytes", "fetch.max.bytes", "10", "fetch_max_bytes", 10),
        (
            "socket.connection.setup.timeout.ms",
            "socket.connection.setup.timeout.ms",
            "10",
            "connect_timeout_s",
            0.01,
        ),
        ("receive.message.max.bytes", "receive.message.max.bytes", "1000", "max_response_bytes", 1000),
    ],
)
def test_both_names(java: str, librdkafka: str, value: str, field: str, expected: object) -> None:
    for name in (java, librdkafka):
        found = client_settings(HUB | {name: f" {value} "})
        assert getattr(found, field) == expected
        assert found.unknown == ()
        assert found.other == {}


def test_the_name_that_is_given_last_counts() -> None:
    both = {"request.timeout.ms": "1000", "socket.timeout.ms": "2000"}
    assert client_settings(HUB | both).request_timeout_s == 2
    assert client_settings(HUB | dict(reversed(both.items()))).request_timeout_s == 1


def test_names_without_a_meaning_and_unknown_ones() -> None:
    found = client_settings(
        HUB | {"key.serializer": "x", "linger.ms": "5", "bootstrap.server": "y", "debug": "all", "a.b": ""}
    )
    assert found.unknown == ("bootstrap.server", "a.b")
    assert found.other == {"key.serializer": "x", "linger.ms": "5", "debug": "all"}


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("request.timeout.ms", "soon", "expected a whole number from 1 to 2147483647"),
        ("request.timeout.ms", "0", "expected a whole number from 1 to 2147483647"),
        ("request.timeout.ms", "2147483648", "expected a whole number from 1 to 2147483647"),
        ("reconnect.backoff.ms", "-1", "expected a whole number from 0 to 2147483647"),
        ("send.buffer.bytes", "-2", "expected a whole number from -1 to 2147483647"),
        ("security.protocol", "TLS", "expected one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
    ],
)
def test_values_that_are_refused(name: str, value: str, why: str) -> None:
    assert refused(**{name.replace(".", "_"): value}) == f"{name}={value}: {why}"


@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "scram-sha-512"])
@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "sasl_ssl"])
def test_sasl_by_either_name(name: str, mechanism: str, protocol: str) -> None:
    expected = ClientSasl(mechanism=mechanism.upper(), username="al ice", password=" p ")
    own = HUB | {"security.protocol": protocol, name: mechanism}
    assert client_settings(own | {"sasl.username": "al ice", "sasl.password": " p "}).sasl == expected
    jaas = 'a.b.PlainLoginModule required username="al ice" password=" p ";'
    found = client_settings(own | {"sasl.jaas.config": jaas})
    assert found.sasl == expected
    assert (found.tls is not None) == (protocol == "sasl_ssl")


def test_sasl_without_what_it_needs() -> None:
    protocol = "SASL_SSL"
    unnamed = "expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"
    assert refused(security_protocol=protocol) == f"sasl.mechanism=(not given): {unnamed}"
    assert refused(security_protocol=protocol, sasl_mechanism="GSSAPI") == f"sasl.mechanism=GSSAPI: {unnamed}"
    how = "expected sasl.jaas.config, or sasl.username and sasl.password"
    plain = {"security_protocol": protocol, "sasl_mechanism": "PLAIN"}
    assert refused(**plain) == f"security.protocol=SASL_SSL without a user name: {how}"
    assert refused(**plain, sasl_username="a") == f"security.protocol=SASL_SSL without a password: {how}"
    assert "without a user name" in refused(**plain, sasl_password=SECRET)


def test_sasl_counts_for_sasl_only() -> None:
    found = client_settings(HUB | {"sasl.mechanism": "GSSAPI", "sasl.jaas.config": "nonsense"})
    assert (found.sasl, found.tls) == (None, None)


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("m required;", {}),
        ('m required username="a" password="b";', {"username": "a", "password": "b"}),
        (
            "m optional\n  username='a \"x\"'\n  tokenauth=true ;\n",
            {"username": 'a "x"', "tokenauth": "true"},
        ),
        ('m REQUIRED a.b = "\\"q\\" \\\\; =";', {"a.b": '"q" \\; ='}),
        ("m requisite a=b c=d;", {"a": "b", "c": "d"}),
    ],
)
def test_login_modules(text: str, options: dict[str, str]) -> None:
    assert jaas_options(text) == options


@pytest.mark.parametrize(
    "text",
    [
        "",
        "m",
        f"password={SECRET}",
        f'm required password="{SECRET}"',
        f'm required password="{SECRET};',
        "m required; x",
    ],
)
def test_login_modules_that_cannot_be_read(text: str) -> None:
    protocol = {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}
    assert refused(**protocol, sasl_jaas_config=text).startswith("sasl.jaas.config: expected MODULE required")


def test_a_delegation_token() -> None:
    jaas = 'ScramLoginModule required username="id" password="hmac" tokenauth="true";'
    own = HUB | {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-256", "sasl.jaas.config": jaas}
    found = client_settings(own).sasl
    assert found is not None
    assert found.is_token


TLS = HUB | {"security.protocol": "SSL"}


def tls(**properties: str) -> ClientTls:
    found = client_settings(TLS | {name.replace("_", "."): value for name, value in properties.items()}).tls
    assert found is not None
    return found


def test_tls_by_librdkafkas_names() -> None:
    found = tls(
        ssl_ca_location="/ca",
        ssl_certificate_location="/cert",
        ssl_key_location="/key",
        ssl_key_password=SECRET,
        ssl_crl_location="/crl",
        ssl_cipher_suites="X",
    )
    assert found == ClientTls(
        trusted=Pem("ssl.ca.location", "/ca", True),
        certificate=Pem("ssl.certificate.location", "/cert", True),
        key=Pem("ssl.key.location", "/key", True),
        key_password=SECRET,
        revoked=Pem("ssl.crl.location", "/crl", True),
        ciphers="X",
    )
    assert SECRET not in repr(found)
    assert tls(ssl_ca_pem="P").trusted == Pem("ssl.ca.pem", "P", False)
    assert tls(ssl_certificate_pem="P").certificate == Pem("ssl.certificate.pem", "P", False)
    key = tls(ssl_key_pem=SECRET).key
    assert key == Pem("ssl.key.pem", SECRET, False)
    assert SECRET not in f"{key!r} {key}"


def test_tls_by_javas_names() -> None:
    found = tls(ssl_truststore_location="/ca.pem", ssl_truststore_type="PEM", ssl_keystore_location="/me.pem")
    assert found.trusted == Pem("ssl.truststore.location", "/ca.pem", True)
    assert found.certificate == Pem("ssl.keystore.location", "/me.pem", True)
    assert found.key is None
    given = tls(ssl_truststore_certificates="C", ssl_keystore_certificate_chain="M", ssl_keystore_key="K")
    assert given.trusted == Pem("ssl.truststore.certificates", "C", False)
    assert given.certificate == Pem("ssl.keystore.certificate.chain", "M", False)
    assert given.key == Pem("ssl.keystore.key", "K", False)


@pytest.mark.parametrize("kind", ["JKS", "jks", "PKCS12", "PEM"])
def test_stores_of_java(kind: str) -> None:
    """What they are their content says."""
    found = tls(
        ssl_truststore_location="/t",
        ssl_truststore_password=f" {SECRET} ",
        ssl_truststore_type=kind,
        ssl_keystore_location="/k",
        ssl_keystore_password="other ",
        ssl_keystore_type=kind,
    )
    assert (found.trusted, found.truststore_password) == (
        Pem("ssl.truststore.location", "/t", True),
        f" {SECRET} ",
    )
    assert (found.certificate, found.keystore_password) == (
        Pem("ssl.keystore.location", "/k", True),
        "other ",
    )
    assert SECRET not in repr(found)


@pytest.mark.parametrize("store", ["ssl.truststore", "ssl.keystore"])
def test_stores_of_other_kinds(store: str) -> None:
    given = {"security.protocol": "SSL", f"{store}.type": "bcfks", f"{store}.location": "/x"}
    why = refused(**{name.replace(".", "_"): value for name, value in given.items()})
    assert why == f"{store}.type=BCFKS: expected one of JKS, PKCS12, PEM"


def test_checks_of_certificates_can_be_switched_off() -> None:
    assert tls().checks_host
    assert tls().verifies
    for value in ("", "none", "NONE"):
        assert not tls(ssl_endpoint_identification_algorithm=value).checks_host
    assert not tls(enable_ssl_certificate_verification="False").verifies
    assert (
        refused(security_protocol="SSL", ssl_endpoint_identification_algorithm="ldap")
        == "ssl.endpoint.identification.algorithm=ldap: expected one of https, none, "
    )
    assert refused(security_protocol="SSL", enable_ssl_certificate_verification="no") == (
        "enable.ssl.certificate.verification=no: expected one of true, false"
    )


def test_versions_of_tls() -> None:
    assert tls().versions == {"TLSv1.2", "TLSv1.3"}
    assert tls(ssl_enabled_protocols="TLSv1.3").versions == {"TLSv1.3"}
    assert tls(ssl_enabled_protocols="TLSv1.1, TLSv1.2").versions == {"TLSv1.2"}
    assert refused(security_protocol="SSL", ssl_enabled_protocols="TLSv1.1") == (
        "ssl.enabled.protocols=TLSv1.1: expected TLSv1.2 or TLSv1.3"
    )


def test_the_page_of_settings_has_each_that_is_read() -> None:
    page = (ROOT / "docs" / "reference" / "client-settings.md").read_text()
    named = {*re.findall(r"`([a-z.]+\.[a-z.]+)`", page)}
    read = {*_NUMBERS, *_TEXTS, *_ALIASES}
    assert read <= named
    assert {name for name in named - read if name in KNOWN} == {"connections.max.reauth.ms"} & KNOWN
    defaults = ClientSettings(bootstrap=())
    for name, number in _NUMBERS.items():
        [line] = [line for line in page.splitlines() if line.startswith(f"| `{name}`")]
        value = getattr(defaults, number.field)
        cells = [cell.strip() for cell in line.split("|")]
        assert cells[3] == str(-1 if value is None else round(value * number.unit)), name
