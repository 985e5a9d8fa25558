"""What the handlers of an HTTP service share: the broker, the limits, the life of the service, its failures."""

import logging
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from math import ceil
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio

from leafcuttr_sdk._stopwatch import ChargingStopwatch
from leafcuttr_sdk.principals import ANONYMOUS, Principal, current_principal
from leafcuttr_sdk.trouble import Complaints, exhausted
from leafcuttr_sdk.web.bodies import BodyMemory
from leafcuttr_sdk.web.errors import ApiError
from leafcuttr_sdk.web.settings import WebLimits

if TYPE_CHECKING:
    from leafcuttr_sdk.authentication import Authenticated, Authentication
    from leafcuttr_sdk.broker import Broker
    from leafcuttr_sdk.security import ClientQuota, Operation, ResourceType

T = TypeVar("T")

_LOCALHOST: Final = "127.0.0.1"
peer: Final[ContextVar[tuple[str, int] | None]] = ContextVar("leafcuttr_web_peer", default=None)
"""The address of the client whose request this task serves; None: it came through a Unix socket."""


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
        self._holding: dict[trio.CancelScope, Callable[[], bool]] = {}
        self._end_following: Callable[[], None] | None = None

    # --- the client whose request this task serves ------------------------------------------------------

    @property
    def principal(self) -> Principal:
        """`User:ANONYMOUS` for one that has not logged in."""
        return current_principal() or ANONYMOUS

    @property
    def host(self) -> str:
        """The client's IP address."""
        found = peer.get()
        return _LOCALHOST if found is None else found[0]

    @property
    def acting(self) -> "Broker":
        """The broker, for this client: `Security.acting_for`."""
        return self.broker.security.acting_for(self.principal, host=self.host)

    def allowed(
        self, operation: "Operation", resource_type: "ResourceType", name: str, *, quietly: bool = False
    ) -> bool:
        """`Security.allowed` for this client."""
        return self.broker.security.allowed(
            self.principal, operation, resource_type, name, host=self.host, quietly=quietly
        )

    def check(self, operation: "Operation", resource_type: "ResourceType", name: str) -> None:
        """Raise AuthorizationFailed if this client is not `allowed`; it is answered with 403."""
        self.broker.security.check(self.principal, operation, resource_type, name, host=self.host)

    @property
    def quota(self) -> "ClientQuota | None":
        """What holds for this client; None: no quota does."""
        return self.broker.security.quota(self.principal)

    async def admitted(self) -> "ClientQuota | None":
        """`quota`, once a client that is above it has waited. Raises ApiError 429 where it would for too long."""
        quota = self.quota
        if quota is None:
            return None
        wait_s = quota.wait_s()
        if wait_s > self.limits.request_s:
            raise ApiError(
                429, f"The quota is used up for {wait_s:.0f} s.", (("retry-after", str(ceil(wait_s))),)
            )
        if wait_s > 0:
            await trio.sleep(wait_s)
        return quota

    async def sent(self, size: int) -> None:
        """So many bytes of records were sent to this client, by other means than `acting`: wait for as long as its
        quota wants."""
        quota = self.quota
        if quota is not None:
            quota.consumed(size)
            await trio.sleep(quota.wait_s())

    async def measured(self, work: Coroutine[Any, Any, T]) -> T:
        """Do some work, whose time of the event loop is of this client's quota from its first step on, if it has one of
        that now: for what goes on for long, and waits with `sent`."""
        quota = self.quota
        if quota is None or not quota.is_of_time:
            return await work
        found: T = await ChargingStopwatch(quota.spent).measured(work)
        return found

    # --- what ends with a log-in, or with a right -------------------------------------------------------

    @contextmanager
    def while_holds(self, holds: Callable[[], bool]) -> Generator[trio.CancelScope, None, None]:
        """A block that is cancelled once `holds` says no; it is called after each change of users and rights."""
        if self._end_following is None:
            self._end_following = self.broker.security.on_change(self._look)
        with trio.CancelScope() as scope:
            self._holding[scope] = holds
            try:
                if not holds():
                    scope.cancel()
                yield scope
            finally:
                del self._holding[scope]

    @contextmanager
    def while_logged_in(self, client: "Authenticated") -> Generator[trio.CancelScope, None, None]:
        """A block that is cancelled when what the client has shown does not hold any more."""
        with self.while_holds(client.still_holds) if client.still_holds else trio.CancelScope() as scope:
            if client.expires_ms is not None:
                left_ms = client.expires_ms - self.broker.clock.now_ms()
                scope.deadline = trio.current_time() + left_ms / 1000
            yield scope

    def _look(self) -> None:
        for scope, holds in list(self._holding.items()):
            if not holds():
                scope.cancel()

    def end(self) -> None:
        """The service ends."""
        if self._end_following is not None:
            self._end_following()
            self._end_following = None
