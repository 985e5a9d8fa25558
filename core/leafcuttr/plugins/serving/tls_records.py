"""Between a socket and trio's SSLStream: records of TLS are counted before OpenSSL gets them, as in
`server.tls_transport`, which says why.
"""

from typing import Final

import trio
from trio.abc import Stream

_HEADER: Final = 5
_RECORDS: Final = 128
"""That OpenSSL gets at once."""
_WITHOUT_DATA: Final = 64
"""Records of a client behind its handshake, without data in between."""


class CountedRecords(Stream):
    """The stream below TLS. `without_data` is set to 0 for each piece of data that comes out above."""

    __slots__ = ("_is_limited", "_kept", "_transport", "_until_header", "without_data")

    def __init__(self, transport: Stream) -> None:
        self._transport = transport
        self._kept = b""
        self._until_header = 0
        self._is_limited = False
        self.without_data = 0

    def limit(self) -> None:
        """The handshake is over."""
        self._is_limited = True
        self.without_data = 0

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Raises BrokenResourceError where the client sends too many records without data."""
        if self._is_limited and self.without_data > _WITHOUT_DATA:
            raise trio.BrokenResourceError("the client sends records of TLS without data")
        if len(self._kept) >= _HEADER:
            await trio.lowlevel.checkpoint()
            return self._taken(self._kept)
        while True:
            received = await self._transport.receive_some(max_bytes)
            if not received:
                return b""
            found = self._taken(self._kept + received)
            if found:
                return found

    def _taken(self, data: bytes) -> bytes:
        """What of it OpenSSL gets now; the rest is kept, and begins with a header."""
        at, records, last = self._until_header, 0, len(data) - _HEADER
        while at <= last and records < _RECORDS:
            at += _HEADER + (data[at + 3] << 8 | data[at + 4])
            records += 1
        self.without_data += records
        if at < len(data):
            self._kept, self._until_header = data[at:], 0
            return data[:at]
        self._kept, self._until_header = b"", at - len(data)
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._transport.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._transport.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._transport.aclose()
