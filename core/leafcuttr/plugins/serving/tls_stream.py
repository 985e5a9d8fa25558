"""A connection over TLS, as the handler of a plugin has it. `ssl` is imported with this module."""

import ssl
from collections.abc import Mapping
from typing import Any, Final, cast

import trio
from trio.abc import HalfCloseableStream

from leafcuttr.plugins.serving.stream import PIECE, SocketByteStream
from leafcuttr.plugins.serving.tls_records import CountedRecords
from leafcuttr_sdk.serving import ByteStream, Peer

_FAREWELL_S: Final = 1.0
_NO_TLS: Final = frozenset(
    {"HTTP_REQUEST", "WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "HTTPS_PROXY_REQUEST"}
)


class TlsByteStream(ByteStream, HalfCloseableStream):
    """See `leafcuttr_sdk.ByteStream`. The handshake is to be done first."""

    __slots__ = ("_records", "_tls", "_transport")

    def __init__(self, transport: SocketByteStream, context: ssl.SSLContext) -> None:
        self._transport = transport
        self._records = CountedRecords(transport)
        self._tls: trio.SSLStream[CountedRecords] = trio.SSLStream(self._records, context, server_side=True)

    @property
    def peer(self) -> Peer:
        return self._transport.peer

    @property
    def listener(self) -> str:
        return self._transport.listener

    @property
    def peer_certificate(self) -> Mapping[str, Any] | None:
        return self._tls.getpeercert() or None

    @property
    def peer_certificate_der(self) -> bytes | None:
        found: bytes | None = self._tls.getpeercert(True)
        return found

    @property
    def tls(self) -> ssl.SSLObject:
        return cast("ssl.SSLObject", self._tls)  # trio hands on every attribute of it

    @property
    def busy(self) -> bool:
        return self._transport.busy

    @busy.setter
    def busy(self, busy: bool) -> None:
        self._transport.busy = busy

    async def do_handshake(self) -> None:
        """Raises BrokenResourceError; see `why_no_tls`."""
        await self._tls.do_handshake()
        self._records.limit()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        data = bytes(await self._tls.receive_some(max_bytes))
        self._records.without_data = 0
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        # What is encrypted is kept until it is sent: not all of it at once.
        with memoryview(data).cast("B") as view:
            for at in range(0, len(view) or 1, PIECE):
                await self._tls.send_all(view[at : at + PIECE])

    async def wait_send_all_might_not_block(self) -> None:
        await self._tls.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        raise NotImplementedError("TLS cannot end one direction only")

    async def aclose(self) -> None:
        """Say that the connection ends (close_notify), if the client takes it soon."""
        with trio.move_on_after(_FAREWELL_S):
            await self._tls.aclose()
        self._transport.close()


def why_no_tls(error: trio.BrokenResourceError) -> str | None:
    """What was wrong with a handshake; None if the client has just gone."""
    cause = error.__cause__
    if not isinstance(cause, ssl.SSLError) or isinstance(cause, ssl.SSLEOFError | ssl.SSLSyscallError):
        return None
    reason = cause.reason or str(cause)
    return f"{'the client speaks no TLS, ' if reason in _NO_TLS else ''}{reason}"
