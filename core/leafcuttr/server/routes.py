"""From an API key and version to the code that reads, handles and writes it. Found at first use, then cached.

Nothing is registered here: `wire.api` says which APIs exist, and the handler of an API is the module of the same
name in `leafcuttr.handlers`.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from leafcuttr.log.files import FileRegion
from leafcuttr.wire.api import APIS, Api
from leafcuttr.wire.codec import reader, writer

Regions = list[tuple[int, FileRegion]]


@dataclass(frozen=True, slots=True)
class Route:
    """One API in one version. `flexible` headers end with tagged fields (KIP-482)."""

    api: Api
    version: int
    read: Callable[[memoryview, int, int], tuple[Any, int]]
    handle: Callable[..., Any]
    write: Callable[[Any, bytearray, Regions], None]
    flexible_request: bool
    flexible_response: bool

    def frame(self, correlation_id: int, response: Any) -> tuple[bytearray, Regions]:
        """The complete answer, size included; `regions` are the file ranges that belong into it."""
        out = bytearray(4)
        out += correlation_id.to_bytes(4, "big", signed=True)
        if self.flexible_response:
            out.append(0)
        regions: Regions = []
        self.write(response, out, regions)
        size = len(out) - 4
        for _, region in regions:
            size += region.length
        out[:4] = size.to_bytes(4, "big")
        return out, regions


_routes: Final[dict[int, Route]] = {}


def route(key_and_version: int) -> Route | None:
    """The route for the first four bytes of a request header, or None for what this broker does not speak."""
    found = _routes.get(key_and_version)
    if found is None:
        found = _find(key_and_version >> 16, key_and_version & 0xFFFF)
        if found is not None:
            _routes[key_and_version] = found
    return found


def _find(key: int, version: int) -> Route | None:
    api = APIS.get(key)
    if api is None or not api.serves(version):
        return None
    handler = importlib.import_module(f"leafcuttr.handlers.{api.module}")
    return Route(
        api=api,
        version=version,
        read=reader(api.request, version),
        handle=handler.handle,
        write=writer(api.response, version),
        flexible_request=api.request_header_version(version) >= 2,
        flexible_response=api.response_header_version(version) >= 1,
    )
