"""A cluster of a plan as properties of a client."""

from dataclasses import replace

from leafcuttr_forward.relay.plan import ClusterPlan, RetryPlan
from leafcuttr_forward.relay.properties import client_properties

PLAIN = ClusterPlan("hub", ("a:1", "b:2"), 6.0, None, False, "", "", "")
NO_BACKOFF = RetryPlan(-1, False, 1.0, 10.0)
BASE = {
    "bootstrap.servers": "a:1,b:2",
    "client.id": "leafcuttr-relay",
    "request.timeout.ms": "6000",
    "socket.connection.setup.timeout.ms": "6000",
}


def test_without_security() -> None:
    assert client_properties(PLAIN, NO_BACKOFF) == {**BASE, "security.protocol": "PLAINTEXT"}


def test_pauses() -> None:
    found = client_properties(PLAIN, RetryPlan(-1, True, 2.0, 10.0))
    assert (found["reconnect.backoff.ms"], found["reconnect.backoff.max.ms"]) == ("2000", "10000")


def test_sasl() -> None:
    found = client_properties(replace(PLAIN, auth=("SCRAM-SHA-512", "u", "p")), NO_BACKOFF)
    assert found == {
        **BASE,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.password": "p",
    }


def test_tls_with_the_authorities_of_the_system() -> None:
    assert client_properties(replace(PLAIN, tls=True), NO_BACKOFF) == {**BASE, "security.protocol": "SSL"}


def test_tls_with_files_and_sasl() -> None:
    cluster = replace(
        PLAIN, tls=True, ca_path="ca", certificate_path="cert", key_path="key", auth=("PLAIN", "u", "p")
    )
    found = client_properties(cluster, NO_BACKOFF)
    assert found["security.protocol"] == "SASL_SSL"
    assert (found["ssl.ca.location"], found["ssl.certificate.location"], found["ssl.key.location"]) == (
        "ca",
        "cert",
        "key",
    )
