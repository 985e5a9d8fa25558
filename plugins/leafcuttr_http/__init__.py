"""Records over HTTP: the manual's `POST /topics/{topic}`, and around it the REST proxy API v2.

This module is imported at every start, also where the proxy is off: it says what there is and imports nothing heavy.

The way of a request:
    service, connection     listening, one connection, the stop; the protocols are hypercorn's
    front                   every request comes through here: limits, CORS, errors, counting
    pieces                  answers over HTTP/2 that a client has to take in time
    exchange, bodies        one request and its answer below any framework; reading a body within its limits (`asgi`:
                            the types of both)
    lazy_app, app, parts    Quart, for all but producing and streams; what a part of it is made of
Producing:
    produce, bulk           a body of records; a record a line
    envelope, records       from JSON text to raw records; from those to bytes
    idempotency             answers kept by Idempotency-Key
The other endpoints:
    metadata, `consumers`, `streams`
What all of them use:
    proxy, settings         the broker and the life of the service; what can be set
    errors, negotiation     codes and messages; media types
    cors                    which pages of other origins may call
    openapi, documentation  words of OpenAPI for the pages of the parts; the document
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from leafcuttr_sdk.plugin import Plugin
from leafcuttr_sdk.services import Service, ServiceSpec

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.settings import Setting

PLUGIN: Final = Plugin(
    name="http",
    api_version=1,
    summary="Produce and consume over HTTP: REST proxy API v2, bulk uploads, streams",
    enabled_by="lc.http.proxy.enable",
    extra="http",
    modules=("hypercorn", "quart", "quart_trio"),
)


def leafcuttr_register_settings() -> "Iterable[Setting]":
    from leafcuttr_http.settings import settings

    return settings()


def leafcuttr_register_services() -> Iterable[ServiceSpec]:
    return [ServiceSpec("http", _make)]


def _make(broker: "Broker") -> Service:
    from leafcuttr_http.service import HttpProxy

    return HttpProxy(broker)
