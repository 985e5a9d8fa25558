"""The connections of a cluster's client: one link for each address and lane, connected when it is needed.

A link that could not be connected is tried again only after a time that doubles from `reconnect.backoff.ms` to
`reconnect.backoff.max.ms`, with a jitter of 20 %, so that many clients do not come back at the same moment. Which
broker has which address is the business of `cluster`.
"""

import random
from collections.abc import Container, Iterable
from math import inf
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr.client.connection import ClientConnection
from leafcuttr.client.errors import ClientError
from leafcuttr.client.settings import ClientSettings, HostPort

if TYPE_CHECKING:
    from leafcuttr.client.tls import TlsContexts

_JITTER: Final = 0.2


class Link:
    """The way to one address."""

    def __init__(
        self,
        address: HostPort,
        settings: ClientSettings,
        contexts: "TlsContexts | None",
        nursery: trio.Nursery,
    ) -> None:
        self.address = address
        self.not_before = -inf
        """When it may be connected again, in trio's time."""
        self._contexts = contexts
        self._settings = settings
        self._nursery = nursery
        self._connection: ClientConnection | None = None
        self._failures = 0
        self._one_at_a_time = trio.Lock()

    @property
    def is_open(self) -> bool:
        return self._connection is not None and self._connection.is_open

    @property
    def open_connection(self) -> ClientConnection | None:
        """Its connection, if it has one now."""
        return self._connection if self.is_open else None

    async def connected(self) -> ClientConnection:
        """Its connection; connects if it has none, after what is left of the back-off. Raises ClientError."""
        if (connection := self._usable()) is not None:
            return connection
        async with self._one_at_a_time:
            if (connection := self._usable()) is not None:
                return connection
            await trio.sleep_until(max(self.not_before, trio.current_time()))
            try:
                connection = ClientConnection(self.address, self._settings, self._contexts)
                self._connection = await self._nursery.start(connection.run)
            except ClientError:
                self._failures += 1
                self._back_off(trio.current_time())
                raise
            self._failures = 0
            assert self._connection is not None
            return self._connection

    def close(self, error: ClientError) -> None:
        if self._connection is not None:
            self._connection.fail(error)

    def _usable(self) -> ClientConnection | None:
        connection = self._connection
        if connection is None or connection.is_open:
            return connection
        self._connection = None
        self._back_off(connection.ended_at)
        return None

    def _back_off(self, since: float) -> None:
        """One that was lost counts as the first failure, at the time at which it was lost."""
        settings = self._settings
        delay = settings.reconnect_backoff_s * 2.0 ** min(max(self._failures - 1, 0), 30)
        delay = min(delay, max(settings.reconnect_backoff_max_s, settings.reconnect_backoff_s))
        self.not_before = since + delay * random.uniform(1 - _JITTER, 1 + _JITTER)


class Links:
    """All links of a cluster, and what is wrong with them."""

    def __init__(self, settings: ClientSettings, nursery: trio.Nursery) -> None:
        self._settings = settings
        self._nursery = nursery
        self._contexts = _contexts(settings)
        self._links: dict[tuple[HostPort, str], Link] = {}
        self._trouble: dict[HostPort, str] = {}

    @property
    def trouble(self) -> str | None:
        """One line on the addresses that do not work now; None if all do."""
        if not self._trouble:
            return None
        first = next(iter(self._trouble.values()))
        more = len(self._trouble) - 1
        return f"{first} (and {more} more)" if more else first

    def to(self, address: HostPort, lane: str) -> Link:
        """The link to an address, which need not be connected."""
        found = self._links.get((address, lane))
        if found is None:
            found = self._links[address, lane] = Link(address, self._settings, self._contexts, self._nursery)
        return found

    def drop(self, lane: str, error: ClientError) -> None:
        """Close the links of this lane, to all addresses, and forget them."""
        for address, other in [key for key in self._links if key[1] == lane]:
            self._links.pop((address, other)).close(error)

    def works(self, address: HostPort) -> None:
        """A broker has answered there."""
        if self._trouble:
            self._trouble.pop(address, None)

    def fails(self, address: HostPort, error: ClientError) -> None:
        """Nothing works there now, for this reason."""
        self._trouble[address] = str(error)

    def keep(self, addresses: Container[HostPort], error: ClientError) -> None:
        """Close the links to all others, with this error for what is under way there; they are no trouble any more."""
        for address, lane in [key for key in self._links if key[0] not in addresses]:
            self._links.pop((address, lane)).close(error)
        self.forgive([address for address in self._trouble if address not in addresses])

    def forgive(self, addresses: Iterable[HostPort]) -> None:
        """It does not matter what is wrong with these: the cluster was reached by another."""
        for address in addresses:
            self._trouble.pop(address, None)


def _contexts(settings: ClientSettings) -> "TlsContexts | None":
    if settings.tls is None:
        return None
    from leafcuttr.client.tls import TlsContexts

    return TlsContexts(settings.tls)
