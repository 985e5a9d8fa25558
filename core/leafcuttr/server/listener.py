"""Accepting connections, within the limits on their number, and starting a task for each.

`max.connections` makes the listeners wait until one ends, as Kafka does, and `max.connection.creation.rate` until the
next second; both may also be given for one listener. `max.connections.per.ip` (and its overrides) closes the new one at
once. A full descriptor table makes the listener pause; nothing else notices. Connections never
get the descriptors that the logs may need.
"""

import errno
import itertools
import logging
import socket
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import trio

from leafcuttr.config.listeners import Listener
from leafcuttr.handlers.context import context_of
from leafcuttr.runtime.complaints import Complaints
from leafcuttr.runtime.connection_budget import most_of_clients
from leafcuttr.server.connection import Connection
from leafcuttr.server.memory import RequestMemory
from leafcuttr.server.queue import RequestQueue
from leafcuttr.server.rate import CreationRate
from leafcuttr.server.reactor import Reactor
from leafcuttr.server.transport import MakeTransport, PlainTransport, Transport, accept
from leafcuttr.state.broker import Broker
from leafcuttr.wire.api import ApiKey

if TYPE_CHECKING:
    from leafcuttr.net.live_certificates import LiveCertificates
    from leafcuttr.server.address_rates import AddressRates
    from leafcuttr.server.handshakes import Handshakes
    from leafcuttr.server.login.logins import Logins
    from leafcuttr.server.login.sessions import Sessions

logger = logging.getLogger(__name__)

_NO_DESCRIPTORS: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE_S: Final = 0.25
_AT_ONCE: Final = 16
"""Connections that are accepted before others have their turn: each takes some tenths of a millisecond."""
_RECHECK_S: Final = 1.0
_MOST_REFUSED: Final = 1_000  # addresses of which it is remembered that their refusal was logged


class Connections:
    """Every open connection of the broker, and how many each address has."""

    def __init__(self, broker: Broker, make_transport: MakeTransport = PlainTransport) -> None:
        self._broker = broker
        self.make_transport = make_transport
        self._numbers = itertools.count(1)
        self._by_address: dict[str, int] = {}
        self._refused: set[str] = set()
        self._ended = trio.Event()
        self._memory = RequestMemory(broker.settings.int("queued.max.request.bytes"))
        self._overrides_text = ""
        self._overrides: Mapping[str, int] = {}
        self._complain = Complaints(logger)
        self._queue = RequestQueue(broker.settings.int("queued.max.requests"))
        self._rate = CreationRate(
            lambda: broker.settings.int("max.connection.creation.rate"), trio.current_time
        )
        self._of_listeners: dict[str, _ListenerLimits] = {}
        self.reactor = Reactor(
            broker.clock, self._queue, broker.runtime.writers, broker.counts.answered[ApiKey.PRODUCE]
        )
        self.all: set[Connection] = set()
        self.accepted: dict[str, int] = {}  # by listener
        self.refused: dict[str, int] = {}  # by listener: max.connections.per.ip
        self.certificates: Mapping[str, LiveCertificates] = {}  # by listener with TLS
        self._address_rates: AddressRates | None = None
        self._handshakes: Handshakes | None = None
        self._logins: Logins | None = None
        self.sessions: Sessions | None = None  # once a client logs in
        self._has_sessions: Final = trio.Event()
        self.pauses = 0  # how often accepting has stopped: max.connections, their rate, or no descriptors
        self.stopping = False
        self._measure()
        broker.quotas.on_change(self._quotas_changed)

    @property
    def not_admitted(self) -> Counter[str]:
        """Connections whose handshake of TLS, or first log-in, has failed, by listener."""
        found: Counter[str] = Counter()
        for step in (self._handshakes, self._logins):
            if step is not None:
                found += step.failed
        return found

    @property
    def memory(self) -> RequestMemory:
        return self._memory

    def full(self, listener: Listener) -> bool:
        """The limit of open files may be changed while the process runs, so it is read each time."""
        broker = self._broker
        descriptors = most_of_clients(broker.logs.most_open_files, broker.plugged.connections)
        most = min(self._broker.settings.int("max.connections"), descriptors)
        return len(self.all) >= most or self._of_listener(listener).full

    def too_fast_s(self, listener: Listener) -> float:
        """For how long no connection may be accepted because of those that were, in seconds."""
        return max(self._rate.wait_s(), self._of_listener(listener).rate.wait_s())

    def _of_listener(self, listener: Listener) -> "_ListenerLimits":
        found = self._of_listeners.get(listener.name)
        if found is None:
            found = self._of_listeners[listener.name] = _ListenerLimits(self._broker, listener)
        return found

    def stop_those_of(self, listener: Listener) -> None:
        """End the connections that came in there, each after the request at hand."""
        for connection in self.all:
            if connection.listener == listener.name:
                connection.stop()

    async def wait_to_accept(self, listener: Listener) -> None:
        """Wait until another connection may be accepted."""
        text = self._broker.settings.text("max.connections.per.ip.overrides")
        if text != self._overrides_text:
            # A name has to be looked up, which may take long.
            try:
                self._overrides = await trio.to_thread.run_sync(_overrides, text)
            except RuntimeError as error:  # no thread for it; the next connection has it tried again
                self._complain("overrides", "max.connections.per.ip.overrides is not applied yet: %s", error)
            else:
                self._overrides_text = text
        if self.full(listener):
            self.pauses += 1
            self._complain(
                "full",
                "accepting no more than the %d connections that are open (max.connections, or the process's limit "
                "of open files)",
                len(self.all),
                level=logging.WARNING,
            )
        while self.full(listener):
            with trio.move_on_after(_RECHECK_S):
                await self._ended.wait()
        if self.too_fast_s(listener) > 0:
            self.pauses += 1
        while (wait_s := self.too_fast_s(listener)) > 0:
            self._complain(
                "fast",
                "new connections wait: more come than max.connection.creation.rate allows",
                level=logging.WARNING,
            )
            await trio.sleep(wait_s)

    async def drained(self) -> None:
        """Wait until no connection is left."""
        while self.all:
            await self._ended.wait()

    def add(self, transport: Transport, listener: Listener, host: str, port: int) -> Connection | None:
        """A connection over an accepted transport, or None if its address may not have another."""
        limits = self._of_listener(listener)
        self._rate.took()
        limits.rate.took()
        count = self._by_address.get(host, 0)
        name = listener.name
        if count >= self._overrides.get(host, self._broker.settings.int("max.connections.per.ip")):
            self.refused[name] = self.refused.get(name, 0) + 1
            if host not in self._refused:
                if len(self._refused) >= _MOST_REFUSED:
                    self._refused.clear()  # where none at all are allowed, none ends either
                self._refused.add(host)
                logger.warning(
                    "refusing %s on %s: it has %d connections (max.connections.per.ip)",
                    host,
                    listener.name,
                    count,
                )
            return None
        context = context_of(listener, host, port, next(self._numbers))
        connection = Connection(self._broker, transport, context, self._memory, self._queue, self.reactor)
        self.all.add(connection)
        self.accepted[name] = self.accepted.get(name, 0) + 1
        limits.open += 1
        self._by_address[host] = count + 1
        return connection

    async def serve(
        self, connection: Connection, transport: Transport, listener: Listener, host: str
    ) -> None:
        """Run one connection to its end and close it."""
        try:
            if self._broker.quotas.of_addresses and not await self._has_turn(transport, listener, host):
                return
            if not self.stopping and (
                listener.protocol == "PLAINTEXT" or await self._is_admitted(transport, connection, listener)
            ):
                await connection.run()
        finally:
            self.all.discard(connection)
            if self.sessions is not None:
                self.sessions.forget(connection)
            self._of_listener(listener).open -= 1
            self._refused.discard(host)
            left = self._by_address.pop(host) - 1
            if left:
                self._by_address[host] = left
            connection.close()
            self._ended.set()
            self._ended = trio.Event()

    async def _has_turn(self, transport: Transport, listener: Listener, host: str) -> bool:
        """Hold a connection of an address that has opened too many."""
        if self._address_rates is None:
            from leafcuttr.server.address_rates import AddressRates

            self._address_rates = AddressRates(self._broker)
        return await self._address_rates.may_serve(transport, listener.name, host)

    def _quotas_changed(self) -> None:
        self._measure()
        for connection in self.all:
            connection.quotas_changed()

    def _measure(self) -> None:
        """The reactor's rounds, as long as there is a quota of the loop's time."""
        if not self._broker.quotas.of_loop_time:
            self.reactor.measuring = None
        elif self.reactor.measuring is None:
            from leafcuttr.server.throttle import LoopShares

            self.reactor.measuring = LoopShares()

    async def _is_admitted(self, transport: Transport, connection: Connection, listener: Listener) -> bool:
        """TLS and the log-in, as far as the listener has them."""
        if listener.protocol.endswith("SSL") and not await self._has_shaken_hands(
            transport, connection, listener
        ):
            return False
        if not listener.protocol.startswith("SASL") or self.stopping:
            return not self.stopping
        if self._logins is None:
            from leafcuttr.server.login.logins import Logins
            from leafcuttr.server.login.sessions import Sessions

            self._logins = Logins(self._broker)
            self.sessions = Sessions(self._broker.clock)
            self._has_sessions.set()
            self._follow_credentials()
        begun = await self._logins.succeeds(transport, connection.context)
        if begun is None:
            return False
        assert self.sessions is not None
        connection.has_logged_in(begun, self.sessions)
        return True

    async def end_sessions(self) -> None:
        """Each when it is over, until cancelled."""
        await self._has_sessions.wait()
        assert self.sessions is not None
        await self.sessions.run()

    def _follow_credentials(self) -> None:
        """Have connections end when what their clients have logged in with does not hold any more."""
        from leafcuttr.state.security.credential_changes import on_credential_change

        token = trio.lowlevel.current_trio_token()

        def changed() -> None:
            # Once for all that changes together.
            token.run_sync_soon(self._end_withdrawn, idempotent=True)

        on_credential_change(self._broker, changed)

    def _end_withdrawn(self) -> None:
        assert self.sessions is not None
        for connection in list(self.all):
            if connection.is_withdrawn:
                self.sessions.withdraw(connection)

    async def _has_shaken_hands(
        self, transport: Transport, connection: Connection, listener: Listener
    ) -> bool:
        from leafcuttr.net.listener_tls import rules_of
        from leafcuttr.server.handshakes import Handshakes
        from leafcuttr.server.tls_transport import TlsTransport

        if not isinstance(transport, TlsTransport):
            return True
        if self._handshakes is None:
            self._handshakes = Handshakes()
        if listener.protocol != "SSL":
            return await self._handshakes.succeeds(transport, listener.name, connection.peer)
        rules = rules_of(self._broker.settings, listener.name)
        principal = await self._handshakes.principal(transport, listener.name, connection.peer, rules)
        if principal is None:
            return False
        context = connection.context
        context.client = context.client._replace(principal=principal)
        return True

    def stop(self) -> None:
        """Take up no connection any more, and end the others after the request at hand."""
        self.stopping = True
        if self._address_rates is not None:
            self._address_rates.stop()
        if self._handshakes is not None:
            self._handshakes.stop()
        if self._logins is not None:
            self._logins.stop()
        for connection in self.all:
            connection.stop()


class _ListenerLimits:
    """What is counted for one listener."""

    def __init__(self, broker: Broker, listener: Listener) -> None:
        self.open = 0
        self._settings = broker.settings
        self._name = listener.name
        self.rate = CreationRate(
            lambda: self._settings.of_listener(self._name, "max.connection.creation.rate"), trio.current_time
        )

    @property
    def full(self) -> bool:
        return self.open >= self._settings.of_listener(self._name, "max.connections")


async def accept_loop(
    sock: socket.socket,
    listener: Listener,
    connections: Connections,
    nursery: trio.Nursery,
    make_transport: MakeTransport | None = None,
) -> None:
    """Accept on one bound socket until cancelled; connections run in `nursery`. Without `make_transport` it is that of
    the connections."""
    complain = Complaints(logger)
    while True:
        await connections.wait_to_accept(listener)
        await trio.lowlevel.wait_readable(sock)
        try:
            # All that have come: the queue of the kernel is short, and a client that it refuses waits a second. But
            # some at a time: where a thousand come back at once, those that are served do not wait for all.
            came = 0
            while not connections.full(listener) and not connections.too_fast_s(listener):
                transport, host, port = accept(sock, make_transport or connections.make_transport)
                connection = connections.add(transport, listener, host, port)
                if connection is None:
                    transport.close()
                    continue
                nursery.start_soon(connections.serve, connection, transport, listener, host)
                came += 1
                if came % _AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()
        except BlockingIOError:
            continue
        except OSError as error:
            if error.errno not in _NO_DESCRIPTORS:
                logger.debug("a connection ended before it was accepted: %s", error)
                continue
            connections.pauses += 1
            complain("pause", "listener %s pauses: %s", listener.name, error.strerror, level=logging.WARNING)
            await trio.sleep(_PAUSE_S)


def _overrides(text: str) -> Mapping[str, int]:
    """`host:count` pairs by address. Blocks: names are looked up."""
    limits: dict[str, int] = {}
    for pair in text.split(","):
        host, _, limit = pair.strip().rpartition(":")
        if not host:
            continue
        try:
            found = socket.getaddrinfo(host.strip().strip("[]"), None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            logger.warning("max.connections.per.ip.overrides: the host %s is unknown: %s", host, reason)
            continue
        limits |= {str(address[0]): int(limit) for _, _, _, _, address in found}
    return limits
