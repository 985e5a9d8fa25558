"""What the handlers of an HTTP service share: the broker, the limits, the life of the service, its failures."""

import logging
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr_sdk.trouble import Complaints, exhausted
from leafcuttr_sdk.web.bodies import BodyMemory
from leafcuttr_sdk.web.settings import WebLimits

if TYPE_CHECKING:
    from leafcuttr_sdk.authentication import Authentication
    from leafcuttr_sdk.broker import Broker


class Failures:
    """Says in the log what has failed."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._complain = Complaints(logger)

    def __call__(self, error: BaseException, what: str) -> str | None:
        """Say that `what` has failed: with its traceback, or in one line a minute where the process has run out of
        something. What that is comes back."""
        reason = exhausted(error)
        if reason is None:
            self._logger.error("%s failed", what, exc_info=error)
        else:
            self._complain(reason, "%s failed: %s", what, reason)
        return reason


class Serving:
    """One start of an HTTP service.

    `nursery` lives as long as the connections: what has to outlive a request is started there. `closing` is set when
    the service stops; what answers for long (a stream, a long poll) watches it and comes to its end, because what
    still runs two seconds later is cut.
    """

    def __init__(
        self,
        broker: "Broker",
        limits: WebLimits,
        authentication: "Authentication",
        nursery: trio.Nursery,
        closing: trio.Event,
    ) -> None:
        self.broker: Final = broker
        self.limits: Final = limits
        self.authentication: Final = authentication
        self.nursery: Final = nursery
        self.closing: Final = closing
        self.memory: Final = BodyMemory(limits)
        self.tell: Final = Failures(broker.logger)
