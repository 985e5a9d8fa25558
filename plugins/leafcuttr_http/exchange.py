"""One request and its answer, below any framework: headers, body, the answer's head, what is counted of it."""

import json
from time import perf_counter
from typing import Final

import trio

from leafcuttr_http.asgi import Message, RawHeaders, Receive, Scope, Send
from leafcuttr_http.bodies import Body, BodyMemory
from leafcuttr_http.errors import ApiError
from leafcuttr_http.negotiation import AS_JSON, JSON, METADATA, choose, media_type

# A rest of a body up to this size is read before an early answer, so that the connection can go on.
_READ_ANYWAY: Final = 64 * 1024


class Exchange:
    """Wraps what ASGI hands over. Header names are in lower case; of a header that comes twice the last one counts."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self._send = send
        self.method: str = scope["method"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.began = perf_counter()
        self.status = 0
        """Of the answer; 0 where there was none."""
        self.extra: RawHeaders = ()
        """Headers of every answer to this request."""
        self.body: Body | None = None
        """Once somebody reads it."""

    def header(self, name: bytes) -> str | None:
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")

    def open_body(self, limit: int, timeout_s: float, memory: BodyMemory | None = None) -> Body:
        """The body, to be read. Raises ApiError."""
        length = self.header(b"content-length")
        encoding = self.header(b"content-encoding") or ""
        self.body = Body(
            self.receive,
            length=int(length) if length and length.isascii() and length.isdigit() else None,
            encoding=encoding,
            limit=limit,
            timeout_s=timeout_s,
            memory=memory,
        )
        return self.body

    async def send(self, message: Message) -> None:
        """Sends a part of the answer; the first one gets the headers of every answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.extra:
                message = {**message, "headers": [*message.get("headers", ()), *self.extra]}
        await self._send(message)

    async def answer(
        self, status: int, body: bytes, content_type: str = JSON, headers: RawHeaders = ()
    ) -> None:
        """A whole answer."""
        fields = [*headers]
        if status != 204:  # which must not have these (RFC 9110, 8.6)
            fields += [
                (b"content-type", content_type.encode("latin-1")),
                (b"content-length", b"%d" % len(body)),
            ]
        # HTTP/2 has windows that a held answer could wait for.
        connection = self.scope["state"]["connection"] if self.scope["http_version"][0] == "1" else None
        if connection is not None:
            connection.hold()
        await self.send({"type": "http.response.start", "status": status, "headers": fields})
        await self.send({"type": "http.response.body", "body": body, "more_body": False})
        if connection is not None:
            await connection.release()

    async def refuse(self, error: ApiError) -> None:
        """An error as the answer. What has not been read of the body is read for a moment, or to its end if that is
        near; then the connection closes."""
        fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in error.headers]
        content = json.dumps(error.body, separators=(",", ":")).encode()
        content_type = self.error_type()
        if self.all_read or await self._read_the_rest():
            await self.answer(error.status, content, content_type, fields)
            return
        if self.scope["http_version"].startswith("1"):
            fields.append((b"connection", b"close"))
        fields += [
            (b"content-type", content_type.encode("latin-1")),
            (b"content-length", b"%d" % len(content)),
        ]
        await self.send({"type": "http.response.start", "status": error.status, "headers": fields})
        await self.send({"type": "http.response.body", "body": content, "more_body": True})
        body = self.body or self.open_body(0, 0.0)
        await body.discard()
        async with trio.open_nursery() as nursery:
            # The server hands us what still comes, even while it closes, and waits until we have taken it.
            nursery.start_soon(self._drain)
            await self.send({"type": "http.response.body", "body": b"", "more_body": False})
            nursery.cancel_scope.cancel()

    def error_type(self) -> str:
        """The media type of an error: that of the answer, or JSON where there is none that the client takes."""
        like_json = media_type(self.header(b"content-type") or JSON).name == JSON
        try:
            return choose(self.header(b"accept"), AS_JSON if like_json else METADATA)
        except ApiError:
            return JSON

    @property
    def all_read(self) -> bool:
        """Whether nothing of the body is to come."""
        if self.body is not None:
            return self.body.complete
        return self.headers.get(b"content-length", b"0") == b"0" and b"transfer-encoding" not in self.headers

    async def _read_the_rest(self) -> bool:
        """Whether the body was small enough to be read although nobody wants it."""
        length = self.headers.get(b"content-length", b"")
        if self.body is not None or not length.isdigit() or int(length) > _READ_ANYWAY:
            return False
        body = Body(self.receive, length=None, encoding="", limit=0, timeout_s=0.0, memory=None)
        await body.discard()
        return body.complete

    async def _drain(self) -> None:
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                return
