"""Records over HTTP: the manual's `POST /topics/{topic}`, and around it the REST proxy API v2.

This module is imported at every start, also where the proxy is off: it says what there is and imports nothing heavy.
The server itself begins in `service.py`.
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
