"""Which pages of other origins may call the proxy from a browser (the Fetch standard's CORS protocol)."""

from typing import Final

from leafcuttr_http.asgi import RawHeaders

_METHODS: Final = b"GET, HEAD, POST, PUT, DELETE, OPTIONS"
_HEADERS: Final = b"accept, content-type, content-encoding, idempotency-key, last-event-id"
_EXPOSED: Final = b"idempotent-replayed, retry-after, location, allow"
_MAX_AGE: Final = b"600"


class Cors:
    """`origins` as the setting has them, in lower case; empty: no origin but the proxy's own."""

    def __init__(self, origins: frozenset[str]) -> None:
        self._origins = origins
        self._every = "*" in origins

    def headers(self, origin: str) -> RawHeaders:
        """What every answer to a page of this origin carries."""
        if self._every:
            return [(b"access-control-allow-origin", b"*"), (b"access-control-expose-headers", _EXPOSED)]
        if not self._origins:
            return []
        if origin.lower() not in self._origins:
            # The answer depends on the origin: a cache must not give it to one that is allowed.
            return [(b"vary", b"origin")]
        return [
            (b"access-control-allow-origin", origin.encode("latin-1")),
            (b"access-control-expose-headers", _EXPOSED),
            (b"vary", b"origin"),
        ]

    def preflight(self, origin: str) -> RawHeaders | None:
        """What the answer to a preflight carries; None where the origin is not allowed."""
        if not self._every and origin.lower() not in self._origins:
            return None
        return [
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-allow-headers", _HEADERS),
            (b"access-control-max-age", _MAX_AGE),
        ]
