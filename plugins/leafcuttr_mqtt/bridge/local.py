"""The side of this broker: a connection that ends in the same process. What the broker sees of it is a byte stream as
of any other client."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import trio

from leafcuttr_sdk.serving import ByteStream, Peer

if TYPE_CHECKING:
    import ssl

LISTENER: Final = "mqtt.bridge"
_MOST: Final = 256 * 1024
"""Bytes that wait in one direction."""


class _Pipe:
    """One direction. One task may put while another one takes."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._closed = False
        self._changed = trio.lowlevel.ParkingLot()

    def put_now(self, data: bytes | bytearray | memoryview) -> int:
        """As much as there is space for. Raises trio.BrokenResourceError where nobody takes it any more."""
        if self._closed:
            raise trio.BrokenResourceError
        count = min(len(data), _MOST - len(self._data))
        if count > 0:
            self._data += memoryview(data)[:count]
            self._changed.unpark_all()
        return max(0, count)

    async def put(self, data: bytes | bytearray | memoryview) -> None:
        rest = memoryview(data)
        while True:
            rest = rest[self.put_now(rest) :]
            if not rest:
                break
            await self._changed.park()
        await trio.lowlevel.checkpoint()

    async def take(self, most: int = _MOST) -> bytes:
        """Empty: it has ended."""
        while not self._data and not self._closed:
            await self._changed.park()
        await trio.lowlevel.checkpoint()
        data = bytes(self._data[:most])
        del self._data[:most]
        self._changed.unpark_all()
        return data

    def close(self) -> None:
        self._closed = True
        self._changed.unpark_all()

    @property
    def closed(self) -> bool:
        return self._closed


class LocalStream(ByteStream):
    """The broker's end. `to_broker` and `from_broker` are the bridge's."""

    __slots__ = ("_busy", "_name", "from_broker", "to_broker")

    def __init__(self, name: str) -> None:
        self._name = name
        self._busy = False
        self.to_broker = _Pipe()
        self.from_broker = _Pipe()

    def end(self) -> None:
        """The bridge has gone: what it has sent is still read."""
        self.to_broker.close()
        self.from_broker.close()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        return await self.to_broker.take(max_bytes or _MOST)

    def send_now(self, data: bytes | bytearray | memoryview) -> int:
        return self.from_broker.put_now(data)

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self.from_broker.put(data)

    async def wait_send_all_might_not_block(self) -> None:
        await trio.lowlevel.checkpoint()

    async def send_eof(self) -> None:
        raise NotImplementedError

    async def aclose(self) -> None:
        self.end()
        await trio.lowlevel.checkpoint()

    @property
    def peer(self) -> Peer:
        return Peer(f"bridge {self._name}", 0)

    @property
    def listener(self) -> str:
        return LISTENER

    @property
    def peer_certificate(self) -> Mapping[str, Any] | None:
        return None

    @property
    def peer_certificate_der(self) -> bytes | None:
        return None

    @property
    def tls(self) -> "ssl.SSLObject | None":
        return None

    @property
    def busy(self) -> bool:
        return self._busy

    @busy.setter
    def busy(self, busy: bool) -> None:
        self._busy = busy
