"""The table of checks for a broker as clients on this machine see it: name, port, protocol, versions, log-in.

What a cluster says of itself is checked in `advertised` and `cluster`; this module has the whole table.
"""

import errno
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from typing import Final

from leafcuttr.cli.common.output import count
from leafcuttr.cli.doctor.findings import DoctorCheck, DoctorFinding, fine, problem, warning
from leafcuttr.cli.doctor.remote import advertised, certificate, cluster
from leafcuttr.cli.doctor.remote.identify import OtherServer, identify, usual
from leafcuttr.cli.doctor.remote.remote_broker import (
    ClusterMetadata,
    Node,
    RemoteBroker,
    refused_certificate,
    words_of,
)
from leafcuttr.client.errors import (
    ApiNotOffered,
    AuthenticationRefused,
    ClientError,
    ConnectionLost,
    NotKafka,
    TlsRefused,
)
from leafcuttr.client.settings import HostPort
from leafcuttr.wire.api import APIS, ApiKey
from leafcuttr.wire.messages.metadata import MetadataRequest

# What every client needs; the rest are for administrators, transactions and new kinds of groups.
_NEEDED: Final = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.SYNC_GROUP,
)
_VOTE: Final = 52  # only a KRaft controller answers it, and it answers no Metadata


def name_resolves(target: RemoteBroker) -> Iterator[DoctorFinding]:
    """The name of the broker can be resolved on this machine."""
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        words = getattr(error, "strerror", None) or str(error)
        yield problem(
            f"the name {target.host} cannot be resolved on this machine: {words}",
            "A client resolves the name first and never gets as far as the broker.",
            f"correct the name, or add it to DNS, or to /etc/hosts: 192.0.2.1 {target.host} (with its address)",
        )
        return
    target.addresses = list(dict.fromkeys(str(address[0]) for *_, address in found))
    yield fine(f"{target.host} is {', '.join(target.addresses)}")


def port_is_open(target: RemoteBroker) -> Iterator[DoctorFinding]:
    """Something listens, at every address of the name."""
    failed: dict[str, OSError] = {}
    for address in target.addresses:
        try:
            socket.create_connection((address, target.port), target.timeout).close()
        except OSError as error:
            failed[address] = error
    if not failed:
        yield fine(f"port {target.port} is open")
    elif len(failed) == len(target.addresses):
        yield _closed(target, next(iter(failed.values())))
    else:
        good = [address for address in target.addresses if address not in failed]
        yield warning(
            f"port {target.port} is open at {', '.join(good)} and not at {', '.join(failed)}, "
            f"the same name ({words_of(next(iter(failed.values())))})",
            "Clients try the addresses in turn, and some give up after the first.",
            f"give clients an address instead of the name: {HostPort(good[0], target.port)}",
            f"or let the broker listen at both: listeners=PLAINTEXT://{target.host}:{target.port}",
        )


def _closed(target: RemoteBroker, error: OSError) -> DoctorFinding:
    seen = f"no connection to {target.address}: {words_of(error)}"
    if error.errno == errno.ECONNREFUSED:
        return problem(
            seen,
            "The machine is there, but nothing listens at that address and port: the broker does not run, or it "
            "listens at another port, or only at another address, for example its own localhost.",
            "start the broker: leafcuttr serve",
            f"or let it listen here: listeners=PLAINTEXT://{_or_all(target)}:{target.port}",
            "see the listeners of the machine itself: ss -ltn",
        )
    return problem(
        seen,
        "Nothing answers at all: a firewall drops the packets, or the machine is off or behind another network.",
        f"on the broker's machine, let the port through, for example: ufw allow {target.port}/tcp",
        "in a container, publish the port: ports: "
        f'["{target.port}:{target.port}"] (compose), -p {target.port}:{target.port}',
    )


def _or_all(target: RemoteBroker) -> str:
    return target.host if _is_loopback(target.addresses) else "0.0.0.0"


def speaks_kafka(target: RemoteBroker) -> Iterator[DoctorFinding]:
    """What answers is a Kafka broker."""
    try:
        with target.connect(authenticated=False) as peer:
            target.versions = peer.versions
    except ClientError as error:
        yield _no_kafka(target, error)
    else:
        if ApiKey.METADATA not in target.versions:
            what = "the KRaft controller of a Kafka" if _VOTE in target.versions else "no broker"
            yield problem(
                f"{target.address} speaks Kafka's protocol, but is {what}: it does not serve Metadata",
                "Clients talk to brokers; the listener of a controller is for brokers only.",
                "give clients the port of a broker's listener (listeners=...), usually 9092",
            )
        else:
            yield fine(f"a Kafka broker answers, {len(target.versions)} APIs")


def _no_kafka(target: RemoteBroker, error: ClientError) -> DoctorFinding:
    if (why := refused_certificate(error)) is not None:
        return problem(
            f"the certificate of {target.address} is refused: {why}",
            "A client that checks certificates does not connect.",
            "name the authority that signed it: -X ssl.ca.location=/path/to/ca.pem",
            "or have a certificate made that names the host clients use",
        )
    if isinstance(cause := error.__cause__, ssl.SSLError):
        return problem(
            f"{target.address} speaks no TLS that suits: {cause.reason or cause}",
            f"The client is set to security.protocol={target.protocol}; the two cannot begin to talk.",
            "if the listener has no TLS: -X security.protocol=PLAINTEXT (for clients: security.protocol=PLAINTEXT)",
        )
    if isinstance(error, ApiNotOffered | TlsRefused):
        return problem(str(error), "A client of today needs the answer, and gets none.")
    said = error.said if isinstance(error, NotKafka) else b""
    server = identify(target.host, target.port, said, target.patience)
    if said or server.kind != "silent":
        return _not_kafka(target, server)
    if isinstance(error, ConnectionLost):
        return problem(
            f"{target.address} accepts the connection and closes it without an answer",
            "A Kafka older than 0.10 does so, a broker that has reached its limit of connections, a proxy without "
            "a broker behind it, and every server of another kind.",
            "see the broker's own log; see which process listens: ss -ltnp",
            "if it is the limit: max.connections, max.connections.per.ip",
        )
    return problem(
        f"{target.address} accepts the connection, but does not answer in {target.timeout:g} s",
        "A broker answers this request at once: this is another server, or a broker that hangs, or one that "
        "has reached max.connections.",
        "see which process listens there: ss -ltnp; see the broker's own log",
    )


def _not_kafka(target: RemoteBroker, server: OtherServer) -> DoctorFinding:
    where = target.address
    if server.kind == "tls-kafka":
        return problem(
            f"{where} is {server.words}, and the client connected without TLS",
            "Client and listener have to agree on security.protocol; a client without TLS only sees a connection "
            "that ends.",
            "-X security.protocol=SSL -X ssl.ca.location=/path/to/ca.pem (SASL_SSL if it requires authentication too)",
            "for Java clients: security.protocol=SSL, ssl.truststore.location=...",
        )
    return problem(
        f"what answers at {where} is not Kafka but {server.words}{usual(target.port)}",
        "A Kafka client takes the first bytes for the length of an answer and fails, often with words about a size.",
        "give clients the port of the Kafka listener, usually 9092 (the broker's listeners=...)",
        f"see which process listens there: ss -ltnp 'sport = :{target.port}'",
    )


def versions_fit(target: RemoteBroker) -> Iterator[DoctorFinding]:
    """Clients of today and the broker have versions in common."""
    too_old, too_new = [], []
    for key in _NEEDED:
        api = APIS[key]
        lowest, highest = target.versions.get(key, (0, -1))
        if highest < api.min_version:
            too_old.append(
                f"{api.name} {lowest}-{highest}, needed {api.min_version}"
                if highest >= 0
                else f"no {api.name}"
            )
        elif lowest > api.max_version:
            too_new.append(f"{api.name} {lowest}-{highest}, known up to {api.max_version}")
    if too_old:
        yield problem(
            f"the broker speaks versions that clients have given up: {'; '.join(too_old)}",
            "Clients of Kafka 4 and this command begin at the versions of Kafka 2.1 (KIP-896).",
            "upgrade the broker to Kafka 2.1 or later, or use clients of Kafka 3.9 or librdkafka with it",
        )
    if too_new:
        yield problem(
            f"the broker speaks only versions newer than this client knows: {'; '.join(too_new)}",
            "They have no version in common.",
            "upgrade the clients, and this command: pip install -U leafcuttr",
        )
    if not too_old and not too_new:
        produce, fetch = target.versions[ApiKey.PRODUCE], target.versions[ApiKey.FETCH]
        old = (
            "of Kafka 2.1 or later" if fetch[0] >= APIS[ApiKey.FETCH].min_version else "later than Kafka 0.9"
        )
        yield fine(
            f"clients {old} and librdkafka fit: Produce {produce[0]}-{produce[1]}, Fetch {fetch[0]}-{fetch[1]}"
        )


def lets_in(target: RemoteBroker) -> Iterator[DoctorFinding]:
    """The broker describes the cluster to this client, with the credentials that were given."""
    try:
        with target.connect() as peer:
            found = peer.request(MetadataRequest(topics=None, allow_auto_topic_creation=False))
    except AuthenticationRefused as error:
        yield problem(
            f"authentication fails: {error}",
            "Without it the broker answers nothing.",
            "check sasl.mechanism, sasl.username and sasl.password of the client against the broker's users",
            "on the broker: sasl.enabled.mechanisms has to name the mechanism",
        )
    except ConnectionLost:
        yield problem(
            "the broker closes the connection at the first request that needs authentication",
            "Its listener requires SASL: a client that has not authenticated gets no response.",
            "-X security.protocol=SASL_PLAINTEXT (or SASL_SSL) -X sasl.mechanism=PLAIN -X sasl.username=NAME "
            "-X sasl.password=PASSWORD",
        )
    except ClientError as error:
        yield problem(
            str(error),
            "A client cannot find the leaders of partitions without it.",
            "upgrade the broker to Kafka 2.1 or later; see its own log",
        )
    else:
        target.cluster = ClusterMetadata(
            found.cluster_id,
            [Node(one.node_id, one.host, one.port) for one in found.brokers],
            len(found.topics),
            sum(len(topic.partitions) for topic in found.topics),
            [
                f"{topic.name}-{part.partition_index}"
                for topic in found.topics
                for part in topic.partitions
                if part.leader_id < 0
            ],
        )
        yield _welcome(target.cluster)


def _welcome(metadata: ClusterMetadata) -> DoctorFinding:
    counts = (len(metadata.nodes), "broker"), (metadata.topics, "topic"), (metadata.partitions, "partition")
    return fine(f"cluster {metadata.id}: {', '.join(count(number, what) for number, what in counts)}")


def requires_authentication(target: RemoteBroker) -> Iterator[DoctorFinding]:
    """Clients have to authenticate, unless only this machine can reach the broker."""
    if target.sasl or (target.settings.tls is not None and target.settings.tls.certificate is not None):
        yield fine("the listener requires authentication")
    elif _is_loopback(target.addresses):
        yield fine("no authentication, and the address used is of this machine only")
    else:
        yield warning(
            f"{target.address} accepts every client that reaches it, without authentication",
            "Every client in that network may read, write and delete every topic.",
            "listen at an inner address only: listeners=PLAINTEXT://127.0.0.1:9092 (or one of a private network)",
            f"or let only your clients through the firewall: ufw allow from 192.0.2.0/24 to any port {target.port}",
        )


def _is_loopback(addresses: list[str]) -> bool:
    return all(ipaddress.ip_address(one.partition("%")[0]).is_loopback for one in addresses)


def a_client_works(target: RemoteBroker) -> Iterator[DoctorFinding]:
    """librdkafka, on which most clients are built, can list the topics."""
    from confluent_kafka import KafkaException, libversion
    from confluent_kafka.admin import AdminClient

    name = f"librdkafka {libversion()[0]}"
    try:
        client = AdminClient(target.client_settings())
        client.list_topics(timeout=target.timeout * 2)
    except KafkaException as error:
        yield problem(
            f"{name} does not get along with this broker: {error.args[0].str()}",
            "Most clients outside of Java are made of it.",
            "see what it says itself: leafcuttr topics list -X debug=broker,protocol -X log_level=7 -b "
            + str(target.address),
        )
    else:
        yield fine(f"{name} connects and lists the topics")


CHECKS: Final[tuple[DoctorCheck[RemoteBroker], ...]] = (
    DoctorCheck("name", name_resolves),
    DoctorCheck("port", port_is_open, needs=("name",)),
    DoctorCheck("protocol", speaks_kafka, needs=("port",)),
    DoctorCheck("certificate", certificate.is_good, needs=("protocol",)),
    DoctorCheck("versions", versions_fit, needs=("protocol",)),
    DoctorCheck("log-in", lets_in, needs=("protocol",)),
    DoctorCheck("client", a_client_works, needs=("log-in",)),
    DoctorCheck("advertised", advertised.can_be_reached, needs=("log-in",)),
    DoctorCheck("leaders", cluster.has_leaders, needs=("log-in",)),
    DoctorCheck("disk", cluster.disks_have_space, needs=("log-in",)),
    DoctorCheck("clock", cluster.clocks_agree, needs=("log-in",)),
    DoctorCheck("access", requires_authentication, needs=("log-in",)),
    DoctorCheck("round-trip", cluster.takes_a_record, needs=("log-in", "advertised")),
)
"""For a broker at HOST:PORT, in this order."""
