"""Every request of the registry. A schema by its id, the one request that has to be fast, is answered from bytes that
are ready; `/contexts/{context}` before a path becomes part of the subjects that it names; refusals become answers."""

import json
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from leafcuttr_registry.api import (
    associations,
    compatibility,
    config,
    contexts,
    documentation,
    mode,
    schemas,
    server,
    subjects,
    versions,
)
from leafcuttr_registry.api.endpoints import Api, Restartable, add
from leafcuttr_registry.api.exchange import OFFERS, RegistryExchange
from leafcuttr_registry.api.rights import GuardedRoutes
from leafcuttr_registry.checks import turns
from leafcuttr_registry.counts import RefusalCounts
from leafcuttr_registry.settings import Options
from leafcuttr_registry.subjects.names import DEFAULT, prefix_of
from leafcuttr_registry.subjects.refusals import STORE_FAILED, Refusal
from leafcuttr_sdk.errors import AuthorizationFailed, BrokerError
from leafcuttr_sdk.web.cors import CorsHeaders
from leafcuttr_sdk.web.errors import ApiError
from leafcuttr_sdk.web.exchange import Exchange
from leafcuttr_sdk.web.front import Application
from leafcuttr_sdk.web.negotiation import choose
from leafcuttr_sdk.web.serving import Serving

_BY_ID: Final = b"/schemas/ids/"
_ENDPOINT: Final = "/schemas/ids/{id}"
_CONTEXTS: Final = b"contexts"
_MOST_READY: Final = 32 * 1024 * 1024
"""Bytes of answers that are kept."""


class Front:
    """The handler of the registry's requests."""

    def __init__(self, service: Restartable, options: Options, serving: Serving) -> None:
        self._api = Api(service, options)
        self._serving = serving
        self._routes = GuardedRoutes(self._api)
        self._refusals = RefusalCounts(serving.broker)
        self._ready: dict[bytes, bytes] = {}
        self._ready_size = 0
        self._ready_of: object = None
        for part in (
            server,
            schemas,
            subjects,
            versions,
            compatibility,
            config,
            mode,
            contexts,
            associations,
        ):
            part.attach(self._routes, self._api)
        add(self._routes, "GET", documentation.DOCUMENT, self._document)
        self._described: bytes | None = None

    def application(self) -> Application:
        """What the server serves."""
        return Application(
            self.handle,
            cors=CorsHeaders(
                headers=b"accept, content-type, content-encoding", exposed=b"retry-after, allow"
            ),
            failed=ApiError(50001, "The registry failed; the broker's log says how."),
            exchange=RegistryExchange,
        )

    async def _document(self, exchange: RegistryExchange) -> None:
        if self._described is None:
            described = self._routes.describe(
                documentation.TITLE,
                self._serving.broker.cluster.version,
                documentation.SCHEMAS,
                description=documentation.DESCRIPTION,
                ways=self._serving.authentication.ways,
            )
            self._described = json.dumps(described, separators=(",", ":")).encode()
        await exchange.answer(200, self._described, choose(exchange.header(b"accept"), documentation.TYPES))

    async def handle(self, exchange: Exchange) -> None:
        """Answer a request. Raises ApiError."""
        scope = exchange.scope
        path: bytes = scope["raw_path"]
        if (
            path.startswith(_BY_ID)
            and exchange.method == "GET"
            and not scope["query_string"]
            and not self._serving.broker.security.authorizes
        ):
            body = self._ready_answer(path)
            if body is not None:
                exchange.endpoint = _ENDPOINT
                await exchange.answer(200, body, choose(exchange.header(b"accept"), OFFERS))
                return
        try:
            await self._answer(exchange, path)
        except ApiError as error:
            self._refusals.refused(error.code)
            raise

    async def _answer(self, exchange: Exchange, path: bytes) -> None:
        turns.begin()
        try:
            if path.startswith(b"/contexts/"):
                _into_context(exchange)
            await self._routes(exchange)
        except Refusal as refusal:
            raise self._api.rendering.refusal(refusal) from None
        except BrokerError as error:
            if isinstance(error, AuthorizationFailed) and error.operation is not None:
                raise  # of the client; any other is of the registry itself
            raise ApiError(
                STORE_FAILED, f"{error.code.name}: {error.message}" if error.message else error.code.name
            ) from None

    def _ready_answer(self, path: bytes) -> bytes | None:
        """The answer for a schema by its id, in the default context; None where it is not so simple."""
        registry = self._api.registry
        if self._ready_of is not registry:
            self._forget()
            self._ready_of = registry
        if registry.stale:
            for context, id in registry.stale:
                if context == DEFAULT and (body := self._ready.pop(b"%s%d" % (_BY_ID, id), None)) is not None:
                    self._ready_size -= len(body)
            registry.stale.clear()
        body = self._ready.get(path)
        if body is None:
            given = path[len(_BY_ID) :]
            if not given.isdigit() or len(given) > 10 or given != b"%d" % int(given):
                return None
            entry = registry.state.by_id(DEFAULT, int(given))
            if entry is None:
                return None
            body = self._api.rendering.encoded(entry.content)
            if self._ready_size > _MOST_READY:
                self._forget()
            self._ready[path] = body
            self._ready_size += len(body)
        return body

    def _forget(self) -> None:
        self._ready.clear()
        self._ready_size = 0


def _into_context(exchange: Exchange) -> None:
    """`/contexts/ctx/subjects/a/...` is `/subjects/:.ctx:a/...`; without a subject the prefix goes into the query.
    Raises ApiError 400."""
    parts = exchange.scope["raw_path"].split(b"/")[1:]
    if len(parts) < 3 or parts[0] != _CONTEXTS:
        return  # the list of contexts, or one of them
    try:
        prefix = quote(prefix_of(unquote_to_bytes(parts[1]).decode()), safe="").encode()
    except ValueError as error:
        raise ApiError(400, f"{error}.") from None
    parts = parts[2:]
    query: bytes = exchange.scope["query_string"]
    if parts[0] in (b"config", b"mode"):
        parts[1:2] = [_prefixed(prefix, parts[1] if len(parts) > 1 else b"")]
    elif b"subjects" in parts[:2] and len(parts) > parts.index(b"subjects") + 1 and parts[0] != b"schemas":
        at = parts.index(b"subjects") + 1
        parts[at] = _prefixed(prefix, parts[at])
    elif parts[0] == b"associations":
        query = b"&".join(part for part in (query, b"context=" + prefix) if part)
    elif parts[:2] == [b"schemas", b"ids"]:
        query = _with(query, b"subject", prefix)
    elif parts in ([b"schemas"], [b"subjects"]):
        query = _with(query, b"subjectPrefix", prefix)
    path = b"/" + b"/".join(part for part in parts if part)
    exchange.scope["raw_path"] = path
    exchange.scope["query_string"] = query


def _prefixed(prefix: bytes, subject: bytes) -> bytes:
    named = unquote_to_bytes(subject).startswith((b":.", b":*:"))
    return subject if named else prefix + subject


def _with(query: bytes, name: bytes, prefix: bytes) -> bytes:
    """The query with a prefix before the value of a parameter."""
    parts = [part for part in query.split(b"&") if part]
    for at, part in enumerate(parts):
        key, _, value = part.partition(b"=")
        if key == name:
            parts[at] = key + b"=" + _prefixed(prefix, value)
            return b"&".join(parts)
    return b"&".join([*parts, name + b"=" + prefix])
