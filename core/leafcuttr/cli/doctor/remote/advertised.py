"""Whether clients on this machine can connect to the advertised addresses, which fails with containers and NAT.

A client uses the address that it was given only to find the brokers; then it connects to what they advertise.
"""

import ipaddress
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from leafcuttr.cli.doctor.findings import DoctorFinding, fine, problem
from leafcuttr.cli.doctor.remote.remote_broker import Node, RemoteBroker, refused_certificate, words_of
from leafcuttr.client.errors import ApiNotOffered, ClientError, NotKafka
from leafcuttr.client.settings import HostPort
from leafcuttr.wire.messages.metadata import MetadataRequest

_WHY: Final = (
    "A client uses the address it was given only to find the brokers; then it connects to what they advertise, "
    "and there it fails."
)
_AT_ONCE: Final = 16


def can_be_reached(target: RemoteBroker) -> Iterator[DoctorFinding]:
    """Every broker answers at the address that it advertises, and is one of this cluster."""
    assert target.cluster is not None
    nodes = target.cluster.nodes
    if not nodes:
        yield problem(
            "the cluster names no broker at all",
            "A client has no broker to connect to.",
            "wait until the brokers have registered with the controller; see their logs",
        )
        return
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        found = list(threads.map(lambda node: _reach(target, node), nodes))
    for node, finding in zip(nodes, found, strict=True):
        if finding is None:
            target.reachable.append(node)
        else:
            yield finding
    if target.reachable:
        yield fine(
            "reached as advertised: "
            + ", ".join(f"{node} at {HostPort(node.host, node.port)}" for node in target.reachable)
        )


def _reach(target: RemoteBroker, node: Node) -> DoctorFinding | None:
    where = HostPort(node.host, node.port)
    try:
        addresses = [a[0] for *_, a in socket.getaddrinfo(node.host, node.port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        return problem(
            f"{node} advertises {where}, a name that this machine cannot resolve", _WHY, *_lines(target, node)
        )
    local = all(_loopback(str(one)) for one in addresses)
    if local and not all(_loopback(one) for one in target.addresses):
        return problem(
            f"{node} advertises {where}, which is each client's own machine, and was reached as "
            f"{target.address}",
            _WHY,
            *_lines(target, node),
        )
    try:
        with target.connect(where) as peer:
            answer = peer.request(MetadataRequest(topics=()))
    except (NotKafka, ApiNotOffered):
        return problem(
            f"{node} advertises {where}, where another server than Kafka answers", _WHY, *_lines(target, node)
        )
    except ClientError as error:
        if (why := refused_certificate(error)) is not None:
            return problem(
                f"{node} advertises {where}, and the certificate there is refused: {why}",
                _WHY,
                "have a certificate made that names the advertised host",
                *_lines(target, node),
            )
        return problem(
            f"{node} advertises {where}, which cannot be reached from this machine: {words_of(error)}",
            _WHY,
            *_lines(target, node),
        )
    if target.cluster and answer.cluster_id != target.cluster.id:
        return problem(
            f"{node} advertises {where}, where another cluster answers ({answer.cluster_id})",
            "Clients would write to and read from the wrong broker without noticing.",
            *_lines(target, node),
        )
    return None


def _lines(target: RemoteBroker, node: Node) -> tuple[str, ...]:
    """The lines to change: in a cluster of one the address that was used is known to work."""
    assert target.cluster is not None
    alone = len(target.cluster.nodes) == 1
    good = str(target.address) if alone else f"ADDRESS-THAT-CLIENTS-REACH:{node.port}"
    name = "SSL" if target.tls else "PLAINTEXT"
    return (
        f"advertised.listeners={name}://{good}  (server.properties; the name as in listeners)",
        f"KAFKA_ADVERTISED_LISTENERS={name}://{good}  (a container)",
        "for clients inside and outside of a network, two listeners: "
        f"listeners=INNER://0.0.0.0:9093,OUTER://0.0.0.0:9092 with "
        f"advertised.listeners=INNER://{node.host}:9093,OUTER://{good}",
    )


def _loopback(address: str) -> bool:
    return ipaddress.ip_address(address.partition("%")[0]).is_loopback
