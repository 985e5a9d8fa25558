"""Broker settings of listeners, connections and requests: each with another value than the default, seen by a client,
and those that change while the broker runs by changing them.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from leafcuttr.config.load import load_settings
from leafcuttr.errors import ConfigError
from leafcuttr.server.routes import Route
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from leafcuttr.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from leafcuttr.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from support import librdkafka
from support.accepting import taken
from support.changing import alter_broker
from support.live_broker import LiveBroker
from support.logs import batch
from support.waiting import eventually, until
from support.wire_client import WireClient

ASK = ApiVersionsRequest()
NOT_YET_S = 0.3
"""So long a test watches for what must not happen; it is no measure of speed."""


@contextmanager
def sockets_at(port: int) -> Iterator[list[socket.socket]]:
    """This process's sockets that are bound to a port: the listener's and those it has accepted."""
    with ExitStack() as stack:
        found = []
        for path in Path("/proc/self/fd").iterdir():
            try:
                number = os.dup(int(path.name))
            except OSError:
                continue  # the folder's own, which is closed by now
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                os.close(number)
                continue
            sock = stack.enter_context(socket.socket(fileno=number))
            if sock.family == socket.AF_INET and sock.getsockname()[1] == port:
                found.append(sock)
        yield found


def port_of(broker: LiveBroker, listener: int = 0) -> int:
    return broker.broker.listeners[listener].port


def accepted(broker: LiveBroker) -> int:
    """How many connections the broker has open."""
    with sockets_at(port_of(broker)) as found:
        return sum(not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) for sock in found)


def quiet(broker: LiveBroker) -> None:
    """Wait until the clients that have changed something are gone."""
    until(lambda: accepted(broker) == 0, "the end of the other connections")


class Client(WireClient):
    """A client from an address of its own, which may have no answer yet."""

    def __init__(self, address: str, *, source: str = "127.0.0.1") -> None:
        host, _, port = address.rpartition(":")
        super().__init__(address, socket.create_connection((host, int(port)), 60, (source, 0)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def served(self) -> bool:
        return bool(self.ask(ASK, 2).error_code == 0)

    def waits(self) -> bool:
        """Ask, and see that there is no answer for a while."""
        self.send(ASK, 2)
        self.socket.settimeout(NOT_YET_S)
        try:
            self.socket.recv(1, socket.MSG_PEEK)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(60)
        return False

    def answered(self) -> bool:
        """The answer to its request."""
        return bool(self.take(ASK, 2).error_code == 0)

    def closed(self) -> bool:
        """Whether the broker has closed it without an answer."""
        try:
            self.send(ASK, 2)
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True


# What there is to connect to


@pytest.mark.setting(
    "listeners", "advertised.listeners", "listener.security.protocol.map", "controller.listener.names"
)
def test_listeners(serve: Any) -> None:
    settings = {
        "listeners": "IN://127.0.0.1:0,OUT://127.0.0.1:0,MGMT://127.0.0.1:0",
        "advertised.listeners": "OUT://edge1:19092",
        "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT,MGMT:PLAINTEXT",
        "controller.listener.names": "MGMT",
    }
    with taken(), serve(settings) as broker:
        assert [listener.name for listener in broker.broker.listeners] == ["IN", "OUT"]
        told = []
        for number in range(2):
            with WireClient(f"127.0.0.1:{port_of(broker, number)}") as client:
                (found,) = client.ask(MetadataRequest(topics=[]), 12).brokers
                told.append((found.host, found.port))
        assert told == [("127.0.0.1", port_of(broker)), ("edge1", 19092)]


@pytest.mark.setting("node.id", "broker.rack")
def test_node_id_and_rack(serve: Any) -> None:
    with serve({"node.id": "7", "broker.rack": "shelf"}) as broker, WireClient(broker.address) as client:
        answer = client.ask(MetadataRequest(topics=[]), 12)
        assert [(found.node_id, found.rack) for found in answer.brokers] == [(7, "shelf")]
        assert answer.controller_id == 7
        assert "node.id=7" in (broker.broker.logs.directory / "meta.properties").read_text()


@pytest.mark.setting("broker.id")
def test_broker_id(serve: Any) -> None:
    with serve({"broker.id": "8"}) as broker, WireClient(broker.address) as client:
        assert [found.node_id for found in client.ask(MetadataRequest(topics=[]), 12).brokers] == [8]


@pytest.mark.setting("process.roles")
def test_process_roles(serve: Any) -> None:
    with serve({"process.roles": "broker"}) as broker, WireClient(broker.address) as client:
        assert client.ask(ASK, 2).error_code == 0
    with pytest.raises(ConfigError, match="allowed is broker or broker,controller"):
        load_settings(None, {}, ["process.roles=controller"])


# How many connections


@pytest.mark.setting("max.connections", while_running=True)
def test_max_connections(serve: Any, scope: str) -> None:
    with serve() as broker, Client(broker.address) as one, Client(broker.address) as two:
        assert one.served()
        assert two.served()
        alter_broker(broker.address, scope, {"max.connections": "2"})
        until(lambda: accepted(broker) == 2, "the end of the client that changed it")
        with Client(broker.address) as three:
            assert three.waits()
            assert one.served()
            two.socket.close()
            assert three.answered()
        one.socket.close()
        quiet(broker)
        alter_broker(broker.address, scope, {"max.connections": None})
        with ExitStack() as stack:
            assert all(stack.enter_context(Client(broker.address)).served() for _ in range(4))


@pytest.mark.setting("max.connections.per.ip", while_running=True)
def test_max_connections_per_ip(serve: Any, scope: str) -> None:
    with serve() as broker, ExitStack() as stack:
        alter_broker(broker.address, scope, {"max.connections.per.ip": "4"})
        quiet(broker)
        clients = [stack.enter_context(Client(broker.address, source="127.0.0.2")) for _ in range(5)]
        assert [client.served() for client in clients[:4]] == [True] * 4
        assert clients[4].closed()
        assert stack.enter_context(Client(broker.address, source="127.0.0.3")).served()
        alter_broker(broker.address, scope, {"max.connections.per.ip": None})
        assert stack.enter_context(Client(broker.address, source="127.0.0.2")).served()


@pytest.mark.setting("max.connections.per.ip.overrides", while_running=True)
def test_max_connections_per_ip_overrides(serve: Any, scope: str) -> None:
    with serve() as broker, ExitStack() as stack:
        alter_broker(broker.address, scope, {"max.connections.per.ip.overrides": "127.0.0.2:1"})

        def refused() -> bool:
            with (
                Client(broker.address, source="127.0.0.2") as first,
                Client(broker.address, source="127.0.0.2") as other,
            ):
                return first.served() and other.closed()

        # Names have to be looked up: the connection that is waited for when it changes does not know it yet.
        until(refused, "the limit of the address")
        others = [stack.enter_context(Client(broker.address, source="127.0.0.3")) for _ in range(3)]
        assert all(other.served() for other in others)


@pytest.mark.setting("max.connection.creation.rate", while_running=True)
def test_max_connection_creation_rate(serve: Any, scope: str) -> None:
    """Ten a second: of 25 at once, ten may come at once, and the last after a second and a half."""
    with serve() as broker:
        alter_broker(broker.address, scope, {"max.connection.creation.rate": "10"})
        quiet(broker)
        began = time.monotonic()
        with ExitStack() as stack:
            clients = [stack.enter_context(Client(broker.address)) for _ in range(25)]
            assert all(client.served() for client in clients)
        assert time.monotonic() - began > 1.4


def test_limits_of_one_listener(serve: Any, scope: str) -> None:
    name = "listener.name.in.max.connections"
    settings = {
        "listeners": "IN://127.0.0.1:0,OUT://127.0.0.1:0",
        "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT",
        name: "3",
    }
    with serve(settings) as broker, ExitStack() as stack:
        out = f"127.0.0.1:{port_of(broker, 1)}"
        inside = [stack.enter_context(Client(broker.address)) for _ in range(4)]
        assert [client.served() for client in inside[:3]] == [True] * 3
        assert inside[3].waits()
        assert all(stack.enter_context(Client(out)).served() for _ in range(5))
        alter_broker(out, scope, {name: "4"})
        assert inside[3].answered()
        assert stack.enter_context(Client(broker.address)).waits()


# Their sockets


@pytest.mark.setting("socket.receive.buffer.bytes", "socket.send.buffer.bytes")
def test_socket_buffers(serve: Any) -> None:
    options = (socket.SO_RCVBUF, socket.SO_SNDBUF)

    def sizes(settings: dict[str, str]) -> list[int]:
        with serve(settings) as broker, Client(broker.address) as client:
            assert client.served()
            with sockets_at(port_of(broker)) as found:
                (sock,) = [s for s in found if not s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)]
                return [sock.getsockopt(socket.SOL_SOCKET, option) for option in options]

    given = {"socket.receive.buffer.bytes": "20000", "socket.send.buffer.bytes": "30000"}
    assert sizes(given) == [40_000, 60_000], "the kernel doubles what is requested"
    left_to_the_system = sizes({"socket.receive.buffer.bytes": "-1", "socket.send.buffer.bytes": "-1"})
    assert left_to_the_system == sizes({})
    assert left_to_the_system not in ([40_000, 60_000], [204_800, 204_800])


@pytest.mark.setting("socket.listen.backlog.size")
def test_socket_listen_backlog_size(serve: Any) -> None:
    with serve({"socket.listen.backlog.size": "7"}) as broker, sockets_at(port_of(broker)) as found:
        (sock,) = found
        # Of a listening socket tcpi_sacked, at byte 28, is the length of its queue (net/ipv4/tcp.c, tcp_get_info).
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
        assert struct.unpack_from("=I", info, 28) == (7,)


# What they may ask


@pytest.mark.setting("socket.request.max.bytes")
def test_socket_request_max_bytes(serve: Any) -> None:
    with serve({"socket.request.max.bytes": "1000"}) as broker:
        for size, answered in ((1000, True), (1001, False)):
            with Client(broker.address) as client:
                # A Metadata request, version 0, that names one topic; its client id fills it up.
                filler = b"x" * (size - 8 - 2 - 4)
                body = struct.pack(">hhih", 3, 1, 1, len(filler)) + filler + struct.pack(">i", 0)
                assert len(body) == size
                client.socket.sendall(struct.pack(">i", size) + body)
                try:
                    assert (client.socket.recv(1) != b"") is answered
                except ConnectionError:
                    assert not answered


@pytest.mark.setting("fetch.max.bytes")
def test_fetch_max_bytes(serve: Any) -> None:
    def fetched(broker: LiveBroker) -> int:
        with WireClient(broker.address) as client:
            return len(client.fetch("t", 0, max_bytes=1 << 24).records)

    with serve() as broker:
        librdkafka.create(broker.address, "t")
        with WireClient(broker.address) as client:
            for _ in range(20):
                assert client.produce("t", batch(size=1000)).error_code == 0
        size = sum(header.size for header in broker.stored("t"))
        assert fetched(broker) == size
    with serve({"fetch.max.bytes": "5000"}) as broker:
        assert 3 * size // 20 <= fetched(broker) <= 5000


@pytest.mark.setting("max.incremental.fetch.session.cache.slots")
def test_fetch_session_slots(serve: Any) -> None:
    item = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    request = FetchRequest(max_bytes=1000, session_epoch=0, topics=[FetchTopic(topic="t", partitions=[item])])

    def opened(broker: LiveBroker) -> list[bool]:
        with WireClient(broker.address) as client:
            return [client.ask(request, 11).session_id != 0 for _ in range(3)]

    with serve({"max.incremental.fetch.session.cache.slots": "2"}) as broker:
        librdkafka.create(broker.address, "t")
        assert opened(broker) == [True, True, False]
    with serve() as broker:
        assert opened(broker) == [True, True, True]


@pytest.mark.setting("queued.max.requests")
def test_queued_max_requests(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long requests are held while they are read: with so many of them nothing more is read, with fewer it is."""
    go_on, reading = threading.Event(), 0
    read = Route.read_in_turns

    async def held(self: Route, buffer: memoryview, at: int, end: int) -> Any:
        nonlocal reading
        reading += 1
        await eventually(go_on.is_set, "the test to let it go on")
        return await read(self, buffer, at, end)

    def begun(count: int) -> bool:
        return reading == count

    monkeypatch.setattr(Route, "read_in_turns", held)
    long = MetadataRequest(
        topics=[MetadataRequestTopic(name=f"t{number}") for number in range(600)],
        allow_auto_topic_creation=False,
    )
    for settings, waits in (({"queued.max.requests": "3"}, True), ({}, False)):
        go_on.clear()
        reading = 0
        with serve(settings) as broker, ExitStack() as stack:
            stack.callback(go_on.set)
            clients = [stack.enter_context(Client(broker.address)) for _ in range(4)]
            assert all(client.served() for client in clients)
            for number, client in enumerate(clients[:3]):
                client.send(long, 12)
                until(partial(begun, number + 1), "the long requests")
            assert clients[3].waits() is waits
            go_on.set()
            for client in clients[:3]:
                assert len(client.take(long, 12).topics) == 600
            assert clients[3].answered()
