"""What every endpoint works with: the broker, the limits, the life of the service."""

from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_http.bodies import BodyMemory
from leafcuttr_http.errors import ApiError
from leafcuttr_http.settings import Limits
from leafcuttr_sdk.trouble import Complaints, exhausted

if TYPE_CHECKING:
    from leafcuttr_sdk.broker import Broker


class Proxy:
    """One start of the service.

    `nursery` lives as long as the connections: what has to outlive a request is started there. `closing` is set when
    the service stops; what answers for long (a stream, a long poll) watches it and comes to its end, because what
    still runs when the grace is over is cut.
    """

    def __init__(self, broker: "Broker", limits: Limits, nursery: trio.Nursery, closing: trio.Event) -> None:
        self.broker: Final = broker
        self.limits: Final = limits
        self.nursery: Final = nursery
        self.closing: Final = closing
        self.memory: Final = BodyMemory(limits.buffered_bytes)
        self.streams = 0
        self._complain = Complaints(broker.logger)

    def tell(self, error: BaseException, what: str) -> str | None:
        """Say in the log that `what` has failed: with its traceback, or in one line a minute where the process has run
        out of something. What that is comes back."""
        reason = exhausted(error)
        if reason is None:
            self.broker.logger.error("%s failed", what, exc_info=error)
        else:
            self._complain(reason, "%s failed: %s", what, reason)
        return reason

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
