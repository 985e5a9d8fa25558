"""The subject of the checks over the network: a broker's address, and what has been learnt of it so far."""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

from leafcuttr.cli.common.client_properties import checked_settings
from leafcuttr.cli.common.librdkafka.properties import for_librdkafka
from leafcuttr.client.errors import ClientError, TimedOut
from leafcuttr.client.protocol import VersionRanges
from leafcuttr.client.settings import ClientSettings, HostPort
from leafcuttr.client.synchronous import BlockingConnection

SOFTWARE: Final = "leafcuttr-doctor"
"""What the doctor calls itself to a broker."""


class Node(NamedTuple):
    """A broker as the cluster advertises it."""

    id: int
    host: str
    port: int

    def __str__(self) -> str:
        return f"broker {self.id}"


@dataclass
class ClusterMetadata:
    """The cluster as clients see it. `leaderless` are partitions without a leader, as `topic-3`."""

    id: str | None
    nodes: Sequence[Node]
    topics: int
    partitions: int
    leaderless: Sequence[str]


@dataclass
class RemoteBroker:
    """`properties` are those of a client, as the other commands take them; `timeout` is in seconds, for each wait;
    `patience` for each protocol that is tried on an unknown server."""

    host: str
    port: int
    timeout: float = 5.0
    patience: float = 1.5
    properties: Mapping[str, str] = field(default_factory=dict)
    writes: bool = False
    addresses: list[str] = field(default_factory=list)
    versions: VersionRanges = field(default_factory=dict)
    cluster: ClusterMetadata | None = None
    reachable: list[Node] = field(default_factory=list)

    @cached_property
    def settings(self) -> ClientSettings:
        """The properties, for our own client. Raises click.UsageError."""
        return checked_settings({"bootstrap.servers": str(self.address), **self.properties})

    @property
    def address(self) -> HostPort:
        return HostPort(self.host, self.port)

    @property
    def protocol(self) -> str:
        return self.properties.get("security.protocol", "plaintext").upper()

    @property
    def tls(self) -> bool:
        return self.settings.tls is not None

    @property
    def sasl(self) -> bool:
        return self.settings.sasl is not None

    def connect(self, address: HostPort | None = None, *, authenticated: bool = True) -> BlockingConnection:
        """A connection that knows the broker's versions, and is authenticated if the properties say so. Raises
        ClientError."""
        settings = self.settings if authenticated else replace(self.settings, sasl=None)
        return BlockingConnection(
            address or self.address, settings, timeout_s=self.timeout, software=SOFTWARE
        )

    def client_settings(self) -> dict[str, Any]:
        """For librdkafka."""
        return {"bootstrap.servers": str(self.address), "log_level": 0, **for_librdkafka(self.properties)}


def words_of(error: OSError | ClientError) -> str:
    """Why a connection failed, in a few words."""
    if isinstance(error, TimeoutError | TimedOut):
        return "no answer in time"
    cause = error.__cause__ if isinstance(error, ClientError) else error
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    if isinstance(cause, OSError):
        return cause.strerror or str(cause) or type(cause).__name__
    return str(error)


def refused_certificate(error: ClientError) -> str | None:
    """Why the broker's certificate is refused, if that is what went wrong."""
    cause = error.__cause__
    return cause.verify_message if isinstance(cause, ssl.SSLCertVerificationError) else None
