"""Which part of the proxy answers a request. Producing, the one path that has to be fast, and streams are served from
here; everything else is Quart's. What all requests share (limits, CORS, errors, counting) is done before, by
`leafcuttr_sdk.web.front`.
"""

import hashlib
from collections.abc import Sequence
from typing import ClassVar, Final
from urllib.parse import unquote_to_bytes

import trio

from leafcuttr_http import bulk
from leafcuttr_http.errors import ApiError
from leafcuttr_http.idempotency import LONGEST, Answer, Answers
from leafcuttr_http.negotiation import (
    AS_JSON,
    JSON,
    LINES,
    METADATA,
    V2_BINARY,
    V2_JSON,
    choose,
    media_type,
)
from leafcuttr_http.produce import produce
from leafcuttr_http.proxy import Proxy
from leafcuttr_http.records import ALL_JSON, BINARY, TEXT_KEYS, Format
from leafcuttr_http.schemas.types import MEDIA_TYPES, PRODUCED, open_registry
from leafcuttr_http.streams import sse, websocket
from leafcuttr_http.streams.streams import Streams
from leafcuttr_sdk.web.asgi import App, Receive, Scope, Send
from leafcuttr_sdk.web.cors import CorsHeaders
from leafcuttr_sdk.web.exchange import Exchange
from leafcuttr_sdk.web.frameworks import LateApp
from leafcuttr_sdk.web.front import Application

FORMATS: Final[dict[str, tuple[Format, tuple[str, ...]]]] = {
    JSON: (TEXT_KEYS, AS_JSON),
    V2_JSON: (ALL_JSON, METADATA),
    V2_BINARY: (BINARY, METADATA),
    "application/vnd.kafka.json+json": (ALL_JSON, METADATA),
    "application/vnd.kafka.binary+json": (BINARY, METADATA),
}
"""What records can be produced as, and the types of the answer."""
_APPLICATION: Final = "leafcuttr_http.app"
_CORS_HEADERS: Final = b"accept, content-type, content-encoding, idempotency-key, last-event-id"
_CORS_EXPOSED: Final = b"idempotent-replayed, retry-after, location, allow"


class ProxyExchange(Exchange):
    """A request of the API: errors have its media types."""

    ERROR_TYPES: ClassVar[Sequence[str]] = METADATA

    def error_type(self) -> str:
        like_json = media_type(self.header(b"content-type") or JSON).name == JSON
        try:
            return choose(self.header(b"accept"), AS_JSON if like_json else METADATA)
        except ApiError:
            return JSON


class Front:
    """The handler of the proxy's requests."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._rest = LateApp(self._app, _APPLICATION)
        self._streams = Streams(proxy)
        self._answers = Answers(proxy.broker.clock, proxy.limits.idempotency_bytes)
        self._records = proxy.broker.metrics.counter(
            "leafcuttr_http_records_produced_total", "Records stored for clients of the HTTP proxy.", "format"
        )

    def application(self) -> Application:
        """What the server serves."""
        return Application(
            self.handle,
            self._websocket,
            CorsHeaders(headers=_CORS_HEADERS, exposed=_CORS_EXPOSED),
            ApiError(50001, "The proxy failed; the broker's log says how."),
            exchange=ProxyExchange,
        )

    async def handle(self, exchange: Exchange) -> None:
        """Answer a request. Raises ApiError, and what the broker raises."""
        target = _produce_target(exchange)
        if target is not None:
            exchange.endpoint = "produce"
            await self._produce(exchange, *target)
            return
        path = exchange.scope["raw_path"]
        if exchange.method in ("GET", "HEAD") and (topic := stream_target(path)) is not None:
            exchange.endpoint = "stream"
            await sse.serve(self._streams, exchange, topic)
        else:
            exchange.endpoint = _endpoint(path)
            await self._rest(exchange)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await websocket.serve(self._streams, scope, receive, send, stream_target(scope["raw_path"]))

    def _app(self) -> App:
        from leafcuttr_http.app import build

        return build(self._proxy)

    async def _produce(self, exchange: Exchange, topic: str, partition: int | None) -> None:
        content_type = _content_type(exchange)
        if content_type == LINES:
            stored = await bulk.produce(self._proxy, exchange, topic, partition)
            self._records.add(stored, "lines")
            return
        with_schemas = PRODUCED.get(content_type)
        if with_schemas is not None:
            # Before the body is read, as all that is known without it.
            open_registry(self._proxy.broker, 41501, content_type)
        format, offers = FORMATS.get(content_type, (ALL_JSON, METADATA))
        answer_type = choose(exchange.header(b"accept"), offers)
        key = self._idempotency_key(exchange)
        limits = self._proxy.limits
        body = await exchange.read()

        async def make() -> Answer:
            if with_schemas is None:
                answer, stored = await produce(self._proxy, topic, partition, body, format)
            else:
                from leafcuttr_http.schemas.producing import produce as produce_with_schemas

                answer, stored = await produce_with_schemas(self._proxy, topic, partition, body, with_schemas)
            self._records.add(stored, with_schemas or format.name)
            return answer

        try:
            with trio.fail_after(limits.request_s):
                if key is None:
                    answer, replayed = await make(), False
                else:
                    # Another client's is another one. There is no end of a line in a key, but anything in a name.
                    name = topic, f"{key}\n{exchange.principal}"
                    what = hashlib.sha256(f"{partition} {content_type} ".encode() + body).digest()
                    answer, replayed = await self._answers.once(name, what, make, self._proxy.nursery)
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
    if found.name not in FORMATS and found.name not in PRODUCED and found.name != LINES:
        raise ApiError(41501, f"Records do not come as {found.name or 'nothing'!r}, but as {_known()}.")
    if found.charset not in (None, "utf-8", "utf8", "us-ascii"):
        raise ApiError(41501, f"JSON is UTF-8, not {found.charset}.")
    return found.name


def _known() -> str:
    return ", ".join([JSON, V2_JSON, V2_BINARY, LINES, *MEDIA_TYPES.values()])


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
