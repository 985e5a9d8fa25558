"""Properties of a client of a registry."""

from __future__ import annotations

import pytest

from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.http_schemas.settings import RegistryAddress, RegistrySettings, registry_settings

URL = {"schema.registry.url": "http://h:8081"}
HERE = RegistryAddress(False, "h", 8081, "", None, "")


def test_defaults_are_those_of_confluents_clients() -> None:
    assert registry_settings(URL) == RegistrySettings(addresses=(HERE,))
    found = registry_settings(URL)
    assert (found.retries, found.retry_wait_s, found.retry_wait_max_s) == (3, 1.0, 20.0)
    assert (found.capacity, found.missing_id_s, found.normalize) == (1000, 0.0, False)
    assert (found.connect_timeout_s, found.read_timeout_s) == (60.0, 60.0)


@pytest.mark.parametrize(
    ("url", "address", "shown"),
    [
        ("http://h:8081", HERE, "http://h:8081"),
        ("h", RegistryAddress(False, "h", 80, "", None, ""), "http://h:80"),
        ("https://h/", RegistryAddress(True, "h", 443, "", None, ""), "https://h:443"),
        ("https://[::1]:7/a/b/", RegistryAddress(True, "::1", 7, "/a/b", None, ""), "https://[::1]:7/a/b"),
        ("http://a%40b:c%3Ad@h:1", RegistryAddress(False, "h", 1, "", "a@b", "c:d"), "http://h:1"),
    ],
)
def test_addresses(url: str, address: RegistryAddress, shown: str) -> None:
    (found,) = registry_settings({"schema.registry.url": url}).addresses
    assert found == address
    assert str(found) == shown
    assert "c:d" not in repr(found)


def test_several_addresses() -> None:
    found = registry_settings({"schema.registry.url": " http://a:1, b:2 ,"})
    assert [str(each) for each in found.addresses] == ["http://a:1", "http://b:2"]


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"basic.auth.user.info": "ada:se:same"}, {"user": "ada", "password": "se:same"}),
        (
            {
                "schema.registry.basic.auth.credentials.source": "user_info",
                "schema.registry.basic.auth.user.info": "a:b",
            },
            {"user": "a", "password": "b"},
        ),
        (
            {"basic.auth.credentials.source": "SASL_INHERIT", "sasl.username": "u", "sasl.password": "p"},
            {"user": "u", "password": "p"},
        ),
        ({"basic.auth.credentials.source": "URL", "basic.auth.user.info": "a:b"}, {}),
        (
            {
                "bearer.auth.token": "t.k-n",
                "bearer.auth.logical.cluster": "lsrc-1",
                "bearer.auth.identity.pool.id": "pool-1",
            },
            {
                "token": "t.k-n",
                "headers": (("target-sr-cluster", "lsrc-1"), ("Confluent-Identity-Pool-Id", "pool-1")),
            },
        ),
        (
            {
                "ssl.ca.location": "/ca",
                "ssl.certificate.location": "/c",
                "ssl.key.location": "/k",
                "ssl.key.password": "s",
            },
            {"ca_file": "/ca", "certificate_file": "/c", "key_file": "/k", "key_password": "s"},
        ),
        (
            {
                "schema.registry.ssl.truststore.location": "/t",
                "ssl.truststore.location": "/of.kafka",
                "max.retries": "9",
                "schema.registry.max.retries": "1",
                "schema.registry.ssl.endpoint.identification.algorithm": "",
            },
            {"ca_file": "/t", "checks_host": False, "retries": 1},
        ),
        ({"ssl.truststore.certificates": "PEM"}, {"ca_text": "PEM"}),
        ({"enable.ssl.certificate.verification": "false"}, {"verifies": False}),
        (
            {
                "max.retries": "0",
                "retries.wait.ms": "10",
                "retries.max.wait.ms": "20",
                "http.connect.timeout.ms": "30",
                "http.read.timeout.ms": "40",
                "cache.capacity": "5",
                "missing.id.cache.ttl.sec": "6",
                "max.response.bytes": "7000",
                "normalize.schemas": "true",
            },
            {
                "retries": 0,
                "retry_wait_s": 0.01,
                "retry_wait_max_s": 0.02,
                "connect_timeout_s": 0.03,
                "read_timeout_s": 0.04,
                "capacity": 5,
                "missing_id_s": 6.0,
                "max_response_bytes": 7000,
                "normalize": True,
            },
        ),
        ({"bootstrap.servers": "x", "client.id": "y"}, {}),
    ],
)
def test_properties(given: dict[str, str], fields: dict[str, object]) -> None:
    found = registry_settings(URL | given)
    assert found == RegistrySettings(addresses=(HERE,), **fields)  # type: ignore[arg-type]
    for secret in (found.password, found.token, found.key_password):
        assert secret is None or repr(secret) not in repr(found)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"schema.registry.url": ""}, "schema.registry.url is not given"),
        ({"schema.registry.url": "ftp://h"}, "schema.registry.url=ftp://h: expected http://HOST:PORT"),
        ({"schema.registry.url": "http://:80"}, "expected http://HOST:PORT"),
        ({"schema.registry.url": "http://u:secret@h:x"}, r"schema.registry.url=http://...@h:x: Port"),
        ({"schema.registry.url": "http://h:1?x=1"}, "expected http://HOST:PORT"),
        ({"schema.registry.url": "http://h/a b"}, "expected printable ASCII characters"),
        ({"schema.registry.url": "http://h/a\r\nX: y"}, "schema.registry.url"),
        ({"basic.auth.user.info": "secret"}, "basic.auth.user.info: expected NAME:PASSWORD"),
        ({"basic.auth.credentials.source": "USER_INFO"}, "USER_INFO without basic.auth.user.info"),
        ({"basic.auth.credentials.source": "LDAP"}, "LDAP: expected one of URL, USER_INFO, SASL_INHERIT"),
        (
            {"basic.auth.credentials.source": "SASL_INHERIT", "sasl.username": "u"},
            "expected sasl.username and sasl.pass",
        ),
        ({"bearer.auth.credentials.source": "STATIC_TOKEN"}, "without bearer.auth.token"),
        ({"bearer.auth.credentials.source": "OAUTHBEARER"}, "expected one of STATIC_TOKEN"),
        ({"bearer.auth.token": "secret\n"}, "bearer.auth.token: expected printable ASCII characters"),
        ({"bearer.auth.token": "secret", "basic.auth.user.info": "a:secret"}, "are given both"),
        ({"max.retries": "-1"}, "max.retries=-1: expected a whole number from 0 to"),
        ({"cache.capacity": "0"}, "cache.capacity=0: expected a whole number from 1 to"),
        ({"http.read.timeout.ms": "soon"}, "http.read.timeout.ms=soon: expected a whole number from 1"),
        ({"max.response.bytes": "١٠٠٠"}, "expected a whole number"),
        ({"normalize.schemas": "yes"}, "normalize.schemas=yes: expected one of true, false"),
    ],
)
def test_what_is_refused(given: dict[str, str], says: str) -> None:
    with pytest.raises(PluginError, match=says) as raised:
        registry_settings(URL | given)
    assert "secret" not in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1
