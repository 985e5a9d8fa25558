"""What hostile clients of the MQTT broker's listeners do to the others: nothing. TLS and WebSockets that are broken,
slow, or no such thing; packets at the limits; storms of one client. What is wrong inside MQTT is in
`tests/mqtt/conformance` and `tests/fuzz`."""

from __future__ import annotations

import os
import re
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import pairwise
from typing import NamedTuple

import pytest
import trustme

from mqtt.conformance import wire
from mqtt.conformance.raw import Closed, Raw, fresh
from mqtt.conformance.websocket import BINARY, CLOSE, CONTINUATION, TEXT, WebSocket, frame
from support import librdkafka
from support.crowds import sockets
from support.mqtt_broker import MqttBroker, running_mqtt
from support.mqtt_neighbour import MqttNeighbour
from support.waiting import until

LARGEST = 100_000
"""`mqtt.max.packet.bytes`."""
LISTENERS = ("mqtt", "mqtt.tls", "mqtt.ws", "mqtt.wss")
PATIENCE_S = 60
PING = 9


class Hostile(NamedTuple):
    """The broker, and the certificate authority of its listeners."""

    broker: MqttBroker
    authority: trustme.CA
    client: trustme.LeafCert

    def port(self, listener: str) -> int:
        assert self.broker.process is not None
        return int(self.broker.process.about["plugin_listeners"][listener].rpartition(":")[2])

    def dial(self, listener: str = "mqtt") -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port(listener)), PATIENCE_S)

    def tls(self, *, certificate: bool = False, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        if certificate:
            self.client.configure_cert(context)
        if version is not None:
            context.maximum_version = version
        return context

    def over_tls(self, listener: str = "mqtt.tls", context: ssl.SSLContext | None = None) -> ssl.SSLSocket:
        return (context or self.tls()).wrap_socket(self.dial(listener), server_hostname="localhost")

    def websocket(self, version: int = 5) -> WebSocket:
        return WebSocket("127.0.0.1", self.port("mqtt.ws"), version, strict=True)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hostile]:
    folder = tmp_path_factory.mktemp("hostile")
    authority = trustme.CA()
    pem, ca = folder / "broker.pem", folder / "ca.pem"
    authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(pem))
    authority.cert_pem.write_to_path(str(ca))
    settings = {"mqtt.max.packet.bytes": str(LARGEST)}
    for listener in LISTENERS:
        settings |= {
            f"{listener}.host": "127.0.0.1",
            f"{listener}.port": "0",
            f"{listener}.handshake.timeout.ms": "1500",
        }
    for listener in ("mqtt.tls", "mqtt.wss"):
        settings |= {f"{listener}.ssl.keystore.location": str(pem)}
    settings |= {"mqtt.wss.ssl.client.auth": "required", "mqtt.wss.ssl.truststore.location": str(ca)}
    with running_mqtt(folder, settings) as broker:
        yield Hostile(broker, authority, authority.issue_cert("device"))


@pytest.fixture
def hostile(found: Hostile) -> Iterator[Hostile]:
    """Another client is served meanwhile; afterwards nothing is left, and the broker has not failed."""
    process = found.broker.process
    assert process is not None
    until(lambda: sockets(process) <= LEFT, "the connections of the test before to end")
    with MqttNeighbour(f"127.0.0.1:{found.broker.port}"):
        yield found
    until(lambda: sockets(process) <= LEFT, "the connections to end")
    assert "Traceback" not in process.log
    # A handler that is said to have held the loop may have waited for a processor.
    assert not re.search(r"handler of \S+ failed", process.log)
    assert process.alive()


LEFT = 12
"""Sockets of a broker that nobody is connected to: its listeners, and those of its loop."""


def ended(sock: socket.socket) -> bytes:
    """What comes up to the end of the connection, which has to come."""
    got = b""
    with suppress(ConnectionResetError, ssl.SSLError):
        while data := sock.recv(65536):
            got += data
    return got


def client_hello() -> bytes:
    outgoing = ssl.MemoryBIO()
    pair = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        pair.do_handshake()
    return outgoing.read()


CONNECT = wire.connect(5, "plain")
UPGRADE = b"GET /mqtt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
HALF = {
    "nothing": lambda: b"",
    "a byte": lambda: client_hello()[:1],
    "half a hello": lambda: client_hello()[:100],
    "a hello": client_hello,
    "http": lambda: UPGRADE,
    "mqtt": lambda: CONNECT[:7],
}


@pytest.mark.long
def test_handshakes_that_do_not_end(hostile: Hostile) -> None:
    with ExitStack() as stack:
        socks = []
        for listener in LISTENERS:
            for sent in HALF.values():
                for _ in range(10):
                    socks.append(stack.enter_context(hostile.dial(listener)))
                    socks[-1].sendall(sent())
        for sock in socks:
            assert b"\x20" not in ended(sock)[:1]  # no CONNACK


@pytest.mark.parametrize("listener", ["mqtt.tls", "mqtt.wss"])
@pytest.mark.parametrize("sent", [CONNECT, UPGRADE + b"\r\n", b"\x16\x03\x01\x40\x00" + bytes(16384)])
def test_no_tls_where_it_is_spoken(hostile: Hostile, listener: str, sent: bytes) -> None:
    for _ in range(20):
        with hostile.dial(listener) as sock:
            sock.sendall(sent)
            assert len(ended(sock)) < 20  # an alert at most
    assert hostile.broker.process is not None
    assert hostile.broker.process.log.count(f"listener {listener} ") < 10


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_without_a_certificate_is_not_served(hostile: Hostile, version: ssl.TLSVersion) -> None:
    """With TLS 1.3 it knows only later that it was refused."""
    for certificate, status in ((False, b""), (True, b"HTTP/1.1 101")):
        got = b""
        context = hostile.tls(certificate=certificate, version=version)
        with suppress(ssl.SSLError, ConnectionError), hostile.over_tls("mqtt.wss", context) as sock:
            key = b"Connection: Upgrade\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            rest = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n"
            sock.sendall(UPGRADE + key + rest)
            got = sock.recv(12)
        assert got == status


@pytest.mark.parametrize("how", ["without a close_notify", "in the middle of a record", "with garbage"])
def test_tls_that_breaks_after_connect(hostile: Hostile, how: str) -> None:
    """A will says so, as wherever a connection breaks."""
    with Raw("127.0.0.1", hostile.broker.port) as watcher:
        watcher.connect()
        watcher.subscribe("wills/#")
        sock = hostile.over_tls()
        name = fresh()
        sock.sendall(wire.connect(5, name, will=wire.Will("wills/x", name.encode())))
        assert sock.recv(1) == b"\x20"
        plain = socket.socket(fileno=os.dup(sock.fileno()))
        if how == "in the middle of a record":
            plain.sendall(b"\x17\x03\x03\x40\x00" + bytes(100))
        elif how == "with garbage":
            plain.sendall(os.urandom(1000))
        plain.shutdown(socket.SHUT_RDWR)
        plain.close()
        sock.detach()
        assert watcher.message().payload == name.encode()


def head(first: int, length: bytes) -> bytes:
    return bytes([first]) + length + bytes(4)


FRAMES = {
    "a frame of 2^63 bytes": head(0x82, b"\xff\xff" + b"\xff" * 7),
    "a frame of 2^62 bytes": head(0x82, b"\xff\x3f" + b"\xff" * 7) + bytes(10_000),
    "one that is not masked": b"\x82\x02\xc0\x00",
    "one that is compressed": head(0xC2, b"\x85") + b"12345",
    "a continuation of nothing": frame(CONTINUATION, wire.PING),
    "a message within a message": frame(BINARY, b"\xc0", final=False) + frame(BINARY, wire.PING),
    "a reserved kind of frame": frame(3, wire.PING),
    "a ping in pieces": frame(PING, b"x", final=False),
    "a ping of 126 bytes": frame(PING, bytes(126)),
    "text": frame(TEXT, wire.PING),
    "text that is none": frame(TEXT, b"\xff\xfe"),
    "a close frame of a byte": frame(CLOSE, b"\x03"),
    "a close frame with a code that there is not": frame(CLOSE, struct.pack(">H", 999)),
}


@pytest.mark.parametrize("data", FRAMES.values(), ids=FRAMES.keys())
def test_broken_frames_end_a_websocket(hostile: Hostile, data: bytes) -> None:
    with Raw("127.0.0.1", hostile.broker.port) as watcher, hostile.websocket() as raw:
        watcher.connect()
        watcher.subscribe("wills/#")
        raw.connect(will=wire.Will("wills/x", raw.client_id.encode() + b"w"))
        raw.send_bytes(data)
        assert [packet.kind for packet in raw.rest()] in ([], [wire.DISCONNECT])
        assert watcher.message().payload.endswith(b"w")


def test_a_websocket_without_a_close_frame(hostile: Hostile) -> None:
    with Raw("127.0.0.1", hostile.broker.port) as watcher:
        watcher.connect()
        watcher.subscribe("wills/#")
        for end in (WebSocket.close, WebSocket.reset):
            raw = hostile.websocket()
            raw.connect(will=wire.Will("wills/x", b"w"))
            end(raw)
            assert watcher.message().payload == b"w"


@pytest.mark.parametrize("ends", [b"\x00\x00", wire.disconnect(5)], ids=["refused", "left"])
def test_pings_behind_the_end_of_a_websocket(hostile: Hostile, ends: bytes) -> None:
    """They come while the broker closes it, and cannot be answered any more."""
    with ExitStack() as stack:
        many = [stack.enter_context(hostile.websocket()) for _ in range(20)]
        for raw in many:
            raw.connect()
            raw.send_bytes(frame(BINARY, ends) + frame(PING, b"p") * 200)
        for _ in range(20):
            for raw in many:
                raw.send_bytes(frame(PING, b"p") * 50)
        for raw in many:
            ended(raw._socket)


def test_pings_of_a_websocket_are_answered_while_messages_come(hostile: Hostile) -> None:
    with hostile.websocket() as raw:
        raw.connect()
        for _ in range(20):
            raw.send_bytes(frame(PING, b"p") * 500)
            assert raw.ping() == []


def test_a_client_that_takes_no_pongs(hostile: Hostile) -> None:
    """It is read no more, and what waits for it is bounded; it keeps nobody else."""
    with hostile.websocket() as raw:
        raw.connect()
        raw._socket.settimeout(0.5)
        with suppress(TimeoutError):
            for _ in range(2000):
                raw._socket.sendall(frame(PING, bytes(125)) * 500)
        with Raw("127.0.0.1", hostile.broker.port) as other:
            other.connect()
            assert other.ping() == []


@pytest.mark.parametrize("size", [LARGEST, LARGEST + 1])
@pytest.mark.parametrize("pieces", [1, 3, 1000])
def test_a_packet_at_the_limit_over_a_websocket(hostile: Hostile, size: int, pieces: int) -> None:
    """However it is cut into frames."""
    with hostile.websocket() as raw:
        raw.connect()
        packet = wire.publish(5, "t", bytes(LARGEST - 9), qos=1, packet_id=7)
        packet = wire.publish(5, "t", bytes(LARGEST - 9 + size - len(packet)), qos=1, packet_id=7)
        assert len(packet) == size
        at = [size * number // pieces for number in range(pieces + 1)]
        cut = [packet[start:end] for start, end in pairwise(at)]
        if pieces == 1000:
            raw.send(*cut)  # each a message of its own
        else:
            kinds = [BINARY, *[CONTINUATION] * (pieces - 1)]
            raw.send_bytes(
                b"".join(
                    large_frame(kind, part, final=number == pieces)
                    for number, (kind, part) in enumerate(zip(kinds, cut, strict=True), 1)
                )
            )
        if size == LARGEST:
            assert raw.answer(wire.PUBACK, 7).reason in (0, 0x10)
        else:
            packets = raw.rest()
            assert [(each.kind, each.reason) for each in packets] in ([], [(wire.DISCONNECT, 0x95)])


def large_frame(kind: int, payload: bytes, *, final: bool) -> bytes:
    """With a mask of zeros."""
    size = len(payload)
    length = b"\xff" + struct.pack(">Q", size) if size >> 16 else b"\xfe" + struct.pack(">H", size)
    return bytes([final << 7 | kind]) + length + bytes(4) + payload


def test_many_packets_in_a_message_that_is_larger_than_any_of_them(hostile: Hostile) -> None:
    """As MQTT.js makes them in a browser of what has waited for the connection."""
    with hostile.websocket() as raw:
        raw.connect()
        packets = [
            wire.publish(5, "t", bytes(LARGEST // 2), qos=1, packet_id=number) for number in range(1, 11)
        ]
        raw.send_bytes(large_frame(BINARY, b"".join(packets), final=True))
        for number in range(1, 11):
            assert raw.answer(wire.PUBACK, number).reason in (0, 0x10)


def test_empty_frames_without_end(hostile: Hostile) -> None:
    """Nothing is kept of them."""
    process = hostile.broker.process
    assert process is not None
    with hostile.websocket() as raw:
        raw.connect()
        raw.send_bytes(frame(BINARY, b"\xc0", final=False))
        before = process.resident_mb()
        for _ in range(100):
            raw.send_bytes(frame(CONTINUATION, b"", final=False) * 5000)
        raw.send_bytes(frame(CONTINUATION, b"\x00"))
        raw.expect(wire.PINGRESP)
        assert process.resident_mb() - before < 8


def test_handshakes_that_come_byte_by_byte(hostile: Hostile) -> None:
    """All of them have the time of one handshake, and others connect meanwhile."""
    with ExitStack() as stack:
        socks = [stack.enter_context(hostile.dial()) for _ in range(200)]
        data = wire.connect(5, "s" * 5000)
        open_ones = set(socks)
        at = 0
        for at in range(len(data)):
            for sock in list(open_ones):
                try:
                    sock.sendall(data[at : at + 1])
                except OSError:
                    open_ones.discard(sock)
            if not open_ones:
                break
            with Raw("127.0.0.1", hostile.broker.port) as other:
                other.connect()
        assert not open_ones
        assert at < len(data) - 1


def test_a_storm_of_connections_with_one_client_identifier(hostile: Hostile) -> None:
    """Each takes over from the one before, in the order in which they come to be read."""
    name = fresh()
    keep = [("session_expiry", 60)]
    with ExitStack() as stack:
        socks = [stack.enter_context(hostile.dial()) for _ in range(300)]
        for sock in socks:
            sock.sendall(
                wire.connect(5, name, clean=False, properties=keep, will=wire.Will("wills/storm", b"w"))
                + wire.subscribe(5, 1, [("storm/#", 1)])
            )
        left = set(socks)

        def none_is_left() -> bool:
            with Raw("127.0.0.1", hostile.broker.port) as raw, suppress(Closed):
                raw.connect(name, clean=False, properties=keep)  # takes over from whichever was the last
            for sock in list(left):
                if is_over(sock):
                    left.discard(sock)
            return not left

        until(none_is_left, "the end of all of them")
        with Raw("127.0.0.1", hostile.broker.port) as raw:
            raw.connect(name, clean=False, properties=keep)
            raw.subscribe(("storm/#", 1))
            raw.publish("storm/x", b"x", 1)
            assert raw.message().payload == b"x"
            raw.disconnect(0, [("session_expiry", 0)])


def is_over(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        while sock.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionResetError:
        pass
    return True


def test_a_storm_of_subscriptions(hostile: Hostile) -> None:
    with Raw("127.0.0.1", hostile.broker.port) as raw:
        raw.connect(properties=[("session_expiry", 60)])
        for turn in range(20):
            filters = [(f"storm/{number}/+/#", 1) for number in range(500)]
            raw.send(
                wire.subscribe(5, 1 + 2 * turn, filters),
                wire.unsubscribe(5, 2 + 2 * turn, [name for name, _ in filters]),
            )
        for turn in range(20):
            assert set(raw.answer(wire.SUBACK, 1 + 2 * turn).reasons) == {1}
            assert set(raw.answer(wire.UNSUBACK, 2 + 2 * turn).reasons) == {0}
        raw.disconnect(0, [("session_expiry", 0)])


@pytest.mark.parametrize("count", [2000, pytest.param(100_000, marks=pytest.mark.long)])
def test_a_subscriber_of_very_many_retained_messages(hostile: Hostile, count: int) -> None:
    with Raw("127.0.0.1", hostile.broker.port) as publisher:
        publisher.connect()
        for start in range(0, count, 1000):
            publisher.send(
                *(
                    wire.publish(5, f"kept/{number}", b"%d" % number, retain=True)
                    for number in range(start, start + 1000)
                )
            )
            publisher.ping()
        with Raw("127.0.0.1", hostile.broker.port) as raw:  # not before: one that says nothing is closed
            raw.connect()
            raw.subscribe(("kept/#", 0))
            got = {int(raw.message().payload) for _ in range(count)}
        assert got == set(range(count))
        for start in range(0, count, 1000):
            publisher.send(
                *(
                    wire.publish(5, f"kept/{number}", b"", retain=True)
                    for number in range(start, start + 1000)
                )
            )
            publisher.ping()


@pytest.mark.parametrize("keep_alive", [0, 65_535])
def test_the_ends_of_keep_alive(hostile: Hostile, keep_alive: int) -> None:
    with Raw("127.0.0.1", hostile.broker.port) as raw:
        raw.connect(keep_alive=keep_alive)
        assert raw.ping() == []


NAMES = {"empty": b"", "64 KB": b"n" * 65_535, "many lines": b"a\nb\rc\x1b[31m"}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES.keys())
def test_odd_client_identifiers_and_user_names(hostile: Hostile, name: bytes) -> None:
    with Raw("127.0.0.1", hostile.broker.port) as raw:
        raw.send(wire.connect(5, name[:65_000], user=name, password=name))
        try:
            assert raw.expect(wire.CONNACK).reason in (0, 0x85)
            assert raw.ping() == []
        except Closed:
            pass


@pytest.mark.long
def test_kafka_is_served(hostile: Hostile) -> None:
    assert hostile.broker.kafka is not None
    librdkafka.create(hostile.broker.kafka, "still")
    librdkafka.send(hostile.broker.kafka, "still", [b"one"], timestamp=1, partition=0)
    assert librdkafka.watermarks(hostile.broker.kafka, "still") == (0, 1)
