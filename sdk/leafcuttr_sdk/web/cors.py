"""Which pages of other origins may call a service from a browser (the Fetch standard's CORS protocol), and what is
refused of those that may not."""

from typing import Final, NamedTuple

from leafcuttr_sdk._origins import Origins
from leafcuttr_sdk.web.asgi import RawHeaders
from leafcuttr_sdk.web.errors import ApiError
from leafcuttr_sdk.web.negotiation import media_type

_MAX_AGE: Final = b"600"
_SENT_UNASKED: Final = frozenset(
    {
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/plain",
        "text/ping",
        "application/csp-report",
    }
)
"""Types of a body that a browser posts for a page without a preflight request: those of forms and scripts (Fetch,
2.2.2), of links with `ping` (HTML, 4.6.5), and of reports that a page's policy asks for (CSP, 5)."""


class CorsHeaders(NamedTuple):
    """What pages of allowed origins may send and read, each a list as it stands in a header."""

    methods: bytes = b"GET, HEAD, POST, PUT, DELETE, OPTIONS"
    headers: bytes = b"accept, authorization, content-type, content-encoding, last-event-id"
    """Of requests, beside those that every page may send."""
    exposed: bytes = b"retry-after, location, allow"
    """Headers of answers that a page may read, beside those that every page may."""


class Cors:
    """`origins` as this setting has them, in lower case; empty: no origin but the service's own."""

    def __init__(self, origins: frozenset[str], allowed: CorsHeaders, setting: str) -> None:
        self._origins = origins
        self._pages = Origins(origins)
        self._setting = setting
        self._every = "*" in origins
        self._allowed = allowed

    def headers(self, origin: str) -> RawHeaders:
        """What every answer to a page of this origin carries."""
        exposed = (b"access-control-expose-headers", self._allowed.exposed)
        if self._every:
            return [(b"access-control-allow-origin", b"*"), exposed]
        if not self._origins:
            return []
        if origin.lower() not in self._origins:
            # The answer depends on the origin: a cache must not give it to one that is allowed.
            return [(b"vary", b"origin")]
        return [(b"access-control-allow-origin", origin.encode("latin-1")), exposed, (b"vary", b"origin")]

    def preflight(self, origin: str) -> RawHeaders | None:
        """What the answer to a preflight carries; None where the origin is not allowed."""
        if not self._every and origin.lower() not in self._origins:
            return None
        return [
            (b"access-control-allow-methods", self._allowed.methods),
            (b"access-control-allow-headers", self._allowed.headers),
            (b"access-control-max-age", _MAX_AGE),
        ]

    def check_post(self, origin: str, host: str, content_type: str | None) -> None:
        """A POST that a browser sends for a page of any origin without asking first, as a form does, with what the
        browser keeps of credentials. Raises ApiError 403 if the page may not call: that it cannot read the answer would
        come too late. All other requests of pages that change something are preceded by a preflight."""
        if content_type is not None and media_type(content_type).name not in _SENT_UNASKED:
            return
        if not self._pages.allows(origin, host):
            raise ApiError(
                403, f"Pages of {origin[:200]!a} may not send this; {self._setting} names those that may."
            )
