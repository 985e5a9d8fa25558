"""One request and its answer, below any framework: headers, body, the answer's head, what is counted of it."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import parse_qs

import trio

from leafcuttr_sdk._stopwatch import Stopwatch
from leafcuttr_sdk.authentication import ANONYMOUS
from leafcuttr_sdk.web.asgi import Message, RawHeaders, Receive, Scope, Send
from leafcuttr_sdk.web.bodies import Body
from leafcuttr_sdk.web.errors import ApiError
from leafcuttr_sdk.web.negotiation import JSON, choose
from leafcuttr_sdk.web.serving import Serving

if TYPE_CHECKING:
    from leafcuttr_sdk.security import ClientQuota

# A rest of a body up to this size is read before an early answer, so that the connection can go on.
_READ_ANYWAY: Final = 64 * 1024
_MOST_PARAMETERS: Final = 1000
_NO_PARAMETERS: Final[Mapping[str, str]] = {}


async def _called(handler: "Callable[[Exchange], Awaitable[None]]", exchange: "Exchange") -> None:
    await handler(exchange)


class Exchange:
    """Wraps what ASGI hands over. Header names are in lower case; of a header that comes twice the last one counts."""

    ERROR_TYPES: ClassVar[Sequence[str]] = (JSON,)
    """Media types of errors, of which the client's Accept chooses; the first where it names none of them."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, serving: Serving) -> None:
        self.scope = scope
        self.receive = receive
        self._send = send
        self.serving = serving
        self.method: str = scope["method"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.began = perf_counter()
        self.principal = ANONYMOUS
        """Whom the client acts for."""
        self.endpoint = "other"
        """What the request is counted as. A few names, whatever clients request."""
        self.parameters: Mapping[str, str] = _NO_PARAMETERS
        """The parts of the path that a route names (`routes.Routes`)."""
        self.status = 0
        """Of the answer; 0 where there was none."""
        self.extra: RawHeaders = ()
        """Headers of every answer to this request."""
        self.body: Body | None = None
        """None until it is first read."""
        self._quota: ClientQuota | None = None
        self._stopwatch: Stopwatch | None = None

    async def begin(self) -> None:
        """Before the request is handled: a client above its quota waits. Raises ApiError 429 where it would for too
        long."""
        self._quota = await self.serving.admitted()
        if self._quota is not None and self._quota.is_of_time:
            self._stopwatch = Stopwatch()

    async def handle(self, handler: "Callable[[Exchange], Awaitable[None]]") -> None:
        """Have the request handled. The time of the event loop that this takes is of the client's quota, if it has one
        of that: without what other tasks do for it, and without what it waits for."""
        if self._stopwatch is None:
            await handler(self)
            return
        try:
            await self._stopwatch.measured(_called(handler, self))
        finally:
            self._charge()

    def _charge(self) -> None:
        """The client's quota with the time since this was called last."""
        if self._stopwatch is not None and self._quota is not None:
            self._quota.spent(self._stopwatch.take())

    @property
    def path(self) -> str:
        """Decoded, without the query."""
        path: str = self.scope["path"]
        return path

    @property
    def query(self) -> dict[str, list[str]]:
        """The parameters of the query. Raises ApiError 400."""
        try:
            return parse_qs(
                self.scope["query_string"].decode("ascii"),
                keep_blank_values=True,
                errors="strict",
                max_num_fields=_MOST_PARAMETERS,
            )
        except ValueError:
            raise ApiError(400, "The query is not what a form would send, or is very long.") from None

    def header(self, name: bytes) -> str | None:
        """The value of a header by its name in lower case, `b"content-type"`; None where it was not sent."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    async def read(self) -> bytes:
        """The whole body, decompressed, within the limits of the service. Raises ApiError."""
        return await self.open_body().read()

    async def read_json(self, most_bytes: int = 1024 * 1024) -> Any:
        """The whole body as JSON, which is parsed in one go: a megabyte holds the loop for some 20 ms. Raises ApiError
        400 where it is none, 413 where it is longer."""
        body = await self.read()
        if len(body) > most_bytes:
            raise ApiError(413, f"The body has more than {most_bytes} bytes.")
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ApiError(400, f"The body is not JSON: {error}.") from None

    def pieces(self) -> AsyncIterator[bytes]:
        """The body piece by piece as it arrives, however long it is: only the time for each piece is bounded. Raises
        ApiError."""
        return self._open(bounded=False).pieces()

    def open_body(self) -> Body:
        """The body, to be read within the limits. Raises ApiError."""
        return self._open(bounded=True)

    def _open(self, *, bounded: bool) -> Body:
        limits = self.serving.limits
        length = self.header(b"content-length")
        encoding = self.header(b"content-encoding") or ""
        self.body = Body(
            self.receive,
            length=int(length) if length and length.isascii() and length.isdigit() else None,
            encoding=encoding,
            limit=limits.request_bytes if bounded else 0,
            timeout_s=limits.request_s,
            memory=self.serving.memory if bounded else None,
            setting=f"{limits.prefix}.max.request.bytes",
        )
        return self.body

    async def send(self, message: Message) -> None:
        """Sends a part of the answer; the first one gets the headers of every answer."""
        self._charge()
        if message["type"] == "http.response.start":
            if self._quota is not None and message["status"] < 400:
                await trio.sleep(min(self._quota.wait_s(), self.serving.limits.request_s))
            self.status = message["status"]
            if self.extra:
                message = {**message, "headers": [*message.get("headers", ()), *self.extra]}
        await self._send(message)

    async def answer(
        self, status: int, body: bytes, content_type: str = JSON, headers: RawHeaders = ()
    ) -> None:
        """A whole answer. What has not been read of the request's body is read for a moment, or to its end if that is
        near; then the connection closes, or the stream of HTTP/2 is reset."""
        fields = [*headers]
        if status != 204:  # which must not have these (RFC 9110, 8.6)
            fields += [
                (b"content-type", content_type.encode("latin-1")),
                (b"content-length", b"%d" % len(body)),
            ]
        if not self.all_read and not await self._read_the_rest():
            await self._answer_early(status, body, fields)
            return
        # HTTP/2 has windows that a held answer could wait for.
        connection = self.scope["state"]["connection"] if self.scope["http_version"][0] == "1" else None
        if connection is not None:
            connection.hold()
        await self.send({"type": "http.response.start", "status": status, "headers": fields})
        await self.send({"type": "http.response.body", "body": body, "more_body": False})
        if connection is not None:
            await connection.release()

    async def _answer_early(self, status: int, body: bytes, fields: list[tuple[bytes, bytes]]) -> None:
        if self.scope["http_version"][0] == "1":
            fields.append((b"connection", b"close"))
        await self.send({"type": "http.response.start", "status": status, "headers": fields})
        await self.send({"type": "http.response.body", "body": body, "more_body": True})
        await (self.body or self._unread()).discard()
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def reply(self, value: object, status: int = 200, headers: RawHeaders = ()) -> None:
        """A whole answer as JSON."""
        body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
        await self.answer(status, body, JSON, headers)

    async def refuse(self, error: ApiError) -> None:
        """An error as the answer."""
        fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in error.headers]
        content = json.dumps(error.body, separators=(",", ":")).encode()
        await self.answer(error.status, content, self.error_type(), fields)

    def error_type(self) -> str:
        """The media type of an error: that of the answer, or JSON where there is none that the client takes."""
        try:
            return choose(self.header(b"accept"), self.ERROR_TYPES)
        except ApiError:
            return JSON

    @property
    def all_read(self) -> bool:
        """Whether nothing of the body is to come."""
        if self.body is not None:
            return self.body.complete
        length = self.headers.get(b"content-length")
        if length is not None:
            return length == b"0"
        # HTTP/2 says with its frames alone whether there is a body.
        return self.scope["http_version"][0] == "1" and b"transfer-encoding" not in self.headers

    async def _read_the_rest(self) -> bool:
        """Whether the body was small enough to be read although the handler does not want it."""
        length = self.headers.get(b"content-length", b"")
        if self.body is not None or not length.isdigit() or int(length) > _READ_ANYWAY:
            return False
        body = self._unread()
        await body.discard()
        return body.complete

    def _unread(self) -> Body:
        """The body as it comes, to be thrown away."""
        return Body(self.receive, length=None, encoding="", limit=0, timeout_s=0.0, memory=None)
