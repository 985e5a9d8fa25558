"""One served listener: it accepts within its budget, runs a task for each connection, and stops in order.

Nothing that one connection does, or its handler, gets out of its task. The tasks outlive the cancellation of the
service by the grace: see `Server._keep`.
"""

import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr.plugins.serving.ends import ConnectionEnd, Ends
from leafcuttr.plugins.serving.limits import Limits
from leafcuttr.plugins.serving.stream import SocketByteStream
from leafcuttr.runtime.described import is_of, leaves_of
from leafcuttr.runtime.pacing import Pace
from leafcuttr.runtime.plugin_parts import Part, PartError, call_async, failure_beside, owner
from leafcuttr.state.plugged import Plugged
from leafcuttr_sdk.serving import Handler
from leafcuttr_sdk.trouble import exhausted

if TYPE_CHECKING:
    import ssl

logger = logging.getLogger(__name__)

GRACE_S: Final = 2.0
"""How long a handler may go on with what it is doing once the service stops."""
FAREWELL_S: Final = 1.0
"""How long it may still send after that, in a `finally`."""
_AT_ONCE: Final = 64
_PAUSE_S: Final = 0.25
_WATCH_S: Final = 10.0
_IDLE_CHECKS: Final = 4


class Server:
    """`stopping` is whether handlers are cancelled when they next wait for their clients; `unix_path` that of the
    listener's Unix socket."""

    def __init__(
        self,
        plugged: Plugged,
        plugin: str,
        prefix: str,
        handler: Handler,
        limits: Limits,
        most: Callable[[], int],
        context: "ssl.SSLContext | None",
        unix_path: str = "",
        *,
        refusal: bytes = b"",
    ) -> None:
        """`most` says how many connections may be open at this moment; `refusal` is sent to one above it that does not
        speak TLS."""
        self.prefix: Final = prefix
        self.limits: Final = limits
        self.unix_path: Final = unix_path
        self.stopping = False
        self._refusal = refusal
        self._counts = plugged.counts_of(plugin, prefix)
        self._plugged = plugged
        self._handler = handler
        self._most = most
        self._context = context
        self._part = Part(plugin, f"handler of {prefix}")
        self._task_name = f"a connection of plugin {plugin}"
        self._ends = Ends(logger, f"listener {prefix} of plugin {plugin}", self._counts)
        self._open: set[SocketByteStream] = set()
        self._connections: trio.Nursery | None = None
        self._kept = trio.Event()
        self._stopped = trio.Event()
        self._wake = trio.Event()
        self._all_ended = trio.Event()

    # `state.plugged.ServedListener`

    @property
    def ends(self) -> Mapping[str, int]:
        return self._counts.ends

    @property
    def accepted(self) -> int:
        return self._counts.accepted

    @property
    def failures(self) -> Sequence[str]:
        return tuple(self._ends.failures)

    @property
    def connections(self) -> int:
        return len(self._open)

    async def run(self, sockets: Sequence[socket.socket], close: Callable[[], None]) -> None:
        """Serve these sockets until cancelled; then `close` closes them, and handlers come to their end."""
        before = owner.set(self._part)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep)
                try:
                    await self._kept.wait()
                    async with trio.open_nursery() as accepting:
                        accepting.start_soon(self._watch)
                        for sock in sockets:
                            accepting.start_soon(self._accept, sock)
                finally:
                    close()
                    self._stop()
        finally:
            owner.reset(before)

    # Accepting

    async def _accept(self, sock: socket.socket) -> None:
        """Accept on one bound socket until cancelled."""
        while True:
            await trio.lowlevel.wait_readable(sock)
            try:
                for _ in range(_AT_ONCE):
                    self._take(*sock.accept())
            except BlockingIOError:
                continue
            except OSError as error:
                reason = exhausted(error)
                if reason is None:
                    continue  # it ended before it was accepted
                self._ends.add(ConnectionEnd.PAUSE, reason)
                await trio.sleep(_PAUSE_S)

    def _take(self, sock: socket.socket, address: object) -> None:
        sock.setblocking(False)
        stream = SocketByteStream(self, sock, address)
        most = self._most()
        if len(self._open) >= most:
            self._ends.add(
                ConnectionEnd.REFUSED,
                stream.peer,
                f"{len(self._open)} are open ({self.prefix}.max.connections)",
            )
            self._refuse(stream, sock)
            return
        self._counts.accepted += 1
        self._counts.open += 1
        self._open.add(stream)
        self._plugged.connections += 1
        self._wake.set()
        assert self._connections is not None
        self._connections.start_soon(self._live, stream, name=self._task_name)

    def _refuse(self, stream: SocketByteStream, sock: socket.socket) -> None:
        """It is new: the system takes these few bytes at once, or the client has gone."""
        if self._refusal and (self._context is None or stream.is_local):
            with suppress(OSError):
                sock.send(self._refusal)
                sock.shutdown(socket.SHUT_WR)
        stream.close()

    # One connection

    async def _live(self, stream: SocketByteStream) -> None:
        why = ""
        try:
            with stream.scope:
                try:
                    if self._context is None or stream.is_local:
                        await call_async(self._part, self._handler, stream)
                    else:
                        why = await self._handle_tls(stream, self._context)
                except PartError as failed:
                    self._judge(failed, stream)
                except BaseException as error:
                    if (failed_too := failure_beside(error)) is not None:
                        self._judge(failed_too, stream, beside=True)
                    raise
            if stream.end is not None:
                self._ends.add(stream.end, stream.peer, why)
        finally:
            stream.close()
            self._open.discard(stream)
            self._plugged.connections -= 1
            self._counts.open -= 1
            if self.stopping and not self._open:
                self._all_ended.set()

    async def _handle_tls(self, stream: SocketByteStream, context: "ssl.SSLContext") -> str:
        """What was wrong with the handshake."""
        from leafcuttr.plugins.serving.tls_stream import TlsByteStream, why_no_tls

        tls = TlsByteStream(stream, context)
        try:
            with trio.move_on_after(self.limits.handshake_s) as patience:
                await tls.do_handshake()
        except trio.BrokenResourceError as error:
            reason = why_no_tls(error)
            if stream.end is not None:
                return ""
            stream.end = ConnectionEnd.RESET if reason is None else ConnectionEnd.TLS
            return reason or "in a handshake"
        if patience.cancelled_caught:
            stream.end = ConnectionEnd.HANDSHAKE
            return ""
        try:
            await call_async(self._part, self._handler, tls)
        finally:
            with trio.CancelScope(shield=True):
                await tls.aclose()
        return ""

    def _judge(self, failed: PartError, stream: SocketByteStream, *, beside: bool = False) -> None:
        """The handler has failed, or its client has gone. `beside` a cancellation the line is written already."""
        if stream.end is not None:
            return  # which was why
        cause = failed.cause
        if cause is not None and all(is_of(leaf, trio.BrokenResourceError) for leaf in leaves_of(cause)):
            stream.end = ConnectionEnd.RESET
            return
        stream.end = ConnectionEnd.FAILED
        self._ends.failures.append(failed.why)
        if not beside:
            self._plugged.failures(failed)

    # What goes on beside them

    async def _watch(self) -> None:
        """End idle connections, and say what was counted, until cancelled."""
        idle_s = self.limits.idle_s
        period_s = min(max(idle_s / _IDLE_CHECKS, 0.01), _WATCH_S) if idle_s else _WATCH_S
        while True:
            if not self._open and not self._ends.pending:
                self._wake = trio.Event()
                await self._wake.wait()
            await trio.sleep(period_s)
            self._ends.flush()
            if idle_s:
                await self._end_idle(idle_s)

    async def _end_idle(self, idle_s: float) -> None:
        pace = Pace()
        before = trio.current_time() - idle_s
        for stream in list(self._open):
            await pace.turn()
            if stream.rests and stream.moved <= before and stream.end is None:
                stream.end = ConnectionEnd.IDLE
                stream.scope.cancel()

    # The stop

    def _stop(self) -> None:
        """Handlers end when they next wait for their clients. Those that wait now, end now."""
        self.stopping = True
        self._stopped.set()
        if not self._open:
            self._all_ended.set()
        for stream in self._open:
            if stream.rests:
                stream.scope.cancel()

    async def _keep(self) -> None:
        """Hold the tasks of connections: after `_stop` for the grace, then a moment longer for what they say last. Not
        by `Nursery.start`: where that is cancelled it waits without end for what is shielded."""
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as nursery:
                self._connections = nursery
                self._kept.set()
                await self._stopped.wait()
                with trio.move_on_after(GRACE_S):
                    await self._all_ended.wait()
                for stream in self._open:
                    stream.end = stream.end or ConnectionEnd.CUT
                    stream.scope.cancel()
                with trio.move_on_after(FAREWELL_S):
                    await self._all_ended.wait()
                for stream in self._open:
                    stream.abort()
        self._ends.flush(all_of_it=True)
