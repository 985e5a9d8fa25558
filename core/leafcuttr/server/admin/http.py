"""One HTTP connection of the admin endpoint: heads in, answers out, all within limits of size and time.

A head is at most 16 KiB and has ten seconds to arrive; a body is not read; the connection of a client that takes less
than a slice of an answer in ten seconds, or not all of it within a minute, is closed. h11 knows the protocol: framing,
keep-alive, HTTP/1.0, pipelining, chunks.
"""

import logging
from contextlib import aclosing
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import trio

from leafcuttr.runtime.complaints import Complaints
from leafcuttr.runtime.plugin_parts import is_cancelled
from leafcuttr.server.admin.router import Request, Response, Router, parse_target, problem
from leafcuttr_sdk.trouble import exhausted

if TYPE_CHECKING:
    import h11

    from leafcuttr.server.admin.access import AdminAccess
    from leafcuttr.server.admin.tls import AdminTlsStream
    from leafcuttr_sdk.authentication import PeerCertificate

logger = logging.getLogger(__name__)

HEAD_BYTES: Final = 16 * 1024
HEAD_S: Final = 10.0
SEND_S: Final = 10.0
ANSWER_S: Final = 60.0
# Prometheus scrapes once a minute by default, and keeps the connection.
IDLE_S: Final = 150.0
_RECEIVE: Final = 4096
_SLICE: Final = 64 * 1024
_LINGER_S: Final = 1.0
_LINGER_BYTES: Final = 64 * 1024


_complain: Final = Complaints(logger)


def _is_loopback(address: str) -> bool:
    from ipaddress import IPv6Address, ip_address

    found = ip_address(address.partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None
    return (mapped or found).is_loopback


class HttpConnection:
    """One connection. `idle` is whether it waits for a request, so that it may be closed for a newer one."""

    def __init__(
        self,
        stream: "trio.SocketStream | AdminTlsStream",
        router: Router,
        access: "AdminAccess | None" = None,
        certificate: "PeerCertificate | None" = None,
    ) -> None:
        """`certificate` is what the client has shown in a handshake."""
        import h11

        self._stream = stream
        self._router = router
        self._access = access
        self._certificate = certificate
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._answered = 0
        self._scope = trio.CancelScope()
        self.idle = True

    async def run(self) -> None:
        """Serve until the peer has gone or its connection is closed. Raises nothing but Cancelled."""
        with self._scope:
            try:
                while await self._one_request():
                    pass
                await self._linger()
            except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
                pass
            except trio.Cancelled:
                # Of a scope in a plugin's body, which was cancelled between two pieces: the plugin's failure is logged.
                if is_cancelled():
                    raise
            except Exception as error:
                if not _passes(error, "a connection of the admin endpoint"):
                    logger.exception("a connection of the admin endpoint failed")
            finally:
                with trio.CancelScope(shield=True):
                    await trio.aclose_forcefully(self._stream)

    def close(self) -> None:
        """End it at once."""
        self._scope.cancel()

    async def _one_request(self) -> bool:
        """Answer one request; whether there may be another."""
        import h11

        http, request = self._http, None
        try:
            event = await self._head()
            if not isinstance(event, h11.Request):
                return False  # the peer has gone, or is too slow for a head
            request = event
            has_body = not isinstance(http.next_event(), h11.EndOfMessage)
        except h11.RemoteProtocolError as error:
            await self._refuse(request, error)
            return False
        response = await self._respond(request, has_body)
        await self._send(request, response, last=has_body)
        if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
            return False
        http.start_next_cycle()
        self._answered += 1
        return True

    async def _head(self) -> Any:
        """The next request's head, or what comes in its place; None if none comes in time."""
        import h11

        self.idle = not self._http.trailing_data[0]
        limit = IDLE_S if self._answered and self.idle else HEAD_S
        with trio.move_on_after(limit) as scope:
            while True:
                event = self._http.next_event()
                if event is not h11.NEED_DATA:
                    self.idle = False
                    return event
                data = await self._stream.receive_some(_RECEIVE)
                if self.idle and data:
                    self.idle = False
                    scope.deadline = trio.current_time() + HEAD_S
                self._http.receive_data(data)
        if not self.idle:
            await self._send(
                None, problem(408, "too_slow", f"the head took longer than {HEAD_S:.0f} s"), last=True
            )
        return None

    async def _respond(self, event: "h11.Request", has_body: bool) -> Response:
        try:
            target = parse_target(event.target.decode("ascii"))
        except ValueError as error:
            return problem(400, "bad_request", f"the target cannot be read: {error}")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
        request = Request(event.method.decode("ascii"), target.path, target.query, headers)
        if has_body and request.method in ("GET", "HEAD", "DELETE"):
            return problem(413, "no_body", "no body is taken here")
        try:
            if self._access is not None:
                count = sum(name == b"authorization" for name, _ in event.headers)
                host = self._host() or "unknown"
                refused = await self._access.refusal(request, target.parts, count, host, self._certificate)
                if refused is not None:
                    return refused
            is_local = "origin" not in headers and self._is_from_here()
            return await self._router.answer(request, target.parts, is_local=is_local)
        except Exception as error:
            if _passes(error, f"answering {target.path}"):
                return problem(503, "exhausted", f"{exhausted(error)}; try again")
            logger.exception("answering %s failed", target.path)
            return problem(500, "internal_error", "the broker's log says what happened")

    def _is_from_here(self) -> bool:
        """Whether the other end is on this machine, as far as its address tells that."""
        host = self._host()
        return host is not None and _is_loopback(host)

    def _host(self) -> str | None:
        """The address of the other end; None: it has gone."""
        try:
            peer = self._stream.socket.getpeername()
        except OSError:
            return None
        return str(peer[0]) if isinstance(peer, tuple) else "127.0.0.1"

    async def _refuse(self, request: "h11.Request | None", error: Any) -> None:
        """What cannot be read is the head (no request yet) or the body; the answer to HEAD has none either way."""
        import h11

        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            status = error.error_status_hint or 400
            await self._send(request, problem(status, "bad_request", str(error)), last=True)

    async def _send(self, event: "h11.Request | None", response: Response, *, last: bool) -> None:
        import h11

        body = response.body
        headers = [("Content-Type", response.content_type), *response.headers]
        if isinstance(body, bytes):
            headers.append(("Content-Length", str(len(body))))
        if last:
            headers.append(("Connection", "close"))
        reason = HTTPStatus(response.status).phrase
        head = self._http.send(h11.Response(status_code=response.status, headers=headers, reason=reason))
        wanted = event is None or event.method != b"HEAD"
        with trio.fail_after(ANSWER_S):
            if isinstance(body, bytes):
                data = self._http.send(h11.Data(data=body)) if wanted and body else b""
                await self._push(head, data, self._http.send(h11.EndOfMessage()))
                return
            async with aclosing(body):
                await self._push(head)
                if wanted:
                    async for piece in body:
                        await self._push(self._http.send(h11.Data(data=piece)))
                await self._push(self._http.send(h11.EndOfMessage()))

    async def _push(self, *data: bytes | None) -> None:
        whole = b"".join(piece for piece in data if piece)
        if whole:
            left = memoryview(whole)
            while left:
                with trio.fail_after(SEND_S):
                    await self._stream.send_all(left[:_SLICE])
                left = left[_SLICE:]

    async def _linger(self) -> None:
        """Let the last answer arrive before what the peer still sends resets the connection."""
        left = _LINGER_BYTES
        with trio.move_on_after(_LINGER_S):
            await self._stream.send_eof()
            while left > 0 and (data := await self._stream.receive_some(_RECEIVE)):
                left -= len(data)


def _passes(error: Exception, what: str) -> bool:
    """Whether that failed because the process has run out of something. The log says so, once."""
    reason = exhausted(error)
    if reason is not None:
        _complain(reason, "%s failed: %s", what, reason)
    return reason is not None
