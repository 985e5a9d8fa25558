"""One connection on trio: several requests under way, their times, cancellation, TLS, authentication and its end."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
import trustme

from leafcuttr.client.connection import ClientConnection
from leafcuttr.client.errors import (
    ApiNotOffered,
    AuthenticationRefused,
    ClientError,
    ConnectionLost,
    NotKafka,
    TimedOut,
    TlsRefused,
    Unreachable,
    UnreadableResponse,
)
from leafcuttr.client.settings import ClientSasl, ClientSettings, ClientTls, HostPort, Pem
from leafcuttr.client.tls import TlsContexts
from leafcuttr.wire.api import ApiKey
from leafcuttr.wire.errors import EncodeError
from leafcuttr.wire.messages.describe_cluster import DescribeClusterRequest
from leafcuttr.wire.messages.metadata import MetadataRequest
from leafcuttr.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.sasl_server import SaslServer
from support.scripted_broker import HANG_UP, Call, ScriptedBroker, metadata, reply
from support.waiting import free_port

ASK = MetadataRequest(topics=[])
Answers = dict[int, Callable[[Call], Any]]
FINE: Answers = {ApiKey.METADATA: lambda call: metadata(call.broker)}


def settings(broker: ScriptedBroker, **more: Any) -> ClientSettings:
    return ClientSettings(bootstrap=(HostPort("127.0.0.1", broker.port),), **more)


async def connect(
    nursery: trio.Nursery, broker: ScriptedBroker, contexts: TlsContexts | None = None, **more: Any
) -> ClientConnection:
    chosen = settings(broker, **more)
    connection: ClientConnection = await nursery.start(
        ClientConnection(
            HostPort("localhost" if contexts else "127.0.0.1", broker.port), chosen, contexts
        ).run
    )
    return connection


async def started(nursery: trio.Nursery, answers: Answers, **more: Any) -> ScriptedBroker:
    broker = ScriptedBroker(answers, **more)
    await broker.start(nursery)
    return broker


async def test_versions_then_requests(nursery: trio.Nursery) -> None:
    broker = await started(nursery, FINE)
    connection = await connect(nursery, broker, client_id="probe")
    assert connection.versions[ApiKey.METADATA] == (0, 13)
    assert (await connection.request(ASK, timeout_s=60)).cluster_id == "scripted"
    assert broker.seen == [("ApiVersionsRequest", 4), ("MetadataRequest", 13)]
    assert broker.clients == ["probe"]
    await connection.request(ASK, at_most=9, timeout_s=60)
    assert broker.seen[-1] == ("MetadataRequest", 9)
    with pytest.raises(ApiNotOffered):
        await connection.request(DescribeClusterRequest(), timeout_s=60)
    assert connection.is_open


async def test_requests_go_out_without_waiting_for_answers(nursery: trio.Nursery) -> None:
    """The server answers only once it has all of them."""
    wanted = 50
    all_there = trio.Event()
    calls = list[Call]()

    def keep(call: Call) -> None:
        calls.append(call)
        if len(calls) == wanted:
            all_there.set()

    broker = await started(nursery, {ApiKey.METADATA: keep}, versions={3: (0, 4)})
    connection = await connect(nursery, broker)
    found = list[int]()

    async def ask(number: int) -> None:
        await connection.request(ASK, timeout_s=60)
        found.append(number)

    async with trio.open_nursery() as asking:
        for number in range(wanted):
            asking.start_soon(ask, number)
        await all_there.wait()
        assert found == []
        body = bytes(4) + bytes(4) + b"\xff\xff" + bytes(4) + bytes(4)  # MetadataResponse 4: nothing in it
        for call in calls:
            await reply(call.stream, call.correlation_id, body)
    assert sorted(found) == list(range(wanted))


async def test_an_answer_in_pieces_and_several_in_one(nursery: trio.Nursery) -> None:
    async def drip(call: Call) -> None:
        body = bytes(4) + bytes(4) + b"\xff\xff" + bytes(4) + bytes(4)
        frame = (len(body) + 4).to_bytes(4, "big") + call.correlation_id.to_bytes(4, "big") + body
        for at in range(len(frame)):
            await call.stream.send_all(frame[at : at + 1])

    broker = await started(nursery, {ApiKey.METADATA: drip}, versions={3: (0, 4)})
    connection = await connect(nursery, broker)
    for _ in range(3):
        assert (await connection.request(ASK, timeout_s=60)).brokers == ()


async def test_nobody_listens(nursery: trio.Nursery) -> None:
    port = free_port()
    chosen = ClientSettings(bootstrap=(HostPort("127.0.0.1", port),))
    for address, line in (
        (HostPort("127.0.0.1", port), f"no broker answers at 127.0.0.1:{port}"),
        (
            HostPort("no-such-host.invalid", 9092),
            "no broker answers at no-such-host.invalid:9092: the name is unknown",
        ),
    ):
        connection = ClientConnection(address, chosen)
        with pytest.raises(Unreachable) as caught:
            await nursery.start(connection.run)
        assert str(caught.value) == line
        assert not connection.is_open


async def test_a_request_that_is_not_answered_in_time(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """The connection is closed: what is behind it would wait as long."""
    broker = await started(nursery, {ApiKey.METADATA: lambda call: None})
    connection = await connect(nursery, broker)
    failed = list[ClientError]()

    async def ask(timeout_s: float) -> None:
        with pytest.raises(ClientError) as caught:
            await connection.request(ASK, timeout_s=timeout_s)
        failed.append(caught.value)

    async with trio.open_nursery() as asking:
        asking.start_soon(ask, 7)
        asking.start_soon(ask, 100)
    assert trio.current_time() < 8
    late, other = sorted(failed, key=lambda error: type(error).__name__, reverse=True)
    where = broker.address
    assert (type(late), str(late)) == (TimedOut, f"{where} does not answer Metadata within 7 seconds")
    assert type(other) is ConnectionLost
    assert (
        str(other) == f"the connection was closed, because {where} does not answer Metadata within 7 seconds"
    )
    assert not connection.is_open
    with pytest.raises(ConnectionLost):
        await connection.request(ASK, timeout_s=1)


async def test_a_request_that_is_cancelled_leaves_the_connection_as_it_is(nursery: trio.Nursery) -> None:
    go_on = trio.Event()

    async def wait(call: Call) -> Any:
        await go_on.wait()
        return metadata(call.broker)

    broker = await started(nursery, {ApiKey.METADATA: wait})
    connection = await connect(nursery, broker)
    async with trio.open_nursery() as asking:
        for _ in range(3):
            asking.start_soon(partial(connection.request, ASK, timeout_s=60))
        await trio.testing.wait_all_tasks_blocked()
        asking.cancel_scope.cancel()
    go_on.set()
    assert (await connection.request(ASK, timeout_s=60)).cluster_id == "scripted"
    assert broker.asked("MetadataRequest") == 4


async def test_a_request_without_an_answer(nursery: trio.Nursery) -> None:
    broker = await started(nursery, {ApiKey.PRODUCE: lambda call: None, **FINE})
    connection = await connect(nursery, broker)
    data = PartitionProduceData(index=0, records=memoryview(b"x" * 100_000))
    produce = ProduceRequest(acks=0, topic_data=[TopicProduceData(name="t", partition_data=[data])])
    assert await connection.request(produce, timeout_s=60) is None
    await connection.request(ASK, timeout_s=60)
    assert broker.asked("ProduceRequest") == 1


async def test_a_request_that_cannot_be_written(nursery: trio.Nursery) -> None:
    broker = await started(nursery, {ApiKey.PRODUCE: lambda call: None, **FINE})
    connection = await connect(nursery, broker)
    with pytest.raises(EncodeError):
        await connection.request(ProduceRequest(acks=1 << 40), timeout_s=60)
    await connection.request(ASK, timeout_s=60)


async def test_a_broker_that_hangs_up(nursery: trio.Nursery) -> None:
    where = "its listener may want authentication"
    broker = await started(
        nursery,
        {ApiKey.METADATA: lambda call: HANG_UP if call.broker.connections > 1 else metadata(call.broker)},
    )
    first = await connect(nursery, broker)
    await first.request(ASK, timeout_s=60)
    second = await connect(nursery, broker)
    with pytest.raises(ConnectionLost) as caught:
        await second.request(ASK, timeout_s=60)
    assert str(caught.value) == (
        f"{broker.address} closed the connection; {where} (security.protocol=SASL_PLAINTEXT)"
    )
    # One that had answered before: it is no matter of authentication.
    with pytest.raises(ConnectionLost) as caught:
        await first.request(ASK, timeout_s=60)
    assert str(caught.value) == f"{broker.address} closed the connection"


async def test_a_server_that_hangs_up_at_once(nursery: trio.Nursery) -> None:
    broker = await started(nursery, {ApiKey.API_VERSIONS: lambda call: HANG_UP})
    with pytest.raises(ConnectionLost) as caught:
        await connect(nursery, broker)
    assert str(caught.value) == (
        f"{broker.address} closed the connection at once: it wants TLS (security.protocol=SSL or SASL_SSL) or is no "
        "Kafka"
    )


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak Kafka's protocol"),
        (b"SSH", "does not speak Kafka's protocol"),
        (bytes.fromhex("15 03 03 00 02 02 0a"), "speaks TLS (security.protocol=SSL or SASL_SSL)"),
        (bytes.fromhex("15 03 03"), "speaks TLS (security.protocol=SSL or SASL_SSL)"),
    ],
)
async def test_something_else_than_kafka(nursery: trio.Nursery, said: bytes, line: str) -> None:
    async def say(call: Call) -> Any:
        await call.stream.send_all(said)
        return HANG_UP

    broker = await started(nursery, {ApiKey.API_VERSIONS: say})
    with pytest.raises(NotKafka) as caught:
        await connect(nursery, broker)
    assert str(caught.value) == f"{broker.address} {line}"
    assert caught.value.said.startswith(said[:4])


async def test_bytes_that_are_no_answer_end_the_connection_for_all(nursery: trio.Nursery) -> None:
    async def garbage(call: Call) -> Any:
        await reply(call.stream, call.correlation_id + 1, bytes(40))

    broker = await started(nursery, {ApiKey.METADATA: garbage})
    connection = await connect(nursery, broker)
    failed = list[type[Exception]]()

    async def ask() -> None:
        with pytest.raises(ClientError) as caught:
            await connection.request(ASK, timeout_s=60)
        failed.append(caught.type)

    async with trio.open_nursery() as asking:
        asking.start_soon(ask)
        asking.start_soon(ask)
    assert failed == [UnreadableResponse] * 2
    broken = await connect(nursery, await started(nursery, {ApiKey.METADATA: unreadable}))
    with pytest.raises(UnreadableResponse, match="its answer to Metadata cannot be read"):
        await broken.request(ASK, timeout_s=60)
    assert not broken.is_open


async def unreadable(call: Call) -> None:
    await reply(call.stream, call.correlation_id, b"\0" + b"\xff" * 40)


async def test_a_server_that_never_says_its_versions(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    broker = await started(nursery, {ApiKey.API_VERSIONS: lambda call: None})
    with pytest.raises(TimedOut) as caught:
        await connect(nursery, broker, connect_timeout_s=3)
    assert str(caught.value) == f"{broker.address} does not answer ApiVersions within 3 seconds"


# TLS


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def server_tls(ca: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(context)
    return context


@pytest.fixture
def trusting(ca: trustme.CA, tmp_path: Path) -> Iterator[TlsContexts]:
    file = tmp_path / "ca.pem"
    ca.cert_pem.write_to_path(file)
    yield TlsContexts(ClientTls(trusted=Pem("ssl.ca.location", str(file), True)))


async def test_tls(nursery: trio.Nursery, server_tls: ssl.SSLContext, trusting: TlsContexts) -> None:
    sizes = list[int]()

    def measure(call: Call) -> Any:
        sizes.append(
            sum(len(part.records) for each in call.request.topic_data for part in each.partition_data)
        )

    broker = await started(nursery, {ApiKey.PRODUCE: measure, **FINE}, tls=server_tls)
    connection = await connect(nursery, broker, trusting)
    for size in (0, 1, 16_384, 3_000_000):
        data = [PartitionProduceData(index=number, records=memoryview(bytes(size))) for number in range(3)]
        produce = ProduceRequest(acks=0, topic_data=[TopicProduceData(name="t", partition_data=data)])
        await connection.request(produce, timeout_s=60)
    assert (await connection.request(ASK, timeout_s=60)).cluster_id == "scripted"
    assert sizes == [0, 3, 49_152, 9_000_000]


async def test_a_certificate_that_is_refused(nursery: trio.Nursery, server_tls: ssl.SSLContext) -> None:
    broker = await started(nursery, FINE, tls=server_tls)
    with pytest.raises(
        TlsRefused, match=f"localhost:{broker.port}: its certificate is refused: unable to get"
    ):
        await connect(nursery, broker, TlsContexts(ClientTls()))
    missing = Pem("ssl.ca.location", "/nowhere/ca.pem", True)
    with pytest.raises(TlsRefused, match=r"^ssl.ca.location=/nowhere/ca.pem: No such file or directory$"):
        await connect(nursery, broker, TlsContexts(ClientTls(trusted=missing)))


async def test_a_server_that_wants_our_certificate(
    nursery: trio.Nursery, ca: trustme.CA, trusting: TlsContexts
) -> None:
    """With TLS 1.3 a server says so only after the client's part of the handshake is done."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(context)
    ca.configure_trust(context)
    context.verify_mode = ssl.CERT_REQUIRED
    broker = await started(nursery, FINE, tls=context)
    with pytest.raises(ClientError) as caught:
        await connect(nursery, broker, trusting, tls=ClientTls())
    assert "certificate" in str(caught.value)
    assert str(caught.value).startswith(f"localhost:{broker.port}")


async def test_tls_where_none_is_spoken(nursery: trio.Nursery, trusting: TlsContexts) -> None:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")

    async def talk(stream: trio.SocketStream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    nursery.start_soon(partial(trio.serve_listeners, talk, listeners))
    port = listeners[0].socket.getsockname()[1]
    chosen = ClientSettings(bootstrap=(HostPort("localhost", port),))
    with pytest.raises(NotKafka, match=f"localhost:{port} speaks no TLS"):
        await nursery.start(ClientConnection(HostPort("localhost", port), chosen, trusting).run)


# SASL


def user(mechanism: str, password: str = "pencil") -> ClientSasl:
    return ClientSasl(mechanism=mechanism, username="us,er", password=password)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
async def test_authentication(nursery: trio.Nursery, mechanism: str) -> None:
    server = SaslServer(mechanism, "us,er", "pencil")
    broker = await started(nursery, {**server.answers, **FINE})
    connection = await connect(nursery, broker, sasl=user(mechanism))
    await connection.request(ASK, timeout_s=60)
    steps = 1 if mechanism == "PLAIN" else 2
    assert broker.seen == [
        ("ApiVersionsRequest", 4),
        ("SaslHandshakeRequest", 1),
        *[("SaslAuthenticateRequest", 2)] * steps,
        ("MetadataRequest", 13),
    ]
    assert server.authenticated == 1
    for wrong, line in (
        (
            user(mechanism, "pen"),
            "the user us,er is refused: Authentication failed (SASL_AUTHENTICATION_FAILED)",
        ),
        (user("PLAIN" if steps == 2 else "SCRAM-SHA-256"), f"it offers '{mechanism}'"),
    ):
        with pytest.raises(AuthenticationRefused) as caught:
            await connect(nursery, broker, sasl=wrong)
        assert str(caught.value).startswith(broker.address)
        assert line in str(caught.value)


async def test_a_server_that_does_not_know_the_password(nursery: trio.Nursery) -> None:
    server = SaslServer("SCRAM-SHA-256", "us,er", "pencil", impostor=True)
    broker = await started(nursery, {**server.answers, **FINE})
    with pytest.raises(AuthenticationRefused, match="it has not proved in SCRAM that it knows the password"):
        await connect(nursery, broker, sasl=user("SCRAM-SHA-256"))


async def test_many_iterations_do_not_hold_up_the_loop(nursery: trio.Nursery) -> None:
    """Other tasks have their turns while a thread counts. Were it on the loop, they would have none."""
    server = SaslServer("SCRAM-SHA-512", "us,er", "pencil", iterations=400_000)
    broker = await started(nursery, {**server.answers, **FINE})
    turns, counting = 0, False
    authenticate = server.authenticate

    def begin(call: Call) -> Any:
        nonlocal counting
        counting = "first" not in call.kept
        return authenticate(call) if counting else HANG_UP

    broker.answers = {**broker.answers, ApiKey.SASL_AUTHENTICATE: begin}

    async def tick() -> None:
        nonlocal turns
        while True:
            turns += counting
            await trio.sleep(0.001)

    nursery.start_soon(tick)
    with pytest.raises(ConnectionLost):
        await connect(nursery, broker, sasl=user("SCRAM-SHA-512"))
    assert turns >= 10


async def test_a_session_that_ends_is_renewed_before(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """KIP-368. The handshake comes first, on the connection as it is."""
    server = SaslServer("PLAIN", "us,er", "pencil", lifetime_ms=100_000)
    broker = await started(nursery, {**server.answers, **FINE})
    connection = await connect(nursery, broker, sasl=user("PLAIN"))
    began = trio.current_time()
    await trio.sleep(84)
    assert server.authenticated == 1
    await trio.sleep_until(began + 96)
    assert server.authenticated == 2
    assert (await connection.request(ASK, timeout_s=60)).cluster_id == "scripted"
    await trio.sleep_until(began + 3 * 96)
    assert server.authenticated >= 3
    assert broker.connections == 1
    assert connection.is_open


async def test_no_request_comes_between_the_steps_of_a_renewal(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    server = SaslServer("PLAIN", "us,er", "pencil", lifetime_ms=100_000)
    handshakes = 0
    begun, go_on = trio.Event(), trio.Event()

    async def slow(call: Call) -> Any:
        nonlocal handshakes
        handshakes += 1
        if handshakes == 2:
            begun.set()
            await go_on.wait()
        return server.handshake(call)

    broker = await started(nursery, {**server.answers, ApiKey.SASL_HANDSHAKE: slow, **FINE})
    connection = await connect(nursery, broker, sasl=user("PLAIN"))
    await begun.wait()
    async with trio.open_nursery() as asking:
        asking.start_soon(partial(connection.request, ASK, timeout_s=60))
        await trio.testing.wait_all_tasks_blocked()
        assert broker.asked("MetadataRequest") == 0
        go_on.set()
    assert [name for name, _ in broker.seen[-3:]] == [
        "SaslHandshakeRequest",
        "SaslAuthenticateRequest",
        "MetadataRequest",
    ]


async def test_a_renewal_that_is_refused(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    server = SaslServer("PLAIN", "us,er", "pencil", lifetime_ms=100_000)
    broker = await started(nursery, {**server.answers, **FINE})
    connection = await connect(nursery, broker, sasl=user("PLAIN"))
    server.password = "changed"
    await trio.sleep(96)
    assert isinstance(connection.error, AuthenticationRefused)
    with pytest.raises(ConnectionLost, match="the user us,er is refused"):
        await connection.request(ASK, timeout_s=60)
