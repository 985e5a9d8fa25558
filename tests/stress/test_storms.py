"""Crowds of connections: opened and reset, left half open, in other protocols, more than allowed, all at once after a
restart. A neighbour is served throughout, and nothing is left of the crowd."""

from __future__ import annotations

import socket
import struct
from contextlib import ExitStack
from pathlib import Path

import pytest
import trio

from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from leafcuttr.wire.messages.metadata import MetadataRequest
from support import librdkafka
from support.broker_process import BrokerProcess, running_broker, start_broker
from support.crowds import Neighbour, many_descriptors, sockets
from support.logs import batch
from support.peer import Peer, framed, produce_request, request_bytes
from support.waiting import free_port, until
from support.wire_client import WireClient

HTTP = b"GET /health HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n"
TLS = bytes.fromhex("16030100f8010000f40303") + bytes(240)
API_VERSIONS = framed(request_bytes(ApiVersionsRequest(), 0))
METADATA = framed(request_bytes(MetadataRequest(topics=None), 12))


def connected(broker: BrokerProcess) -> socket.socket:
    return socket.create_connection((broker.host, broker.port), 30)


def reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


STORMS = {
    "nothing": b"",
    "half a size": b"\0\0",
    "half a request": METADATA[:20],
    "a request": METADATA,
    "many requests": METADATA * 20,
    "records": framed(request_bytes(produce_request("storm", batch(size=2000)), 9)),
    "half of the records": framed(request_bytes(produce_request("storm", batch(size=2000)), 9))[:1000],
    "http": HTTP,
    "tls": TLS,
}


@pytest.mark.alone
@pytest.mark.parametrize("each", [60, pytest.param(600, marks=pytest.mark.long)])
def test_connections_that_are_opened_and_reset(tmp_path: Path, each: int) -> None:
    with running_broker(tmp_path) as broker:
        for topic in ("neighbour", "storm"):
            librdkafka.create(broker.address, topic)
        with Neighbour(broker.address) as neighbour:
            for data in STORMS.values():  # what each needs is imported
                with connected(broker) as sock:
                    sock.sendall(data)
            memory = broker.resident_mb()
            for number in range(each):
                for data in STORMS.values():
                    sock = connected(broker)
                    sock.sendall(data)
                    reset(sock)
                if number % 50 == 49:  # the most that is open at once is the same on a slow machine
                    until(lambda: sockets(broker) < 50, "this part of the storm to be let go")
            until(lambda: sockets(broker) < 20, "the last of the storm to be let go")
            grown = broker.resident_mb() - memory
        print(f"p99 of the neighbour: {neighbour.p99_ms():.1f} ms")
        assert grown < 30, f"{grown} MB"
        assert "Traceback" not in broker.log
        assert len(broker.log.splitlines()) < 20, broker.log[:3000]


def test_half_open_connections_and_other_protocols_hold_up_nobody(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker, many_descriptors(500) as count, ExitStack() as open_ones:
        librdkafka.create(broker.address, "neighbour")
        with Neighbour(broker.address):
            for number in range(count):
                sock = open_ones.enter_context(connected(broker))
                sock.sendall((b"", b"\0\0", METADATA[:20])[number % 3])
            for data in (HTTP, TLS):
                with connected(broker) as sock:
                    sock.sendall(data)
                    assert sock.recv(1) == b""  # closed, without a word that is not Kafka's
        assert broker.log.count("it looks like HTTP") == 1
        assert broker.log.count("it looks like TLS") == 1
        assert "Traceback" not in broker.log


def test_max_connections_is_reached_and_relieved(tmp_path: Path) -> None:
    with running_broker(tmp_path, {"max.connections": "30"}) as broker, ExitStack() as open_ones:
        socks = [
            open_ones.enter_context(connected(broker)) for _ in range(80)
        ]  # 50 wait in the kernel's queue
        for sock in socks:
            sock.sendall(API_VERSIONS)
        for sock in socks[:30]:
            assert sock.recv(4)
        assert sockets(broker) < 30 + 50
        for number, sock in enumerate(socks):  # each that goes lets another in
            sock.settimeout(30)
            if number >= 30:
                assert sock.recv(4), number
            reset(sock)
        with WireClient(broker.address) as client:
            assert client.ask(MetadataRequest(topics=None), 12).brokers
        assert broker.log.count("accepting no more than") == 1
        assert "Traceback" not in broker.log


@pytest.mark.parametrize("wanted", [300, pytest.param(2000, marks=pytest.mark.long)])
async def test_all_clients_come_back_at_once_after_a_restart(tmp_path: Path, wanted: int) -> None:
    """Each produces a record before the broker is killed and one after; each is answered, and all are there."""
    port = free_port()
    settings = {"listeners": f"PLAINTEXT://127.0.0.1:{port}"}
    acknowledged = 0

    async def client(ready: trio.MemorySendChannel[None], again: trio.Event) -> None:
        nonlocal acknowledged
        for turn in range(2):
            while True:
                try:
                    async with Peer(await trio.open_tcp_stream("127.0.0.1", port)) as peer:
                        assert (await peer.ask(ApiVersionsRequest(), 0)).api_keys
                        answer = await peer.ask(produce_request("t", batch()), 9)
                        code = answer.responses[0].partition_responses[0].error_code
                        assert code == 0, code
                        acknowledged += 1
                        await ready.send(None)
                        if turn:
                            return
                        await again.wait()
                        break
                except (OSError, ConnectionError, trio.BrokenResourceError):
                    await trio.sleep(0.05)  # as clients do: reconnect.backoff.ms

    with many_descriptors(wanted) as count:
        broker = start_broker(tmp_path, settings)
        try:
            await trio.to_thread.run_sync(librdkafka.create, broker.address, "t")
            await trio.to_thread.run_sync(librdkafka.create, broker.address, "neighbour")
            done, ready = trio.open_memory_channel[None](0)
            again = trio.Event()
            async with trio.open_nursery() as nursery:
                for _ in range(count):
                    nursery.start_soon(client, done, again)
                with trio.fail_after(120):
                    for _ in range(count):
                        await ready.receive()
                broker.process.kill()
                broker.process.wait()
                again.set()
                broker = await trio.to_thread.run_sync(start_broker, tmp_path, settings)
                neighbour = Neighbour(broker.address)
                with neighbour, trio.fail_after(120):
                    for _ in range(count):
                        await ready.receive()
            print(f"{count} clients, p99 of the neighbour: {neighbour.p99_ms():.1f} ms")
            assert acknowledged == 2 * count
            with WireClient(broker.address) as wire:
                assert wire.list_offset("t", -1).offset == acknowledged
            assert broker.stop() == 0
            assert "Traceback" not in broker.log
        finally:
            if broker.alive():
                broker.process.kill()
            broker.process.wait()
