"""Every request comes through here. What all endpoints share is done here once: limits of the body, CORS,
errors, counting. Producing, the one path that has to be fast, is served from here; everything else is Quart's.
"""

import hashlib
from time import perf_counter
from typing import Final
from urllib.parse import unquote, unquote_to_bytes

import trio

from leafcuttr_http import bulk
from leafcuttr_http.asgi import App, Message, Receive, Scope, Send
from leafcuttr_http.bodies import Gone
from leafcuttr_http.cors import Cors
from leafcuttr_http.errors import ApiError
from leafcuttr_http.exchange import Exchange
from leafcuttr_http.idempotency import LONGEST, Answer, Answers
from leafcuttr_http.negotiation import (
    AS_JSON,
    JSON,
    LINES,
    METADATA,
    SCHEMA_FORMATS,
    V2_BINARY,
    V2_JSON,
    choose,
    media_type,
)
from leafcuttr_http.pieces import in_pieces
from leafcuttr_http.produce import produce
from leafcuttr_http.proxy import Proxy
from leafcuttr_http.records import ALL_JSON, BINARY, TEXT_KEYS, Format
from leafcuttr_http.streams import sse, websocket
from leafcuttr_http.streams.streams import Streams

FORMATS: Final[dict[str, tuple[Format, tuple[str, ...]]]] = {
    JSON: (TEXT_KEYS, AS_JSON),
    V2_JSON: (ALL_JSON, METADATA),
    V2_BINARY: (BINARY, METADATA),
    "application/vnd.kafka.json+json": (ALL_JSON, METADATA),
    "application/vnd.kafka.binary+json": (BINARY, METADATA),
}
"""What records can be produced as, and the types of the answer."""
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
"""Those that requests are counted by; all else that clients may call a method is one."""
_WITH_SCHEMA: Final = frozenset(
    f"application/vnd.kafka.{name}{version}+json" for name in SCHEMA_FORMATS for version in ("", ".v2")
)


class Front:
    """The ASGI application."""

    def __init__(self, proxy: Proxy, app: App) -> None:
        self._proxy = proxy
        self._app = app
        self._streams = Streams(proxy)
        self._cors = Cors(proxy.limits.origins)
        self._answers = Answers(proxy.broker.clock, proxy.limits.idempotency_bytes)
        self._log = proxy.broker.logger
        metrics = proxy.broker.metrics
        self._requests = metrics.counter(
            "leafcuttr_http_requests_total", "Requests that were answered.", "endpoint", "method", "status"
        )
        self._seconds = metrics.counter(
            "leafcuttr_http_request_seconds_total", "Time from their heads to their answers.", "endpoint"
        )
        self._records = metrics.counter(
            "leafcuttr_http_records_produced_total", "Records stored for clients of the HTTP proxy.", "format"
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        _make_relative(scope)
        _drop_slash(scope)
        send = in_pieces(scope, send)
        if scope["type"] == "websocket":
            await websocket.serve(self._streams, scope, receive, send, stream_target(scope["raw_path"]))
            return
        exchange = Exchange(scope, receive, send)
        endpoint = "other"
        try:
            _check_framing(exchange)
            if self._cors_answered(exchange):
                await exchange.answer(204, b"")
                return
            target = _produce_target(exchange)
            if target is not None:
                endpoint = "produce"
                await self._produce(exchange, *target)
            elif (
                exchange.method in ("GET", "HEAD") and (topic := stream_target(scope["raw_path"])) is not None
            ):
                endpoint = "stream"
                await sse.serve(self._streams, exchange, topic)
            else:
                endpoint = _endpoint(scope["raw_path"])
                await self._rest(exchange)
        except Gone:
            pass
        except ApiError as error:
            if not exchange.status:
                await exchange.refuse(error)
        except Exception as error:
            reason = self._proxy.tell(error, f"{exchange.method} {scope['path']}")
            if exchange.status:
                raise
            if reason is None:
                await exchange.refuse(ApiError(50001, "The proxy failed; the broker's log says how."))
            else:
                await exchange.refuse(ApiError(503, f"The broker has run out of something: {reason}."))
        finally:
            if exchange.body is not None:
                exchange.body.release()
            self._count(exchange, endpoint)

    def _cors_answered(self, exchange: Exchange) -> bool:
        """Whether that was a preflight, which needs no more than its headers."""
        origin = exchange.header(b"origin")
        if origin is None:
            return False
        exchange.extra = self._cors.headers(origin)
        if exchange.method != "OPTIONS" or b"access-control-request-method" not in exchange.headers:
            return False
        allowed = self._cors.preflight(origin)
        if allowed is None:
            return False
        exchange.extra = [*exchange.extra, *allowed]
        return True

    async def _produce(self, exchange: Exchange, topic: str, partition: int | None) -> None:
        content_type = _content_type(exchange)
        if content_type == LINES:
            stored = await bulk.produce(self._proxy, exchange, topic, partition)
            self._records.add(stored, "lines")
            return
        format, offers = FORMATS[content_type]
        answer_type = choose(exchange.header(b"accept"), offers)
        key = self._idempotency_key(exchange)
        limits = self._proxy.limits
        body = await exchange.open_body(limits.request_bytes, limits.request_s, self._proxy.memory).read()

        async def make() -> Answer:
            answer, stored = await produce(self._proxy, topic, partition, body, format)
            self._records.add(stored, format.name)
            return answer

        try:
            with trio.fail_after(limits.request_s):
                if key is None:
                    answer, replayed = await make(), False
                else:
                    what = hashlib.sha256(f"{partition} {content_type} ".encode() + body).digest()
                    answer, replayed = await self._answers.once((topic, key), what, make, self._proxy.nursery)
        except trio.TooSlowError:
            raise ApiError(
                50003,
                f"The records were not stored within {limits.request_s:g} s; some or all of them may still be.",
            ) from None
        headers = [(b"idempotent-replayed", b"true")] if replayed else []
        await exchange.answer(answer.status, answer.body, answer_type, headers)

    def _idempotency_key(self, exchange: Exchange) -> str | None:
        key = exchange.header(b"idempotency-key")
        if key is None:
            return None
        if not self._proxy.limits.idempotency_bytes:
            raise ApiError(
                42208, "Idempotency-Key is switched off here (lc.http.proxy.idempotency.max.bytes is 0)."
            )
        if not key or len(key) > LONGEST:
            raise ApiError(42208, f"An Idempotency-Key has 1 to {LONGEST} characters.")
        return key

    async def _rest(self, exchange: Exchange) -> None:
        """Hands the request to Quart, with its body already read where it has one."""
        receive = exchange.receive
        scope = exchange.scope
        if not exchange.all_read:
            limits = self._proxy.limits
            body = await exchange.open_body(limits.request_bytes, limits.request_s, self._proxy.memory).read()
            receive = _once(body, receive)
            # What was gunzipped is as long as it is now.
            kept = [
                (name, value)
                for name, value in scope["headers"]
                if name not in (b"content-encoding", b"content-length", b"transfer-encoding")
            ]
            scope["headers"] = [*kept, (b"content-length", b"%d" % len(body))]
        await self._app(scope, receive, exchange.send)

    def _count(self, exchange: Exchange, endpoint: str) -> None:
        if not exchange.status:
            return
        took = perf_counter() - exchange.began
        method = exchange.method if exchange.method in METHODS else "other"
        self._requests.add(1, endpoint, method, str(exchange.status))
        if endpoint != "stream":  # which ends when its client has had enough
            self._seconds.add(took, endpoint)
        self._log.debug(
            "%s %s %d %.1f ms", exchange.method, exchange.scope["path"], exchange.status, took * 1e3
        )


def _make_relative(scope: Scope) -> None:
    """A target in absolute form (`GET http://host/path`), as clients of a forward proxy send it, means its path: RFC
    9112, 3.2.2."""
    raw = scope["raw_path"]
    scheme, mark, rest = raw.partition(b"://")
    if raw.startswith(b"/") or not mark or scheme.lower() not in (b"http", b"https"):
        return
    path = b"/" + rest.partition(b"/")[2]
    scope["raw_path"] = path
    scope["path"] = unquote(path.decode("ascii"))


def _drop_slash(scope: Scope) -> None:
    """A path with a slash at its end means the one without it, as with other proxies. Two are an empty segment."""
    raw = scope["raw_path"]
    if len(raw) > 1 and raw.endswith(b"/"):
        scope["raw_path"] = raw[:-1]
        scope["path"] = scope["path"][:-1]


def _check_framing(exchange: Exchange) -> None:
    """Two ways to say where a body ends are one too many: what stands in front of us may believe the other one, and
    take the rest for a request (RFC 9112, 6.1)."""
    if b"transfer-encoding" in exchange.headers and b"content-length" in exchange.headers:
        raise ApiError(
            400,
            "A request has Content-Length or Transfer-Encoding, not both.",
            (("connection", "close"),),
        )


def _produce_target(exchange: Exchange) -> tuple[str, int | None] | None:
    """Topic and partition, if this is a request to produce. Raises ApiError for a name that no topic can have."""
    if exchange.method != "POST":
        return None
    parts = exchange.scope["raw_path"].split(b"/")
    if len(parts) not in (3, 5):
        return None
    parts = [unquote_to_bytes(part) for part in parts]
    if (
        parts[1] != b"topics"
        or not parts[2]
        or (len(parts) == 5 and (parts[3] != b"partitions" or not parts[4]))
    ):
        return None
    try:
        topic = parts[2].decode()
    except UnicodeDecodeError:
        raise ApiError(40401, "There is no such topic: its name is not UTF-8.") from None
    if len(parts) == 3:
        return topic, None
    number = parts[4]
    if not number.isdigit() or len(number) > 10 or int(number) >= 2**31:
        raise ApiError(40402, f"Topic {topic!r} has no such partition: {number.decode('latin-1')!r}.")
    return topic, int(number)


def stream_target(path: bytes) -> str | None:
    """The topic, if this is the path of a stream."""
    parts = path.split(b"/")
    if len(parts) == 4 and parts[1] == b"topics" and parts[3] == b"stream" and parts[2]:
        return unquote_to_bytes(parts[2]).decode("utf-8", "replace")  # there is no topic with such a name
    return None


def _content_type(exchange: Exchange) -> str:
    header = exchange.header(b"content-type")
    if header is None:
        raise ApiError(41501, f"The request has no Content-Type; records come as {_known()}.")
    found = media_type(header)
    if found.name in _WITH_SCHEMA:
        raise ApiError(41501, f"{found.name} needs a schema registry, which this broker does not have yet.")
    if found.name not in FORMATS and found.name != LINES:
        raise ApiError(41501, f"Records do not come as {found.name or 'nothing'!r}, but as {_known()}.")
    if found.charset not in (None, "utf-8", "utf8", "us-ascii"):
        raise ApiError(41501, f"JSON is UTF-8, not {found.charset}.")
    return found.name


def _known() -> str:
    return ", ".join([JSON, V2_JSON, V2_BINARY, LINES])


def _endpoint(path: bytes) -> str:
    """What a request is counted as: a few names, whatever clients request."""
    first = path.split(b"/", 2)[1:2]
    known = {
        b"topics": "topics",
        b"consumers": "consumers",
        b"brokers": "brokers",
        b"openapi.json": "openapi",
    }
    return known.get(first[0], "other") if first else "other"


def _once(body: bytes, receive: Receive) -> Receive:
    """A `receive` that hands out this body, and then what the real one says: that the client has left."""
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
