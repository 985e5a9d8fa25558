"""A `Transport` over TLS: Python's ssl module on buffers in memory, between a socket and the connection.

Bytes go through OpenSSL in slices, because a buffer of it keeps the memory of its largest slice for as long as the
connection is open. Nothing waits but the handshake and `wait_writable`. `ssl` is imported with this module.

A record may hold no data but a change of keys (RFC 8446, 4.6.3), which takes as long as a record of 16 KiB, is some 27
bytes long, and has one of ours for an answer. OpenSSL handles any number of them in one call and keeps the answers, so
records are counted before it gets them: a few at once, not many without data, and not many answers that the peer does
not read.
"""

import socket
import ssl
from math import inf
from typing import Final

import trio

from leafcuttr.log.log import FileRegion
from leafcuttr.server.arrivals import extended, wait_for_arrival
from leafcuttr.server.transport import PlainTransport, Sendable

_SLICE: Final = 32 << 10
"""What is encrypted at once: two records of TLS (RFC 8446, 5.1)."""
_MOST: Final = 256 << 10
"""What one `send` takes: what other connections wait for."""
_LEAST: Final = 17 << 10
"""A record and its header (RFC 8446, 5.2)."""
_RECEIVE: Final = 128 << 10
"""What is received at once for a connection that takes so much: each time that OpenSSL has too little it costs as much
as a record."""
_RECEIVES: Final = 8
"""In one call of `receive_into`, as long as each finds something: a round of the reactor costs as much as ten records
of 2 KiB."""
_HEADER: Final = 5
_APPLICATION_DATA: Final = 23
"""The type of encrypted records (RFC 8446, 5.2)."""
_RECORDS: Final = 128
"""That OpenSSL gets at once: some milliseconds, if all of them change keys. A receive has as many of 1000 bytes."""
_WITHOUT_DATA: Final = 64
"""Records of a peer without data in between. One that sends a record of 16 KiB in pieces does not get there."""
_UNREAD: Final = 16 << 10
"""Answers to changes of keys that a peer does not read."""
_scratch: Final = bytearray(_RECEIVE)
"""Encrypted bytes between a socket and OpenSSL, which copies them: one buffer for all connections of a process."""
_view: Final = memoryview(_scratch)


def _is_encrypted(flight: bytes) -> bool:
    """Whether one of these records of a handshake is: the keys of TLS 1.3 are agreed upon, and the server has signed
    (RFC 8446, 2). Neither a HelloRetryRequest nor an answer of TLS 1.2 has such a record."""
    at = 0
    while at < len(flight):
        if flight[at] == _APPLICATION_DATA:
            return True
        at += _HEADER + int.from_bytes(flight[at + 3 : at + _HEADER], "big")
    return False


class TlsTransport:
    """See `Transport`. `handshake` comes first."""

    can_send_files = False

    def __init__(self, sock: socket.socket, context: ssl.SSLContext) -> None:
        """`sock` does not block."""
        self._socket = sock
        self._plain = PlainTransport(sock)
        self.descriptor = sock.fileno()
        self._in = ssl.MemoryBIO()
        self._out = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=True)
        self._left = memoryview(b"")
        self._promised = 0
        self._kept = b""  # received, and not given to OpenSSL: it begins with a header
        self._until_header = 0  # bytes, from the next one that is received
        self._without_data = 0

    async def handshake(self, limiter: trio.CapacityLimiter, until: float = inf) -> None:
        """Raises OSError: ssl.SSLError for what is wrong with it, ConnectionError if the peer has gone. Raises
        trio.TooSlowError if the peer takes longer than until then (trio's time)."""
        uses_key, ends = True, extended(until)
        while True:
            # The client speaks first.
            if not self._has_more:
                await wait_for_arrival(self.descriptor, ends)
            try:
                if not self._receive(_LEAST):
                    raise ConnectionResetError("the peer has gone")
            except BlockingIOError:
                continue
            is_over = await trio.to_thread.run_sync(self._step, limiter=limiter) if uses_key else self._step()
            flight = await self._send_all(until)
            if is_over:
                break
            if flight:  # an answer is waited for; one that comes byte by byte has no longer
                ends = extended(until)
            # What is left of TLS 1.3 then is the client's Finished, if it is not asked for a certificate: it takes less
            # time than the way to a thread.
            uses_key = self._tls.context.verify_mode is not ssl.CERT_NONE or not _is_encrypted(flight)
        self._without_data = 0

    def _step(self) -> bool:
        """Whether the handshake is over. In a worker thread as long as it may use a key, which takes the time."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    async def tell_why(self) -> None:
        """Send the alert that OpenSSL has for a handshake that failed, if the peer takes it now."""
        try:
            self._left = memoryview(self._out.read())
            self._push()
        except OSError:
            return

    async def _send_all(self, until: float) -> bytes:
        """What OpenSSL has to say; returns it."""
        said = self._out.read()
        self._left = memoryview(said)
        while self._left:
            try:
                self._push()
            except BlockingIOError:
                with trio.fail_at(extended(until)):
                    await trio.lowlevel.wait_writable(self._socket)
        return said

    @property
    def peer_certificate(self) -> bytes | None:
        """The certificate of the peer in DER, if it has shown one that is trusted."""
        return self._tls.getpeercert(True)

    @property
    def tls(self) -> ssl.SSLObject:
        """For looking at."""
        return self._tls

    # Receiving

    @property
    def buffered(self) -> int:
        found = self._tls.pending() + self._in.pending
        return found + len(self._kept) if self._kept and self._has_more else found

    @property
    def _has_more(self) -> bool:
        """Whether `_receive` need not wait for the socket."""
        return len(self._kept) >= _HEADER

    def receive_into(self, buffer: memoryview, /) -> int:
        read, size, total, receives = self._tls.read, len(buffer), 0, 1
        while total < size:
            try:
                # One record of TLS at most.
                count = read(size - total, buffer[total:])
            except ssl.SSLWantReadError:
                if total:
                    if receives < _RECEIVES and size - total >= _RECEIVE and self._receives_more():
                        receives += 1
                        continue
                    break
                self._answer_peer()
                if self._without_data > _WITHOUT_DATA:
                    raise ConnectionAbortedError("the peer sends records of TLS without data") from None
                if self._out.pending > _UNREAD:
                    raise ConnectionAbortedError(
                        "the peer does not read the answers to its new keys"
                    ) from None
                if not self._receive(size):
                    break  # without close_notify: frames have lengths, so nothing can be cut off unnoticed
                continue
            except ssl.SSLError:
                self._answer_peer()
                raise
            if not count:
                break  # the peer has said that it sends no more
            total += int(count)
        if total:
            self._without_data = 0
        return total

    def _receives_more(self) -> bool:
        """Whether more has arrived while the last was decrypted. An error comes again, or is the end of the stream
        then. Not of more records than OpenSSL gets at once."""
        try:
            return not self._has_more and self._receive(_RECEIVE) > 0
        except OSError:
            return False

    def _receive(self, wanted: int) -> int:
        """Take about so much of what has arrived to OpenSSL; how many bytes, 0 at the end of the stream. Raises
        BlockingIOError."""
        if self._kept:
            return self._receive_behind(self._kept, wanted)
        count = self._socket.recv_into(_view, max(min(wanted, _RECEIVE), _LEAST))
        self._give(count)
        return count

    def _receive_behind(self, kept: bytes, wanted: int) -> int:
        """The same, where something is kept; as long as that is more than a part of a header nothing else."""
        end = count = len(kept)
        _view[:end] = kept
        if not self._has_more:
            count = self._socket.recv_into(_view[end:], max(min(wanted, _RECEIVE), _LEAST) - end)
            end += count
        self._kept = b""
        self._give(end)
        return count

    def _give(self, end: int) -> None:
        """Give so much of the buffer to OpenSSL, and keep what is more than it gets at once."""
        at, records, last = self._until_header, 0, end - _HEADER
        while at <= last and records < _RECORDS:
            at += _HEADER + (_scratch[at + 3] << 8 | _scratch[at + 4])
            records += 1
        self._without_data += records
        if at < end:  # more records than that, or a part of a header
            self._kept, self._until_header, end = bytes(_view[at:end]), 0, at
        else:
            self._until_header = at - end
        self._in.write(_view[:end])

    def _answer_peer(self) -> None:
        """An alert, or the answer to a change of keys, goes out with the next bytes if not now."""
        if self._out.pending and not self._left:
            self._left = memoryview(self._out.read())
            try:
                self._push()
            except OSError:
                return

    # Sending

    def send(self, data: Sendable, /) -> int:
        sent = 0
        with memoryview(data) as view:
            most = min(len(view), _MOST)
            while sent < most:
                try:
                    sent += self._send_slice(view[sent : sent + _SLICE])
                except BlockingIOError:
                    if sent:
                        break
                    raise
        return sent

    def _send_slice(self, data: memoryview) -> int:
        """Encrypt it and send it. What the socket does not take is kept: the caller comes again with the same bytes,
        which are encrypted already, and gets to know that they have gone."""
        if self._left:
            self._push()
        if not self._promised:
            self._promised = self._tls.write(data)
            self._left = memoryview(self._out.read())
            self._push()
        promised, self._promised = self._promised, 0
        return promised

    def _push(self) -> None:
        """Raises BlockingIOError while some is left."""
        while self._left:
            self._left = self._left[self._socket.send(self._left) :]

    def send_file(self, region: FileRegion) -> int:
        raise NotImplementedError("the bytes of a file have to be encrypted")

    async def wait_writable(self) -> None:
        await self._plain.wait_writable()

    # The rest is that of the socket

    @property
    def acknowledged(self) -> int:
        return self._plain.acknowledged

    @property
    def peer_gone(self) -> bool:
        return self._plain.peer_gone

    def half_close(self) -> None:
        """With close_notify, so that the peer knows that nothing is missing (RFC 8446, 6.1)."""
        try:
            self._tls.unwrap()
        except ssl.SSLWantReadError:  # the peer's own has not come
            self._answer_peer()
        except (ssl.SSLError, ValueError):
            pass
        self._plain.half_close()

    def abort(self) -> None:
        self._plain.abort()

    def close(self) -> None:
        self._plain.close()
        self.descriptor = -1
