"""Answers on their way out: what could not be sent at once, and a file that is too short."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
import trio

from leafcuttr.log.files.open_file import OpenFile
from leafcuttr.log.files.region import FileRegion
from leafcuttr.server.outbox import Outbox
from leafcuttr.server.transport import PlainTransport
from support.transports import BytesOnly


class Owner:
    file: OpenFile | None = None


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        one.setblocking(False)
        yield one, other


@pytest.mark.parametrize("kind", [PlainTransport, BytesOnly])
async def test_a_file_that_ends_too_early(
    tmp_path: Path, pair: tuple[socket.socket, socket.socket], kind: type
) -> None:
    """The connection ends: the answer's size has been sent already."""
    path = tmp_path / "file"
    path.write_bytes(b"x" * 100_000)
    region = FileRegion(OpenFile(str(path), 0, Owner()), 0, 100_001)
    outbox = Outbox(kind(pair[0]))
    outbox.add(bytearray(b"before"), [(6, region)])
    with pytest.raises(ConnectionError, match=r"ends at \d+, expected 100001"):
        await outbox.flush()


@pytest.mark.parametrize("kind", [PlainTransport, BytesOnly])
def test_what_could_not_be_sent_now_is_kept(
    tmp_path: Path, pair: tuple[socket.socket, socket.socket], kind: type
) -> None:
    """However often sending is tried: each byte leaves once, and `size` is what is left."""
    content = bytes(range(256)) * 8000
    path = tmp_path / "file"
    path.write_bytes(content)
    owner = Owner()
    outbox = Outbox(kind(pair[0]))
    outbox.add(bytearray(b"beforebehind"), [(6, FileRegion(OpenFile(str(path), 0, owner), 0, len(content)))])
    found, done = bytearray(), False
    while not done:
        done = outbox.flush_now()
        assert outbox.size == 0 if done else outbox.size > 0
        pair[1].setblocking(False)
        try:
            while data := pair[1].recv(1 << 20):
                found += data
        except BlockingIOError:
            pass
        assert len(found) + outbox.size == len(content) + 12
    assert found == b"before" + content + b"behind"


@pytest.mark.parametrize("at_once", [True, False])
async def test_whether_it_holds_files(
    tmp_path: Path, pair: tuple[socket.socket, socket.socket], at_once: bool
) -> None:
    """Until they are sent; what is small is read at once instead."""
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    file = OpenFile(str(tmp_path / "file"), 0, Owner())
    outbox = Outbox(PlainTransport(pair[0]))
    outbox.add(bytearray(b"first"), ())
    outbox.add(bytearray(b"second"), [(6, FileRegion(file, 0, 100))])
    assert not outbox.holds_files
    outbox.add(bytearray(b"third"), [(5, FileRegion(file, 0, 20_000))])
    outbox.add(bytearray(b"fourth"), ())
    assert outbox.holds_files
    if at_once:
        assert outbox.flush_now()
    else:
        await outbox.flush()
    assert not outbox.holds_files
    outbox.add(bytearray(b"fifth"), [(5, FileRegion(file, 0, 1 << 20))])
    assert not outbox.flush_now()
    assert outbox.holds_files, "the peer takes no more"


class Cold(FileRegion):
    """Not in the page cache until it is read in."""

    warm_files: ClassVar[set[OpenFile]] = set()
    seen: ClassVar[list[bool]] = []
    outbox: ClassVar[Outbox]

    def first(self, most: int) -> FileRegion:
        return Cold(self._file, self.position, min(self.length, most))

    def after(self, count: int) -> FileRegion | None:
        return None if count == self.length else Cold(self._file, self.position + count, self.length - count)

    def is_cached(self) -> bool:
        return self._file in self.warm_files

    def read_cached(self) -> bytearray | None:
        return super().read_cached() if self.is_cached() else None

    def warm(self) -> None:
        self.seen.append(self.outbox.warming)
        self.warm_files.add(self._file)

    def read(self) -> bytes:
        self.warm()
        return super().read()


@pytest.mark.parametrize("kind", [PlainTransport, BytesOnly])
async def test_what_the_disk_has_to_give_first_is_not_sent_now(
    tmp_path: Path, pair: tuple[socket.socket, socket.socket], kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is before it is. A worker reads it, and `warming` says so for as long."""
    (tmp_path / "file").write_bytes(bytes(20_000))
    outbox = Outbox(kind(pair[0]))
    for name, value in (("warm_files", set()), ("seen", []), ("outbox", outbox)):
        monkeypatch.setattr(Cold, name, value, raising=False)
    outbox.add(bytearray(b"before"), [(6, Cold(OpenFile(str(tmp_path / "file"), 0, Owner()), 0, 20_000))])
    assert not outbox.flush_now()
    assert pair[1].recv(100) == b"before"
    assert outbox.size == 20_000
    assert not outbox.warming
    await outbox.flush()
    assert Cold.seen == [True]
    assert not outbox.warming
    assert len(pair[1].recv(20_000, socket.MSG_WAITALL)) == 20_000


class TakesAll:
    """A transport whose peer is as fast as anybody."""

    def __init__(self, can_send_files: bool) -> None:
        self.can_send_files = can_send_files

    def send(self, data: bytes) -> int:
        return len(data)

    def send_file(self, region: FileRegion) -> int:
        return region.length


@pytest.mark.parametrize("can_send_files", [True, False])
async def test_others_have_their_turn_between_the_slices_of_a_long_answer(
    tmp_path: Path, can_send_files: bool
) -> None:
    (tmp_path / "file").write_bytes(bytes(4 << 20))
    outbox, turns = Outbox(TakesAll(can_send_files)), 0  # type: ignore[arg-type]
    outbox.add(bytearray(), [(0, FileRegion(OpenFile(str(tmp_path / "file"), 0, Owner()), 0, 4 << 20))])

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(others)
        await outbox.flush()
        nursery.cancel_scope.cancel()
    assert turns >= 2, "which of two tasks is first is trio's choice"
