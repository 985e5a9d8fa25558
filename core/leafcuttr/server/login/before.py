"""A connection before its client has logged in: ApiVersions, SaslHandshake, SaslAuthenticate and bare messages of a
mechanism are answered, all else ends it. Nothing of the data path is reached, and nothing of it pays for this.
"""

import inspect
from math import inf
from typing import Final

import trio

from leafcuttr.errors import ErrorCode
from leafcuttr.handlers import api_versions
from leafcuttr.handlers.context import RequestContext
from leafcuttr.server.arrivals import extended, wait_for_arrival
from leafcuttr.server.login.login import Login, LoginState
from leafcuttr.server.routes import FEW_ELEMENTS, Route, route
from leafcuttr.server.transport import Transport
from leafcuttr.state.broker import Broker
from leafcuttr.wire.api import APIS, ApiKey
from leafcuttr.wire.errors import ManyElements, WireError
from leafcuttr.wire.frame import read_client_id

_ALLOWED: Final = frozenset({ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
_API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
_PIECE: Final = 4096
_MOST_VERSIONS: Final = 4
"""ApiVersions for whose answers a client has a moment more: it may have to fall back once or twice."""


class NotLoggedIn(Exception):
    """The client is not in, and the connection is to be closed; one line for the log."""


class BeforeLogin:
    """One connection up to its log-in. `most_bytes` is `sasl.server.max.receive.size`; the client has time `until` then
    (trio's time)."""

    def __init__(
        self,
        broker: Broker,
        transport: Transport,
        context: RequestContext,
        login: Login,
        most_bytes: int,
        until: float = inf,
    ) -> None:
        self._broker = broker
        self._transport = transport
        self._context = context
        self._login = login
        self._most = most_bytes
        self._until = self._ends = until
        self._versions = 0
        self._received = bytearray()
        self._bare = False

    async def run(self) -> bytes:
        """What came behind the log-in: the beginning of the next request. Raises NotLoggedIn, OSError, and
        trio.TooSlowError for a client that is late."""
        login = self._login
        while login.state is not LoginState.DONE:
            if self._versions <= _MOST_VERSIONS:
                self._ends = extended(self._until)  # for a request, not for each of its bytes
            frame = await self._frame()
            answer = await (self._bare_answer(frame) if self._bare else self._answer(frame))
            if login.state is LoginState.FAILED:
                # As in Kafka what a password costs to try is time, not only work.
                delay_ms = self._broker.settings.int("connection.failed.authentication.delay.ms")
                await trio.sleep(delay_ms / 1000)
            await self._send(answer)
            if login.state is LoginState.FAILED:
                raise NotLoggedIn(login.refusal or "the log-in has failed")
        return bytes(self._received)

    async def _bare_answer(self, data: bytes) -> bytes:
        outcome = await self._login.authenticate(data)
        if outcome.code:
            return b""
        return len(outcome.data).to_bytes(4, "big") + outcome.data

    async def _answer(self, frame: bytes) -> bytes:
        view, context = memoryview(frame), self._context
        if len(frame) < 8:
            raise NotLoggedIn(f"a request of {len(frame)} bytes has no header")
        key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
        context.correlation_id = int.from_bytes(frame[4:8], "big", signed=True)
        if key == _API_VERSIONS:
            self._versions += 1
            if self._versions > _MOST_VERSIONS and trio.current_time() >= self._until:
                raise trio.TooSlowError
        if key not in _ALLOWED:
            api = APIS.get(key)
            raise NotLoggedIn(f"a request of kind {api.name if api else key} came before the log-in")
        found = route(key << 16 | version)
        if found is None:
            return self._unsupported(key, version)
        context.api_key, context.api_version = key, version
        try:
            raw, at = read_client_id(view, 8, len(frame), flexible=found.flexible_request)
            request, _ = found.read(view, at, len(frame), FEW_ELEMENTS)
        except (WireError, ManyElements) as error:
            raise NotLoggedIn(f"a request cannot be read: {error}") from None
        client_id = None if raw is None else raw.decode(errors="replace")
        context.client = context.client._replace(client_id=client_id)
        began = trio.current_time()
        response = found.handle(self._broker, context, request)
        if inspect.isawaitable(response):
            response = await response
        if key == ApiKey.SASL_HANDSHAKE and version == 0 and response.error_code == ErrorCode.NONE:
            self._bare = True
        self._broker.counts.answered[key].add(trio.current_time() - began)
        for code in found.errors(response):
            self._broker.counts.failed(key, code)
        return self._framed(found, response)

    def _unsupported(self, key: int, version: int) -> bytes:
        """KIP-511: a client that is newer learns what to fall back to."""
        oldest = route(_API_VERSIONS << 16)
        if key != _API_VERSIONS or oldest is None:
            raise NotLoggedIn(f"API key {key} in version {version} is not supported")
        return self._framed(oldest, api_versions.unsupported_version())

    def _framed(self, found: Route, response: object) -> bytes:
        return bytes(found.frame(self._context.correlation_id, response)[0])

    # Bytes

    async def _frame(self) -> bytes:
        received = self._received
        while True:
            if len(received) >= 4:
                size = int.from_bytes(received[:4], "big", signed=True)
                if not 0 <= size <= self._most:
                    raise NotLoggedIn(
                        f"{size} bytes are announced before the log-in; at most {self._most} are read"
                        " (sasl.server.max.receive.size)"
                    )
                if len(received) >= 4 + size:
                    frame = bytes(received[4 : 4 + size])
                    del received[: 4 + size]
                    return frame
            received += await self._receive()

    async def _receive(self) -> bytes:
        piece = bytearray(_PIECE)
        while True:
            try:
                count = self._transport.receive_into(memoryview(piece))
            except BlockingIOError:
                await wait_for_arrival(self._transport.descriptor, self._ends)
                continue
            if not count:
                raise ConnectionResetError("the peer has gone")
            return bytes(piece[:count])

    async def _send(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            try:
                at += self._transport.send(memoryview(data)[at:])
            except BlockingIOError:
                with trio.fail_at(extended(self._until)):
                    await self._transport.wait_writable()
