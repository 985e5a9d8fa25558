"""A large request takes its own size of memory, once, and gives it back."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from leafcuttr.server.receive import SMALL_FRAME, ReceiveBuffer
from leafcuttr.wire.batch import HEADER_SIZE
from leafcuttr.wire.records import Record, encode_batch
from support.broker_process import running_broker
from support.logs import NOW
from support.peer import framed, metadata_request, produce_request, request_bytes
from support.waiting import until

SIZE = 100_000_000
PRODUCE, METADATA = 9, 12


def peak_mb(pid: int) -> float:
    """The most that the process ever had in memory."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1000


def ask(sock: socket.socket, request: bytes) -> bytes:
    sock.sendall(framed(request))
    size = int.from_bytes(sock.recv(4, socket.MSG_WAITALL), "big")
    return sock.recv(size, socket.MSG_WAITALL)


@pytest.mark.alone
def test_a_produce_of_100_mb_takes_100_mb(tmp_path: Path) -> None:
    settings = {"message.max.bytes": str(SIZE + 10_000)}
    with (
        running_broker(tmp_path, settings) as broker,
        socket.create_connection((broker.host, broker.port), 30) as sock,
    ):
        ask(sock, request_bytes(metadata_request("t"), METADATA))
        small = request_bytes(produce_request("t", encode_batch([Record(0, NOW, None, b"v")])), PRODUCE)
        ask(sock, small)
        before = broker.resident_mb()
        batch = encode_batch([Record(0, NOW, None, bytes(SIZE))])
        ask(sock, request_bytes(produce_request("t", batch), PRODUCE))
        ask(sock, small)
        stored = next(broker.data.glob("t-0/*.log")).stat().st_size
        assert stored > SIZE + 2 * HEADER_SIZE
        assert peak_mb(broker.process.pid) < before + 1.15 * SIZE / 1e6
        # The answer may be here before the broker has let go of the request.
        until(lambda: broker.resident_mb() < before + 10, "the memory of the request to be given back")


def fill(buffer: ReceiveBuffer, data: bytes) -> None:
    view = memoryview(data)
    while view:
        room = buffer.free_space()
        count = min(len(room), len(view))
        room[:count] = view[:count]
        buffer.received(count)
        view = view[count:]


def test_a_large_buffer_grows_under_a_view_that_somebody_holds() -> None:
    buffer = ReceiveBuffer(100 << 20)
    body = bytes(range(256)) * (20 << 12)
    frame = framed(body)
    fill(buffer, frame[: 6 << 20])
    held = buffer.view[:100]
    fill(buffer, frame[6 << 20 :])
    at, end = buffer.next_frame() or (0, 0)
    assert buffer.view[at:end] == body
    assert held == frame[:100]
    buffer.give_back()
    assert buffer.capacity == SMALL_FRAME
    fill(buffer, framed(b"next"))
    at, end = buffer.next_frame() or (0, 0)
    assert buffer.view[at:end] == b"next"


def test_what_has_begun_to_arrive_behind_a_large_frame_stays() -> None:
    buffer = ReceiveBuffer(100 << 20)
    fill(buffer, framed(bytes(20 << 20)))
    assert buffer.next_frame() is not None
    fill(buffer, framed(bytes(1 << 20)) + framed(b"next")[:5])
    assert buffer.next_frame() is not None
    assert buffer.next_frame() is None
    buffer.give_back()
    assert buffer.capacity == SMALL_FRAME
    fill(buffer, framed(b"next")[5:])
    at, end = buffer.next_frame() or (0, 0)
    assert buffer.view[at:end] == b"next"
