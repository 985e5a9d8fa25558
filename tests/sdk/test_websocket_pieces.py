"""Messages cut into pieces: wsproto reads the same bytes from them, and refuses what it refuses without."""

from __future__ import annotations

import os
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping
from wsproto.utilities import RemoteProtocolError

from leafcuttr_sdk._websocket_pieces import Pieces

CONTINUATION, TEXT, BINARY, CLOSE, PING = 0, 1, 2, 8, 9
MASK = bytes.fromhex("01f0aa55")


def frame(kind: int, payload: bytes = b"", *, final: bool = True, form: int = 0) -> bytes:
    """`form` 126 and 127 are longer lengths than need be, where that is allowed."""
    size = len(payload)
    head = bytes((final << 7 | kind,))
    if form == 127 or size >= 1 << 16:
        head += b"\xff" + size.to_bytes(8, "big")
    elif form == 126 or size > 125:
        head += b"\xfe" + size.to_bytes(2, "big")
    else:
        head += bytes((0x80 | size,))
    return head + MASK + bytes(byte ^ MASK[at & 3] for at, byte in enumerate(payload))


def all_of(pieces: Pieces, data: bytes) -> bytes:
    """What comes of these bytes, with as many calls as that takes."""
    found = pieces.feed(data)
    while pieces.more:
        found += pieces.feed(b"")
    return found


class Read:
    """What a server reads: the bytes of messages, the payloads of pings, and what it refuses."""

    def __init__(self, pieces: Pieces | None = None) -> None:
        self._connection = Connection(ConnectionType.SERVER)
        self._pieces = pieces
        self.data = b""
        self.pings: list[bytes] = []
        self.closed = self.refused = False
        self.messages: list[int] = []
        """The lengths of those that are whole."""

    def feed(self, data: bytes) -> Read:
        if self.refused:
            return self
        if self._pieces is not None:
            data = all_of(self._pieces, data)
        try:
            if data:
                self._connection.receive_data(data)
            for event in self._connection.events():
                if isinstance(event, BytesMessage):
                    self.data += bytes(event.data)
                    if event.message_finished:
                        self.messages.append(len(event.data))
                elif isinstance(event, Ping):
                    self.pings.append(bytes(event.payload))
                elif isinstance(event, CloseConnection):
                    # It says so in this way too where it refuses something.
                    self.closed = event.code == 1000
                    self.refused = not self.closed
        except RemoteProtocolError:
            self.refused = True
        return self


messages = st.lists(
    st.one_of(
        st.tuples(st.just("ping"), st.binary(max_size=125)),
        st.tuples(st.just("message"), st.lists(st.binary(max_size=300), min_size=1, max_size=4)),
    ),
    max_size=6,
)


@given(messages, st.lists(st.integers(0, 3000)), st.booleans())
def test_the_same_bytes_come_however_they_are_cut(
    sent: list[tuple[str, bytes | list[bytes]]], cuts: list[int], closes: bool
) -> None:
    whole, stream, pings = b"", b"", []
    for _, what in sent:
        if isinstance(what, bytes):
            whole += frame(PING, what)
            pings.append(what)
            continue
        for number, part in enumerate(what, 1):
            whole += frame(BINARY if number == 1 else CONTINUATION, part, final=number == len(what))
            if number < len(what):
                whole += frame(PING, b"between")
                pings.append(b"between")
        stream += b"".join(what)
    if closes:
        whole += frame(CLOSE, b"\x03\xe8")
    read, plain = Read(Pieces()), Read()
    at = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    for start, end in pairwise(at):
        read.feed(whole[start:end])
        plain.feed(whole[start:end])
        # Nothing of a message is kept: what has come can be read.
        assert read.data == plain.data
    assert (read.data, read.pings, read.closed, read.refused) == (stream, pings, closes, False)


def test_a_part_of_a_message_is_a_whole_message() -> None:
    read = Read(Pieces())
    data = os.urandom(100_000)
    sent = frame(BINARY, data)
    for start in range(0, len(sent), 30_000):
        read.feed(sent[start : start + 30_000])
    assert read.data == data
    assert len(read.messages) == 4
    large = os.urandom(70_000)
    read.feed(frame(BINARY, large, final=False))
    assert (read.data, len(read.messages)) == (data + large, 5)


def test_empty_frames_are_left_out() -> None:
    pieces = Pieces()
    assert pieces.feed(frame(BINARY, final=False)) == b""
    assert all_of(pieces, frame(CONTINUATION, final=False) * 1000) == b""
    assert pieces.feed(frame(CONTINUATION, b"x")) == frame(BINARY, b"x")
    assert pieces.feed(frame(BINARY)) == b""


def test_many_frames_come_in_turns() -> None:
    """What is left waits for the next calls, with what comes meanwhile behind it."""
    pieces, ping = Pieces(), frame(PING, b"a")
    assert pieces.feed(ping * 100) == ping * 100 and not pieces.more
    assert pieces.feed(ping * 250 + ping[:3]) == ping * 100 and pieces.more
    assert pieces.feed(ping[3:] + ping[:2]) == ping * 100 and pieces.more
    assert pieces.feed(b"") == ping * 51 and not pieces.more
    assert pieces.feed(ping[2:]) == ping and not pieces.more


@pytest.mark.parametrize("form", [0, 126, 127])
@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536])
def test_lengths(size: int, form: int) -> None:
    read, plain = Read(Pieces()), Read()
    for one in (read, plain):
        one.feed(frame(BINARY, bytes(size), form=form)).feed(frame(PING, b"p"))
    assert read.refused == plain.refused
    assert (read.data, read.pings) == (plain.data, plain.pings)
    assert form or (read.data, read.pings) == (bytes(size), [b"p"])


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(frame(CONTINUATION, b"x"), id="a continuation of nothing"),
        pytest.param(frame(BINARY, b"x", final=False) + frame(BINARY, b"y"), id="within a message"),
        pytest.param(frame(BINARY, b"", final=False) + frame(BINARY, b"y"), id="within an empty message"),
        pytest.param(frame(BINARY, b"x", final=False) + frame(TEXT, b"y"), id="text within a message"),
        pytest.param(frame(3, b"x"), id="a reserved kind"),
        pytest.param(frame(11, b"x"), id="a reserved control frame"),
        pytest.param(b"\xc2" + frame(BINARY, b"x")[1:], id="a reserved bit"),
        pytest.param(b"\x82\x01x", id="not masked"),
        pytest.param(frame(PING, b"x", final=False), id="a ping in parts"),
        pytest.param(frame(PING, bytes(126)), id="a long ping"),
        pytest.param(b"\x82\xff" + b"\xff" * 8 + MASK, id="2^63 bytes"),
    ],
)
@pytest.mark.parametrize("step", [1, 1000])
def test_what_is_refused_without_is_refused_with_them(bad: bytes, step: int) -> None:
    for one in (Read(), Read(Pieces())):
        one.feed(frame(BINARY, b"before"))
        for start in range(0, len(bad), step):
            one.feed(bad[start : start + step])
        assert one.refused
        assert one.data.startswith(b"before")


def test_text_goes_on_as_it_is() -> None:
    pieces = Pieces()
    both = frame(TEXT, b"abc", final=False) + frame(CONTINUATION, b"d")
    assert pieces.feed(both) == both
