"""Our own small client against peers that do not answer as they should: always one line, never a traceback."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from leafcuttr.cli.common.failures import Failure
from leafcuttr.cli.common.target import Target
from leafcuttr.cli.common.wire_client.cluster import ClusterClient
from leafcuttr.cli.common.wire_client.connection import BrokerConnection, NotOffered
from leafcuttr.cli.transactions.queries import producers
from leafcuttr.client.protocol import MAX_FRAME
from leafcuttr.wire.codec import encode
from leafcuttr.wire.messages.api_versions import ApiVersion, ApiVersionsResponse
from leafcuttr.wire.messages.describe_cluster import DescribeClusterRequest
from leafcuttr.wire.messages.describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    TopicResponse,
)
from leafcuttr.wire.messages.list_transactions import ListTransactionsRequest
from leafcuttr.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from leafcuttr_sdk.types import TopicPartition
from support.waiting import free_port

Serve = Callable[[socket.socket], None]


@contextmanager
def peer(serve: Serve) -> Iterator[int]:
    """A listener that gives every connection to `serve`, in a thread of its own; yields its port."""

    def served(connection: socket.socket) -> None:
        with connection, suppress(OSError, EOFError):
            serve(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=served, args=listener.accept()[:1], daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield int(listener.getsockname()[1])
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(60)


def request(connection: socket.socket) -> tuple[int, int, int]:
    """(API key, version, correlation id) of the next request. Raises EOFError."""
    head = connection.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        raise EOFError
    frame = connection.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
    key, version, correlation = struct.unpack_from(">hhi", frame)
    return key, version, correlation


def reply(connection: socket.socket, correlation: int, body: bytes) -> None:
    connection.sendall(struct.pack(">ii", len(body) + 4, correlation) + body)


def greet(connection: socket.socket, *keys: tuple[int, int, int]) -> None:
    """Answer ApiVersions as a broker of today that offers (key, lowest, highest)."""
    _, version, correlation = request(connection)
    offered = [
        ApiVersion(api_key=key, min_version=first, max_version=last)
        for key, first, last in ((18, 0, 4), *keys)
    ]
    reply(connection, correlation, encode(ApiVersionsResponse(api_keys=offered), version))


def then(*keys: tuple[int, int, int], answer: Callable[[socket.socket], None]) -> Serve:
    def serve(connection: socket.socket) -> None:
        greet(connection, *keys)
        answer(connection)

    return serve


def failure(serve: Serve, *, greeting: float = 60, timeout: float = 60, ask: object = None) -> str:
    """What the person reads when the request (Metadata, if none is given) goes to such a peer.

    `greeting` is the time that the versions may take, `timeout` that of the request: short only where it shall pass.
    """
    with (
        peer(serve) as port,
        pytest.raises(Failure) as caught,
        BrokerConnection("127.0.0.1", port, greeting) as connection,
    ):
        connection.channel.timeout_s = timeout
        connection.send(ask or MetadataRequest(topics=[]))
    return caught.value.message.replace(f"127.0.0.1:{port}", "PEER")


METADATA = (3, 0, 13)


def test_nobody_listens() -> None:
    port = free_port()
    with pytest.raises(Failure, match=f"no broker answers at 127.0.0.1:{port}"):
        BrokerConnection("127.0.0.1", port, 60)
    with pytest.raises(Failure, match=r"no broker answers at no-such-host\.invalid:9092"):
        BrokerConnection("no-such-host.invalid", 9092, 60)


def test_a_peer_that_says_nothing() -> None:
    def silent(connection: socket.socket) -> None:
        while connection.recv(1000):
            pass

    assert failure(silent, greeting=0.2) == "PEER does not answer ApiVersions within 0.2 seconds"
    assert (
        failure(then(METADATA, answer=silent), timeout=0.2)
        == "PEER does not answer Metadata within 0.2 seconds"
    )


def test_a_peer_that_sends_a_byte_now_and_then() -> None:
    stop = threading.Event()

    def drip(connection: socket.socket) -> None:
        _, _, correlation = request(connection)
        connection.sendall(struct.pack(">ii", 1000, correlation))
        while not stop.wait(0.05):
            connection.sendall(b"\0")

    try:
        assert (
            failure(then(METADATA, answer=drip), timeout=0.5)
            == "PEER does not answer Metadata within 0.5 seconds"
        )
    finally:
        stop.set()


def test_a_peer_that_hangs_up() -> None:
    at_once = failure(lambda _: None)
    assert at_once == (
        "PEER closed the connection at once: it wants TLS (security.protocol=SSL or SASL_SSL) or is no Kafka"
    )
    # What a listener with SASL does after ApiVersions.
    hung_up = failure(then(METADATA, answer=lambda _: None))
    assert hung_up == (
        "PEER closed the connection; its listener may want authentication (security.protocol=SASL_PLAINTEXT)"
    )


def test_a_listener_with_tls() -> None:
    def alert(connection: socket.socket) -> None:
        request(connection)
        connection.sendall(bytes.fromhex("15 03 03 00 02 02 0a"))  # fatal, unexpected message

    assert failure(alert) == "PEER speaks TLS (security.protocol=SSL or SASL_SSL)"


def test_something_else_than_kafka() -> None:
    assert failure(lambda each: each.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")) == (
        "PEER does not speak Kafka's protocol"
    )


def test_a_frame_that_is_too_large() -> None:
    def large(connection: socket.socket) -> None:
        request(connection)
        connection.sendall(struct.pack(">i", MAX_FRAME + 1))
        connection.recv(1)

    message = f"PEER announces an answer of {MAX_FRAME + 1} bytes; at most {MAX_FRAME} are read"
    assert failure(then(METADATA, answer=large)) == message


@pytest.mark.parametrize("body", [b"", b"\0", b"\xff" * 40, b"\0" * 3 + b"\x7f\xff\xff\xff" * 3])
def test_an_answer_that_cannot_be_read(body: bytes) -> None:
    def garbage(connection: socket.socket) -> None:
        _, _, correlation = request(connection)
        reply(connection, correlation, body)

    assert failure(then(METADATA, answer=garbage)).startswith("PEER: its answer to Metadata cannot be read: ")


def test_an_answer_to_another_request() -> None:
    def other(connection: socket.socket) -> None:
        _, _, correlation = request(connection)
        reply(connection, correlation + 1, b"\0" * 40)

    assert "an answer to another request" in failure(then(METADATA, answer=other))


def test_versions_that_do_not_meet() -> None:
    def nothing(_: socket.socket) -> None:
        return

    missing = failure(then(METADATA, answer=nothing), ask=DescribeClusterRequest())
    assert missing == "the broker at PEER does not offer DescribeCluster"
    newer = failure(then((60, 7, 9), answer=nothing), ask=DescribeClusterRequest())
    assert newer == "the broker at PEER speaks versions 7 to 9 of DescribeCluster; this needs 0 to 2"
    with (
        peer(then((66, 0, 1), answer=nothing)) as port,
        BrokerConnection("127.0.0.1", port, 60) as connection,
    ):
        assert connection.versions[66] == (0, 1)
        with pytest.raises(NotOffered, match="versions 0 to 1 of ListTransactions; this needs 2 to 2"):
            connection.send(ListTransactionsRequest(), at_least=2)


@pytest.mark.parametrize("offered", [[ApiVersion(api_key=18, min_version=0, max_version=2)], []])
def test_a_broker_that_does_not_know_our_version_of_apiversions(offered: list[ApiVersion]) -> None:
    """KIP-511: it answers in version 0, since Kafka 2.4 with what it speaks, before with nothing."""
    seen: list[int] = []

    def old(connection: socket.socket) -> None:
        while True:
            _, version, correlation = request(connection)
            seen.append(version)
            if version > 2:
                reply(
                    connection, correlation, encode(ApiVersionsResponse(error_code=35, api_keys=offered), 0)
                )
            else:
                keys = [ApiVersion(api_key=3, min_version=0, max_version=5)]
                reply(connection, correlation, encode(ApiVersionsResponse(api_keys=keys), version))

    with peer(old) as port, BrokerConnection("127.0.0.1", port, 60) as connection:
        assert connection.versions == {3: (0, 5)}
    assert seen == [4, 2 if offered else 0]


def test_a_request_is_sent_again_when_its_partition_moves() -> None:
    asked: list[int] = []

    def moving(connection: socket.socket) -> None:
        greet(connection, METADATA, (61, 0, 0))
        port = connection.getsockname()[1]
        while True:
            key, version, correlation = request(connection)
            if key == 3:
                part = MetadataResponsePartition(partition_index=0, leader_id=1)
                answer: object = MetadataResponse(
                    brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=port)],
                    topics=[MetadataResponseTopic(name="t", partitions=[part])],
                )
            else:
                code = [6, 5, 0][len(asked)]
                asked.append(code)
                there = PartitionResponse(partition_index=0, error_code=code)
                answer = DescribeProducersResponse(topics=[TopicResponse(name="t", partitions=[there])])
            reply(connection, correlation, b"\0" + encode(answer, version))

    with peer(moving) as port, ClusterClient(Target(f"127.0.0.1:{port}", timeout=60)) as cluster:
        assert producers(cluster, [TopicPartition("t", 0)]) == {TopicPartition("t", 0): []}
    assert asked == [6, 5, 0]
