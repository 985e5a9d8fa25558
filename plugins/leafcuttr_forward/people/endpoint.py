"""The HTTP address of a command that runs flows: metrics in Prometheus's text format, health, and the paths that the
admin port of a broker has for flows. It answers GET and HEAD, and changes nothing; h11 knows the protocol.

    /metrics                            metrics
    /health                             200, or 503 with a line while a flow does not go on
    /plugins/forward/flows              the flows
    /plugins/forward/flows/NAME         a flow with its partitions
    /                                   what runs, for people

A head is at most 16 KiB; a connection that is silent for 150 seconds, or does not take its answer within ten, is
closed; of more than 64 the newest is closed at once.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

import trio

from leafcuttr_forward.people.admin import finding_of, flow_answer, flows_answer, json_answer
from leafcuttr_forward.people.exposition import OtherMetric, expose
from leafcuttr_forward.people.rows import flow_row
from leafcuttr_sdk.admin import Response
from leafcuttr_sdk.errors import PluginError

if TYPE_CHECKING:
    import h11

    from leafcuttr_forward.people.current import RunningFlows
    from leafcuttr_sdk.metrics import MetricReading

_HEAD_BYTES: Final = 16 * 1024
_IDLE_S: Final = 150.0
"""Prometheus scrapes once a minute by default, and keeps the connection."""
_SEND_S: Final = 10.0
_RECEIVE: Final = 4096
_LINGER_S: Final = 1.0
_LINGER_BYTES: Final = 64 * 1024
_MOST_CONNECTIONS: Final = 64
_TEXT: Final = "text/plain; version=0.0.4; charset=utf-8"
FLOWS_PATH: Final = "/plugins/forward/flows"


class FlowsEndpoint:
    """Answers for what runs. `others` are metrics beside `readings`, `status` is what `/` has beside the flows."""

    def __init__(
        self,
        running: "RunningFlows",
        readings: "Iterable[MetricReading]",
        others: Callable[[], Iterable[OtherMetric]] = tuple,
        *,
        now_ms: Callable[[], int],
        status: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        self._running = running
        self._readings = tuple(readings)
        self._others = others
        self._now_ms = now_ms
        self._status = status
        self._open = 0

    def respond(self, method: str, target: str) -> Response:
        """The answer to one request."""
        if method not in ("GET", "HEAD"):
            return json_answer(
                {"error": "method_not_allowed", "message": "only GET and HEAD are answered"}, 405
            )
        path = unquote(urlsplit(target).path)
        if path == "/metrics":
            return Response(expose(self._readings, self._others()), _TEXT)
        if path == "/health":
            found = finding_of(self._running)
            status = "ok" if found.fine else "degraded"
            return json_answer({"status": status, "detail": found.detail}, 200 if found.fine else 503)
        if path == FLOWS_PATH:
            return flows_answer(self._running, self._now_ms())
        if path.startswith(f"{FLOWS_PATH}/"):
            return flow_answer(self._running, path.removeprefix(f"{FLOWS_PATH}/"), self._now_ms())
        if path == "/":
            now = self._now_ms()
            flows = [flow_row(report, now) for report in self._running.all()]
            return Response(json.dumps({**self._status(), "flows": flows}, indent=2).encode() + b"\n")
        known = f"/metrics, /health and {FLOWS_PATH}"
        return json_answer(
            {"error": "not_found", "message": f"there is no {path[:200]}; there are {known}"}, 404
        )

    async def serve(
        self,
        host: str | None,
        port: int,
        *,
        task_status: "trio.TaskStatus[list[tuple[str, int]]]" = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Until cancelled. `started()` gets the addresses. Raises PluginError where the address cannot be bound."""
        try:
            listeners = await trio.open_tcp_listeners(port, host=host)
        except OSError as error:
            why = error.strerror or error
            raise PluginError(f"metrics cannot be served at {host or ''}:{port}: {why}") from None
        task_status.started([listener.socket.getsockname()[:2] for listener in listeners])
        await trio.serve_listeners(self._connection, listeners)

    async def _connection(self, stream: trio.SocketStream) -> None:
        if self._open >= _MOST_CONNECTIONS:
            await trio.aclose_forcefully(stream)
            return
        self._open += 1
        try:
            await _HttpConnection(stream, self.respond).run()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client has gone
        finally:
            self._open -= 1
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(stream)


class _HttpConnection:
    def __init__(self, stream: trio.SocketStream, respond: Callable[[str, str], Response]) -> None:
        import h11

        self._stream = stream
        self._respond = respond
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=_HEAD_BYTES)

    async def run(self) -> None:
        import h11

        http = self._http
        while True:
            try:
                request = await self._next()
            except h11.RemoteProtocolError as error:
                if http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
                    told = {"error": "bad_request", "message": str(error)}
                    await self._send(None, json_answer(told, error.error_status_hint))
                    await self._linger()
                return
            if request is None:
                return
            target = request.target.decode("ascii", "replace")
            await self._send(request, self._respond(request.method.decode("ascii"), target))
            if http.our_state is not h11.DONE or http.their_state is not h11.DONE:
                return
            http.start_next_cycle()

    async def _next(self) -> "h11.Request | None":
        """The next request; None after its end, or after silence."""
        import h11

        with trio.move_on_after(_IDLE_S):
            request = await self._event()
            if not isinstance(request, h11.Request):
                return None
            if not isinstance(await self._event(), h11.EndOfMessage):
                raise h11.RemoteProtocolError("no body is taken here", error_status_hint=413)
            return request
        return None

    async def _event(self) -> Any:
        import h11

        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._stream.receive_some(_RECEIVE))
        return event

    async def _linger(self) -> None:
        """Read what the client still sends: closed before that, the system would reset the connection, and the answer
        with it."""
        left = _LINGER_BYTES
        with trio.move_on_after(_LINGER_S):
            while left > 0 and (data := await self._stream.receive_some(_RECEIVE)):
                left -= len(data)

    async def _send(self, request: "h11.Request | None", response: Response) -> None:
        import h11

        body = response.body
        assert isinstance(body, bytes)
        headers = [
            ("Content-Type", response.content_type),
            ("Content-Length", str(len(body))),
            *response.headers,
            *([("Connection", "close")] if request is None else ()),
            *([("Allow", "GET, HEAD")] if response.status == HTTPStatus.METHOD_NOT_ALLOWED else ()),
        ]
        head = h11.Response(
            status_code=response.status, headers=headers, reason=HTTPStatus(response.status).phrase
        )
        parts = [self._http.send(head)]
        if request is None or request.method != b"HEAD":
            parts.append(self._http.send(h11.Data(data=body)))
        parts.append(self._http.send(h11.EndOfMessage()))
        with trio.move_on_after(_SEND_S) as scope:
            await self._stream.send_all(b"".join(part for part in parts if part))
        if scope.cancelled_caught:
            raise trio.BrokenResourceError
