"""Media types: what a body is, and which of the types that an answer can have its client wants (RFC 9110, 12.5.1)."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from leafcuttr_sdk.web.errors import ApiError

JSON: Final = "application/json"
_REMEMBERED: Final = 256
"""A longer header is read anew each time: what is remembered must not grow with what clients send."""


class MediaType(NamedTuple):
    """`type/subtype` in lower case, and the charset if one is named."""

    name: str
    charset: str | None = None


def media_type(header: str) -> MediaType:
    """What a Content-Type says."""
    return _media_type(header) if len(header) <= _REMEMBERED else _media_type.__wrapped__(header)


@lru_cache(256)
def _media_type(header: str) -> MediaType:
    name, *parameters = header.split(";")
    charset = None
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "charset":
            charset = value.strip().strip('"').lower()
    return MediaType(name.strip().lower(), charset)


def choose(accept: str | None, offers: Sequence[str]) -> str:
    """The one of `offers` that the client likes best, the first of those it likes alike. Raises ApiError 406."""
    if not accept:
        return offers[0]
    return _choose(accept, offers) if len(accept) <= _REMEMBERED else _choose.__wrapped__(accept, offers)


@lru_cache(256)
def _choose(accept: str, offers: Sequence[str]) -> str:
    wanted = [_range(part) for part in accept.split(",") if part.strip()]
    best, best_quality = None, 0.0
    for offer in offers:
        quality = _quality(offer, wanted)
        if quality > best_quality:
            best, best_quality = offer, quality
    if best is None:
        raise ApiError(406, f"None of what Accept names can be answered, only {', '.join(offers)}.")
    return best


def _range(part: str) -> tuple[str, float]:
    name, *parameters = part.split(";")
    quality = 1.0
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip().lower() == "q":
            try:
                quality = min(max(float(value), 0.0), 1.0)
            except ValueError:
                quality = 0.0
    return name.strip().lower(), quality


def _quality(offer: str, wanted: list[tuple[str, float]]) -> float:
    """That of the most specific range that the offer is in."""
    kind = offer.partition("/")[0] + "/*"
    for name in (offer, kind, "*/*"):
        found = [quality for wish, quality in wanted if wish == name]
        if found:
            return max(found)
    return 0.0
