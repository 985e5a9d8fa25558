"""What a plan says of a cluster, as properties of a client of Kafka."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leafcuttr_forward.relay.plan import ClusterPlan, RetryPlan


def client_properties(cluster: "ClusterPlan", backoff: "RetryPlan") -> dict[str, str]:
    """In librdkafka's spelling where Java has none that fits: certificate and key are two files there."""
    security = ("SASL_" if cluster.auth else "") + ("SSL" if cluster.tls else "PLAINTEXT")
    found = {
        "bootstrap.servers": ",".join(cluster.servers),
        "client.id": "leafcuttr-relay",
        "security.protocol": security,
        "request.timeout.ms": _ms(cluster.session_timeout_s),
        "socket.connection.setup.timeout.ms": _ms(cluster.session_timeout_s),
    }
    if backoff.enabled:
        found["reconnect.backoff.ms"] = _ms(backoff.min_s)
        found["reconnect.backoff.max.ms"] = _ms(backoff.max_s)
    if cluster.auth:
        found |= dict(zip(("sasl.mechanism", "sasl.username", "sasl.password"), cluster.auth, strict=True))
    if cluster.tls:
        paths = {
            "ssl.ca.location": cluster.ca_path,
            "ssl.certificate.location": cluster.certificate_path,
            "ssl.key.location": cluster.key_path,
        }
        found |= {name: path for name, path in paths.items() if path}
    return found


def _ms(seconds: float) -> str:
    return str(max(1, round(seconds * 1000)))
