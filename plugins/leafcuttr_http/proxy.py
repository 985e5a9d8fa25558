"""What every endpoint works with: the broker, the limits, the life of the service."""

from typing import TYPE_CHECKING, Final

from leafcuttr_http.errors import ApiError
from leafcuttr_http.schemas.shared import Schemas
from leafcuttr_http.settings import Limits

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.web.serving import Serving


class Proxy:
    """One start of the service. What clients want is done by `acting`; `broker` is the plugin's own.

    `nursery`, `closing` and `tell` are those of `leafcuttr_sdk.web.serving.Serving`; `ways` are those of its
    authentication.
    """

    def __init__(self, serving: "Serving", limits: Limits) -> None:
        self.serving: Final = serving
        self.broker: Final = serving.broker
        self.limits: Final = limits
        self.ways: Final = serving.authentication.ways
        self.nursery: Final = serving.nursery
        self.closing: Final = serving.closing
        self.tell: Final = serving.tell
        self.schemas: Final = Schemas(serving.broker)
        self.streams = 0

    @property
    def acting(self) -> "Broker":
        """The broker, for the client whose request this task serves."""
        return self.serving.acting

    def open_stream(self) -> "_Stream":
        """A context for an event stream or a WebSocket. Raises ApiError 503 where there are too many."""
        if self.streams >= self.limits.streams:
            raise ApiError(
                503, f"{self.streams} streams are open, as many as lc.http.proxy.max.streams allows."
            )
        return _Stream(self)


class _Stream:
    """Counts while it is open."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    def __enter__(self) -> None:
        self._proxy.streams += 1

    def __exit__(self, *_: object) -> None:
        self._proxy.streams -= 1
