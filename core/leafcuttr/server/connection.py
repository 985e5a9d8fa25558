"""One client connection: bytes in, requests handled in order, answers out.

A turn takes every complete request that has arrived. Produce requests of one turn are staged first and written
together; everything else is handled in its place, after what was staged before it has been written. Answers are
gathered and sent at the end of the turn, or earlier when they grow large or a handler has to wait. There is no
task per request, and a connection handles one request at a time, as Kafka does.

What a peer can do wrong ends here: a frame that is too large, a request that cannot be read or that this broker
does not speak closes the connection with one line in the log. Nothing else notices.
"""

import logging
import socket
from collections.abc import Awaitable
from inspect import isawaitable
from typing import Any, Final

import trio

from leafcuttr.handlers import api_versions, produce
from leafcuttr.handlers.context import RequestContext
from leafcuttr.server.memory import RequestMemory
from leafcuttr.server.outbox import Outbox
from leafcuttr.server.receive import ReceiveBuffer
from leafcuttr.server.routes import Route, route
from leafcuttr.state.broker import Broker
from leafcuttr.wire.api import ApiKey
from leafcuttr.wire.errors import WireError
from leafcuttr.wire.frame import read_client_id

logger = logging.getLogger(__name__)

# Answers are sent before more requests are handled once this much waits: a peer that does not read costs itself only.
_OUTBOX_LIMIT: Final = 256 * 1024
_PRODUCE: Final = int(ApiKey.PRODUCE)
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)


class CloseConnection(Exception):
    """The peer gets no answer; the message is the line in the log."""


class Connection:
    """The state of one connection.

    `turns` counts the turns begun; `waiting` is True while a handler waits (a long poll, a rebalance, the disk), which
    is not idleness. The sweeper of idle connections reads both. `stopping` ends the connection after this turn.
    """

    def __init__(
        self, broker: Broker, sock: socket.socket, context: RequestContext, memory: RequestMemory
    ) -> None:
        self._broker = broker
        self._socket = sock
        self._context = context
        self._memory = memory
        self.buffer = ReceiveBuffer(broker.settings.int("socket.request.max.bytes"))
        self._outbox = Outbox(sock)
        self._produce = produce.Turn()
        self._client_id_bytes: bytes | None = None
        self.turns = 0
        self.waiting = False
        self.stopping = False
        self._in_turn = False

    def __str__(self) -> str:
        return f"{self._context.peer} on {self._context.listener.name}"

    async def run(self) -> None:
        """Serve until the peer closes, misbehaves or the server stops. Raises nothing but Cancelled."""
        try:
            while not self.stopping and await self._receive():
                self.turns += 1
                self._in_turn = True
                await self._turn()
                self._in_turn = False
        except (CloseConnection, WireError) as reason:
            logger.warning("closing the connection from %s: %s", self, reason)
        except OSError as gone:
            logger.debug("the connection from %s ended: %s", self, gone)
        except Exception:
            logger.exception(
                "closing the connection from %s: a request of kind %s failed", self, self._context.api_key
            )
        finally:
            self._memory.release(self)

    def wake(self) -> None:
        """End the connection soon: a receive that waits returns. Answers on their way still leave."""
        self.stopping = True
        if not self._in_turn:
            self.shut()

    def rest(self) -> None:
        """Nothing has arrived for a while: give the buffer's memory back."""
        if not self._in_turn:
            self.buffer.shrink()

    def shut(self) -> None:
        """Break the connection: whatever waits on the socket returns."""
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    async def _receive(self) -> bool:
        """Wait for bytes; False at the end of the stream."""
        buffer, sock = self.buffer, self._socket
        while True:
            await trio.lowlevel.wait_readable(sock)
            room = buffer.room()
            try:
                count = sock.recv_into(room)
            except BlockingIOError:
                continue
            if not count:
                if buffer.pending:
                    logger.debug("the connection from %s ended inside a request", self)
                return False
            buffer.received(count)
            size = buffer.frame_size()
            if size > buffer.capacity:
                await self._memory.reserve(self, size)
            return True

    async def _turn(self) -> None:
        buffer = self.buffer
        while (frame := buffer.next_frame()) is not None:
            at, end = frame
            view = buffer.view
            if end - at < 8:
                raise CloseConnection(f"a request of {end - at} bytes has no header")
            found = route(int.from_bytes(view[at : at + 4], "big"))
            context = self._context
            context.correlation_id = int.from_bytes(view[at + 4 : at + 8], "big", signed=True)
            if found is None:
                self._refuse(
                    int.from_bytes(view[at : at + 2], "big"), int.from_bytes(view[at + 2 : at + 4], "big")
                )
                continue
            context.api_key, context.api_version = found.api.key, found.version
            at = self._read_client_id(view, at + 8, end, found)
            # Bytes left over are ignored, as Kafka does: librdkafka sends some behind a Metadata for all topics.
            request, _ = found.read(view, at, end)
            if found.api.key == _PRODUCE:
                self._produce.stage(self._broker, context, request, found)
                continue
            if self._produce:
                await self._commit()
            response = found.handle(self._broker, context, request)
            if isawaitable(response):
                response = await self._wait_for(response)
            if response is not None:
                self._outbox.add(*found.frame(context.correlation_id, response))
            if self._outbox.size > _OUTBOX_LIMIT:
                await self._outbox.flush()
        if self._produce:
            await self._commit()
        if self._outbox.size:
            await self._outbox.flush()
        if self._memory.holds(self) and buffer.frame_size() <= buffer.capacity:
            self._memory.release(self)

    def _read_client_id(self, view: memoryview, at: int, end: int, found: Route) -> int:
        raw, at = read_client_id(view, at, end, flexible=found.flexible_request)
        if raw != self._client_id_bytes:
            self._client_id_bytes = raw
            self._context.client_id = None if raw is None else raw.decode(errors="replace")
        return at

    async def _wait_for(self, response: Awaitable[Any]) -> Any:
        """A handler that waits: what was answered before it must not wait with it."""
        if self._outbox.size:
            await self._outbox.flush()
        self.waiting = True
        try:
            return await response
        finally:
            self.waiting = False

    async def _commit(self) -> None:
        """Write what the turn has staged, then answer it. A request with acks=0 that failed closes the connection."""
        self.waiting = True
        answers = await self._produce.commit()
        self.waiting = False
        for correlation_id, found, response in answers:
            self._outbox.add(*found.frame(correlation_id, response))
        if self._produce.refused:
            raise CloseConnection(f"a Produce request with acks=0 failed: {self._produce.refused}")

    def _refuse(self, key: int, version: int) -> None:
        """Too new an ApiVersions is answered in version 0 (KIP-511); all else ends the connection."""
        if key != _API_VERSIONS:
            raise CloseConnection(f"API key {key} in version {version} is not supported")
        oldest = route(_API_VERSIONS << 16)
        assert oldest is not None
        self._outbox.add(*oldest.frame(self._context.correlation_id, api_versions.unsupported_version()))
