"""The subject of the checks over the network: a broker's address, and what has been learnt of it so far."""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from leafcuttr.cli.common.wire_client.channel import Channel, at
from leafcuttr.client.protocol import VersionRanges

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
    """`properties` are librdkafka's, as the other commands take them; `timeout` is in seconds, for each wait;
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

    @property
    def protocol(self) -> str:
        return self.properties.get("security.protocol", "plaintext").upper()

    @property
    def tls(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def sasl(self) -> bool:
        return self.protocol.startswith("SASL")

    def connect(self, host: str | None = None, port: int | None = None) -> Channel:
        """A connection that knows the broker's versions. Raises what Channel raises."""
        context = self._context() if self.tls else None
        address = host or self.host, self.port if port is None else port
        peer = Channel(address, self.timeout, tls=context, software=SOFTWARE)
        try:
            peer.greet()
        except BaseException:
            peer.close()
            raise
        return peer

    def client_settings(self) -> dict[str, Any]:
        """For librdkafka."""
        return {"bootstrap.servers": at(self.host, self.port), "log_level": 0, **self.properties}

    def _context(self) -> ssl.SSLContext:
        given = self.properties
        context = ssl.create_default_context(cafile=given.get("ssl.ca.location"))
        if given.get("enable.ssl.certificate.verification", "true").lower() == "false":
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if given.get("ssl.endpoint.identification.algorithm", "https") in ("none", ""):
            context.check_hostname = False
        if certificate := given.get("ssl.certificate.location"):
            context.load_cert_chain(certificate, given.get("ssl.key.location"), given.get("ssl.key.password"))
        return context


def words_of(error: OSError) -> str:
    """Why a connection failed, in a few words."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return error.strerror or str(error) or type(error).__name__
