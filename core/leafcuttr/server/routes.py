"""From an API key and version to the code that reads, handles and writes it. Found at first use, then cached.

Nothing is registered here: `wire.api` says which APIs exist, and the handler of an API is the module of the same
name in `leafcuttr.handlers`.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from leafcuttr.runtime.pacing import Pace
from leafcuttr.wire.api import APIS, Api
from leafcuttr.wire.codec import (
    Reader,
    Region,
    Writer,
    reader,
    reader_in_steps,
    writer,
    writer_in_steps,
)
from leafcuttr.wire.error_codes import ErrorCodes, error_codes, error_codes_in_steps
from leafcuttr.wire.frame import begin_response, end_response
from leafcuttr_sdk.trouble import import_late

FEW_ELEMENTS: Final = 500
"""What is read or written at once, some 0.5 ms at most; a message with more array elements goes in turns."""


@dataclass(frozen=True, slots=True)
class Route:
    """One API in one version. `flexible` headers end with tagged fields (KIP-482)."""

    api: Api
    version: int
    read: Reader[Any]
    handle: Callable[..., Any]
    write: Writer[Any]
    errors: ErrorCodes
    flexible_request: bool
    response_header: int

    def frame(self, correlation_id: int, response: Any) -> tuple[bytearray, list[Region]]:
        """The complete answer, size included; `regions` are the file ranges that belong into it.

        Raises ManyElements.
        """
        out = bytearray()
        regions: list[Region] = []
        begin_response(out, correlation_id, self.response_header)
        self.write(response, out, regions, FEW_ELEMENTS)
        end_response(out, 0, regions)
        return out, regions

    async def frame_in_turns(self, correlation_id: int, response: Any) -> tuple[bytearray, list[Region]]:
        """`frame` for an answer of any length, with others in between."""
        out = bytearray()
        regions: list[Region] = []
        begin_response(out, correlation_id, self.response_header)
        await Pace().through(writer_in_steps(self.api.response, self.version)(response, out, regions))
        end_response(out, 0, regions)
        return out, regions

    async def errors_in_turns(self, response: Any) -> list[int]:
        """`errors` of an answer of any length, with others in between."""
        return await Pace().through(error_codes_in_steps(self.api.response)(response))

    async def read_in_turns(self, buffer: memoryview, at: int, end: int) -> Any:
        """`read` for a request of any length, with others in between."""
        request, _ = await Pace().through(reader_in_steps(self.api.request, self.version)(buffer, at, end))
        return request


_routes: Final[dict[int, Route]] = {}

REFUSED: Final = Route(
    api=Api(-1, "", 0, -1, 0, "", 0),  # type: ignore[arg-type]
    version=-1,
    read=lambda buffer, at, end, allowed=0: (None, at),
    handle=lambda *_: None,
    write=lambda message, out, regions, allowed=0: None,
    errors=lambda message: [],
    flexible_request=False,
    response_header=0,
)
"""Stands for what this broker does not speak."""


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
    name = f"leafcuttr.handlers.{api.module}"
    import_late(name)
    handler = importlib.import_module(name)
    return Route(
        api=api,
        version=version,
        read=reader(api.request, version),
        handle=handler.handle,
        write=writer(api.response, version),
        errors=error_codes(api.response),
        flexible_request=api.request_header_version(version) >= 2,
        response_header=api.response_header_version(version),
    )
