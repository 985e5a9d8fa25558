"""The settings of an HTTP service, for its hook `leafcuttr_register_settings`, and their values. This module imports
nothing that the extra brings."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from leafcuttr_sdk.settings import Setting, Type, authentication_settings, serving_settings

if TYPE_CHECKING:
    from leafcuttr_sdk.settings import Settings


def web_settings(prefix: str, port: int) -> Iterator[Setting]:
    """Those of `serving_settings(prefix, port)` and `authentication_settings(prefix)`, and the limits of an HTTP
    service below the same prefix."""
    own = {setting.name: setting for setting in _of_connections(prefix)}
    for setting in serving_settings(prefix, port):
        yield own.get(setting.name, setting)
    yield from authentication_settings(prefix)
    yield Setting(
        f"{prefix}.max.request.bytes",
        Type.INT,
        10 * 1024 * 1024,
        "The largest body of a request, also once it is decompressed. A larger one is answered with 413 before it is "
        "read.",
        unit="bytes",
        minimum=1024,
        maximum=1024 * 1024 * 1024,
    )
    yield Setting(
        f"{prefix}.max.buffered.bytes",
        Type.LONG,
        64 * 1024 * 1024,
        "The memory for the bodies of all requests under way; a request beyond it is answered with 503.",
        unit="bytes",
        minimum=1024,
        maximum=2**40,
    )
    yield Setting(
        f"{prefix}.request.timeout.ms",
        Type.INT,
        30_000,
        "How long the body of a request may take to arrive. A client has as long for taking each piece of an answer.",
        unit="ms",
        minimum=10,
        maximum=3_600_000,
    )
    yield Setting(
        f"{prefix}.cors.allowed.origins",
        Type.LIST,
        (),
        "Origins whose pages may call the service from a browser, as https://example.com; * for every one.",
    )


def _of_connections(prefix: str) -> Iterator[Setting]:
    """Those of `serving_settings` that are about requests here."""
    yield Setting(
        f"{prefix}.max.connections",
        Type.INT,
        1000,
        "How many connections the service keeps at a time. One more is answered with 503 and closed.",
        minimum=1,
        maximum=1_000_000,
    )
    yield Setting(
        f"{prefix}.idle.timeout.ms",
        Type.INT,
        60_000,
        "How long a connection may wait for the next request, and for its head to be complete.",
        unit="ms",
        minimum=10,
        maximum=86_400_000,
    )


class WebLimits(NamedTuple):
    """The values in the units that the code uses: bytes and seconds."""

    prefix: str
    """Of the settings, for messages that name one."""
    request_bytes: int
    buffered_bytes: int
    request_s: float
    """For the body of a request to arrive, and for each piece of an answer to be taken."""
    origins: frozenset[str]
    """In lower case; `*` for every one."""


def read_limits(values: "Settings", prefix: str) -> WebLimits:
    """The values of `web_settings(prefix, ...)`."""
    return WebLimits(
        prefix=prefix,
        request_bytes=values.int(f"{prefix}.max.request.bytes"),
        buffered_bytes=values.int(f"{prefix}.max.buffered.bytes"),
        request_s=values.int(f"{prefix}.request.timeout.ms") / 1000,
        origins=_origins(values.list(f"{prefix}.cors.allowed.origins")),
    )


def _origins(values: Iterable[str]) -> frozenset[str]:
    return frozenset(value.rstrip("/").lower() for value in values if value)
