"""What a client of a cluster is told: addresses, TLS, authentication, times. `properties` makes it from texts.

Frozen values without I/O: no file is read and no name resolved here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class HostPort(NamedTuple):
    """An address as clients write it; prints as `host:port`, `[::1]:port`."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Pem(NamedTuple):
    """Certificates or keys, and the setting that they come from; prints as the setting, without what may be a key. A
    file that `ssl.keystore.location` or `ssl.truststore.location` names may be JKS or PKCS#12 too."""

    setting: str
    text: str
    """PEM, or the path of a file of it."""
    is_file: bool

    def __str__(self) -> str:
        return f"{self.setting}={self.text}" if self.is_file else self.setting

    def __repr__(self) -> str:
        return f"Pem({self})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """None is not given."""

    trusted: Pem | None = None
    """Certificates of authorities. Without them those of the system hold."""
    revoked: Pem | None = None
    certificate: Pem | None = None
    """Our own certificate and the chain behind it."""
    key: Pem | None = None
    """None although there is a certificate: the key is in the same file or text."""
    key_password: str | None = field(default=None, repr=False)
    keystore_password: str | None = field(default=None, repr=False)
    truststore_password: str | None = field(default=None, repr=False)
    """Of stores that are no PEM."""
    ciphers: str | None = None
    """As OpenSSL has them."""
    versions: frozenset[str] = frozenset({"TLSv1.2", "TLSv1.3"})
    verifies: bool = True
    """False: any certificate is taken."""
    checks_host: bool = True
    """False: the certificate need not name the host."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSasl:
    """`mechanism` is PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512."""

    mechanism: str
    username: str
    password: str = field(repr=False)
    is_token: bool = False
    """The two are the id and the HMAC of a delegation token (KIP-48)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientSettings:
    """Times are in seconds, sizes in bytes. Defaults are those of Kafka's Java clients, if nothing else is said."""

    bootstrap: tuple[HostPort, ...]
    client_id: str = "leafcuttr"
    client_rack: str = ""
    tls: ClientTls | None = None
    sasl: ClientSasl | None = None
    request_timeout_s: float = 30.0
    connect_timeout_s: float = 10.0
    """For one attempt, with TLS and authentication."""
    reconnect_backoff_s: float = 0.05
    reconnect_backoff_max_s: float = 1.0
    retry_backoff_s: float = 0.1
    retry_backoff_max_s: float = 1.0
    metadata_max_age_s: float = 300.0
    delivery_timeout_s: float = 120.0
    fetch_min_bytes: int = 1
    fetch_max_wait_s: float = 0.5
    fetch_max_bytes: int = 50 << 20
    max_partition_fetch_bytes: int = 1 << 20
    max_request_size: int = 1 << 20
    max_response_bytes: int = 100 << 20
    """A larger response is refused. Kafka's brokers take requests of as much; Java clients have no limit."""
    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    """None leaves the size to the kernel."""
    other: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Known settings that mean nothing to a connection: of producers, consumers, serializers."""
    unknown: tuple[str, ...] = ()
    """Names that neither Kafka's clients nor librdkafka have."""

    @property
    def servers(self) -> str:
        """The bootstrap addresses in one word, for lines and labels."""
        return ",".join(map(str, self.bootstrap))
