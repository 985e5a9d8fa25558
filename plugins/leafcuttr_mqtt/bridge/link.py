"""One connection to the other broker, and beside it one to this one: reads both, and gives the packets to `Relay`."""

import ssl
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_mqtt.bridge.local import LocalStream
from leafcuttr_mqtt.bridge.options import Address, Bridge
from leafcuttr_mqtt.bridge.relay import Cleared, NotAccepted, Relay, Stale
from leafcuttr_mqtt.packets.errors import PacketError
from leafcuttr_mqtt.packets.reader import PacketReader

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

CONNECT_S: Final = 20.0
"""For the connection, TLS and CONNACK together."""
SEND_S: Final = 30.0
"""How long a side may take nothing of what is sent to it."""
_FAREWELL_S: Final = 1.0
_READ_BYTES: Final = 64 * 1024
_LARGEST: Final = 268_435_460
"""What the protocol allows; nothing is allocated for it before it comes."""


class Link:
    """`run` it once. Afterwards `why` says how it ended."""

    def __init__(
        self,
        bridge: Bridge,
        address: Address,
        tls: ssl.SSLContext | None,
        relay: Relay,
        serve_here: "Callable[[LocalStream], Awaitable[None]]",
        came_up: "Callable[[], None]",
        why_not: "Callable[[], str | None]",
        complain: "Callable[[str], None]",
    ) -> None:
        """`serve_here` is what this broker serves a client with; `why_not` is asked once the other broker has accepted
        the connection."""
        self._why_not: Final = why_not
        self._complain: Final = complain
        self._bridge: Final = bridge
        self._address: Final = address
        self._tls: Final = tls
        self.relay: Final = relay
        self._serve_here: Final = serve_here
        self._came_up: Final = came_up
        self._here: Final = LocalStream(bridge.name)
        self._scope: Final = trio.CancelScope()
        self._sending: Final = trio.Lock()
        self._there: trio.abc.Stream | None = None
        self._last_sent = self._last_heard = self._last_sent_here = 0.0
        self._told = False
        self.why = ""
        self.refused: NotAccepted | None = None
        self.stale = False

    async def run(self, *, mark: bool, clear: bool = False, cleared: bool = False) -> None:
        """Until the connection ends. It raises nothing for what the other side does. For its arguments see
        `Relay.start`. `stale` says that the same with `clear` has to come first."""
        with trio.move_on_after(CONNECT_S) as limit:
            self._there = await self._open()
        if self._there is None:
            self.why = (
                self.why or f"no connection within {CONNECT_S:g} s" if limit.cancelled_caught else self.why
            )
            return
        try:
            async with trio.open_nursery() as nursery:
                if not clear:
                    nursery.start_soon(self._serve)
                try:
                    with self._scope:
                        async with trio.open_nursery() as tasks:
                            tasks.start_soon(self._read_there)
                            if not clear:
                                tasks.start_soon(self._read_here)
                            tasks.start_soon(self._watch)
                            self.relay.start(mark=mark, clear=clear, cleared=cleared)
                            await self._flush()
                finally:
                    # The broker's side is not cancelled: it ends as a connection that its client has left.
                    self._here.end()
        finally:
            await self._close()

    async def _open(self) -> trio.abc.Stream | None:
        host, port = self._address
        try:
            tcp = await trio.open_tcp_stream(host, port)
        except OSError as error:
            self.why = f"no connection: {error.strerror or error}"
            return None
        if self._tls is None:
            return tcp
        stream = trio.SSLStream(tcp, self._tls, server_hostname=host, https_compatible=True)
        try:
            await stream.do_handshake()
        except (trio.BrokenResourceError, OSError) as error:
            cause = error.__cause__ or error
            self.why = f"no TLS: {cause}"
            await trio.aclose_forcefully(stream)
            return None
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise
        return stream

    def end(self, why: str) -> None:
        """The first reason counts."""
        self.why = self.why or why
        self._scope.cancel()

    async def _serve(self) -> None:
        await self._serve_here(self._here)
        self._here.end()
        self.end("this broker has ended its side")

    async def _read_there(self) -> None:
        stream, relay = self._there, self.relay
        assert stream is not None
        reader = PacketReader.of_server(_LARGEST, relay.version)
        self._last_heard = trio.current_time()
        try:
            while data := await stream.receive_some(_READ_BYTES):
                self._last_heard = trio.current_time()
                relay.from_there(reader.feed(bytes(data)))
                if not relay.up and (wrong := self._why_not()) is not None:
                    self.end(wrong)
                    return
                await self._flush()
                if reader.error is not None:
                    raise reader.error
            self.end("the other broker has closed the connection")
        except NotAccepted as error:
            self.refused = error
            self.end(error.text)
        except (Stale, Cleared) as error:
            self.stale = isinstance(error, Stale)
            self.end(error.text)
        except PacketError as error:
            self.end(error.text)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            self.end("the connection has broken")

    async def _read_here(self) -> None:
        relay, stream = self.relay, self._here
        reader = PacketReader.of_server(_LARGEST, relay.version)
        try:
            while data := await stream.from_broker.take():
                relay.from_here(reader.feed(data))
                await self._flush()
                if reader.error is not None:
                    raise reader.error
                if relay.up and not self._told:
                    self._told = True
                    self._came_up()
            self.end("this broker has ended its side")
        except PacketError as error:
            self.end(error.text)

    async def _flush(self) -> None:
        """Send what the relay has. Both directions in the order in which they were asked for: the lock is fair."""
        relay = self.relay
        if relay.complaints:
            for text in relay.complaints:
                self._complain(text)
            relay.complaints.clear()
        there, relay.to_there = b"".join(relay.to_there), []
        here, relay.to_here = b"".join(relay.to_here), []
        if there:
            await self._send_there(there)
        if here:
            self._last_sent_here = trio.current_time()
            try:
                await self._here.to_broker.put(here)
            except trio.BrokenResourceError:
                self.end("this broker has ended its side")

    async def _send_there(self, data: bytes) -> None:
        assert self._there is not None
        with trio.move_on_after(SEND_S) as limit:
            async with self._sending:
                self._last_sent = trio.current_time()
                try:
                    await self._there.send_all(data)
                except (trio.BrokenResourceError, trio.ClosedResourceError):
                    self.end("the connection has broken")
        if limit.cancelled_caught:
            self.end(f"the other broker takes nothing for {SEND_S:g} s")

    async def _watch(self) -> None:
        """Pings, and an end where no answer comes (3.1.2.10)."""
        relay = self.relay
        began = trio.current_time()
        while True:
            keep_alive = relay.keep_alive_s
            await trio.sleep(min(1.0, (keep_alive or 60) / 4))
            now = trio.current_time()
            if not relay.up:
                if now - began > CONNECT_S:
                    self.end(f"no CONNACK within {CONNECT_S:g} s")
                continue
            if keep_alive and now - self._last_heard > keep_alive * 1.5:
                self.end(f"nothing came for {keep_alive * 1.5:g} s")
                return
            if keep_alive and (
                now - self._last_sent >= keep_alive * 0.75 or now - self._last_heard >= keep_alive
            ):
                relay.ping()
            if relay.here_keep_alive_s and now - self._last_sent_here >= relay.here_keep_alive_s * 0.75:
                relay.ping_here()
            await self._flush()

    async def _close(self) -> None:
        stream = self._there
        assert stream is not None
        with trio.CancelScope(shield=True), trio.move_on_after(_FAREWELL_S):
            self.relay.to_there.clear()
            self.relay.stop()
            goodbye = b"".join(self.relay.to_there)
            try:
                if goodbye and not self._sending.locked():
                    await stream.send_all(goodbye)
                await stream.aclose()
            except (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
                pass
        await trio.aclose_forcefully(stream)
