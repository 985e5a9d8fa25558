"""What to say where a peer closes the connection, or says something else than Kafka: usually a setting is missing."""

from typing import Final

from leafcuttr.client.errors import ConnectionLost, NotKafka
from leafcuttr.client.settings import ClientSettings

_TLS_RECORDS: Final = (
    b"\x15\x03",
    b"\x16\x03",
)  # an alert, which Java's TLS answers to plaintext (RFC 8446, 5.1)
_LARGEST_ABOUT: Final = 64 << 10


def closed(
    peer: str, settings: ClientSettings, *, ready: bool, answered: bool, said: bytes = b""
) -> NotKafka | ConnectionLost:
    """The connection has ended. `ready`: the peer has answered ApiVersions; `answered`: another request too; `said`:
    what it sent before, which is no whole response."""
    if said and not ready:
        if _may_be_a_response(said):
            return ConnectionLost(f"{peer} closed the connection in the middle of a response")
        return not_kafka(peer, settings, said)
    if not ready:
        if settings.tls is None:
            return ConnectionLost(
                f"{peer} closed the connection at once: it wants TLS (security.protocol=SSL or SASL_SSL) or is no Kafka"
            )
        return ConnectionLost(
            f"{peer} closed the connection at once: it is no Kafka, or it wants our certificate"
        )
    if settings.sasl is None and not answered:
        protocol = "SASL_PLAINTEXT" if settings.tls is None else "SASL_SSL"
        return ConnectionLost(
            f"{peer} closed the connection; its listener may want authentication (security.protocol={protocol})"
        )
    return ConnectionLost(f"{peer} closed the connection")


def _may_be_a_response(said: bytes) -> bool:
    """Whether this may be what a connection that was cut has left of the answer to ApiVersions, some 600 bytes. Text,
    and records of TLS, would announce far more."""
    return int.from_bytes(said[:4].ljust(4, b"\0"), "big") <= _LARGEST_ABOUT


def not_kafka(peer: str, settings: ClientSettings, said: bytes) -> NotKafka:
    """The peer's first bytes are no response."""
    if settings.tls is None and said.startswith(_TLS_RECORDS):
        return NotKafka(f"{peer} speaks TLS (security.protocol=SSL or SASL_SSL)", said)
    return NotKafka(f"{peer} does not speak Kafka's protocol", said)
