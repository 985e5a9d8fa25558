"""`connection_creation_rate`: how many connections an IP address may open in a second (KIP-612). One above that is held
before anything of it is read, and served in its turn; Kafka holds and then closes it.

See `admission` for what this shares with handshakes and log-ins.
"""

import logging
import socket
from collections.abc import Mapping
from typing import Final

import trio

from leafcuttr.server.admission import Admission, is_late
from leafcuttr.server.transport import Transport
from leafcuttr.state.broker import Broker
from leafcuttr.state.security.buckets import Bucket
from leafcuttr.state.security.quota_entities import CONNECTION_CREATION_RATE, plain_address

logger = logging.getLogger(__name__)

LONGEST_S: Final = 30.0
"""How long a connection is held at most: by then its client has given up (`socket.connection.setup.timeout.max.ms`)."""
_RECHECK_S: Final = 1.0  # quotas may change meanwhile, and peers go


class _Turn:
    """The connections of one address that are held: served in the order in which they came."""

    def __init__(self) -> None:
        self.lock: Final = trio.Lock()
        self.held = 0


class AddressRates(Admission):
    """Those of one broker."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(logger, LONGEST_S)
        self._broker = broker
        self._counts = broker.counts
        self._turns: dict[str, _Turn] = {}
        self._names: tuple[str, ...] = ()
        self._by_address: Mapping[str, str] = {}

    async def may_serve(self, transport: Transport, listener: str, host: str) -> bool:
        """Wait until a connection from this address may be served. False: it is to be closed."""
        await self._look_up()
        bucket = self._bucket(host)
        if bucket is None:
            return True
        turn = self._turns.setdefault(host, _Turn())
        if turn.held >= bucket.rate * LONGEST_S:
            self.refuse(listener, host, "too many connections of its address are held by a quota", of=host)
            return False
        turn.held += 1
        self._counts.held += 1
        try:
            has_come = False
            with self.in_time() as scope:
                has_come = await self._has_come(turn, transport, host)
            if is_late(scope):
                self.refuse(
                    listener,
                    host,
                    f"held for {LONGEST_S:g} seconds because of a quota of its address",
                    of=host,
                )
            return has_come
        finally:
            turn.held -= 1
            self._counts.held -= 1
            if not turn.held:
                del self._turns[host]

    async def _has_come(self, turn: _Turn, transport: Transport, host: str) -> bool:
        """Whether its turn has come; False if its peer has gone before."""
        began_s, is_held = trio.current_time(), False
        async with turn.lock:
            while (bucket := self._bucket(host)) is not None:
                if transport.peer_gone:
                    return False
                now_s = trio.current_time()
                wait_s = bucket.wait_s(now_s, until=1)
                if not wait_s:
                    bucket.take(1, now_s)
                    break
                is_held = True
                await trio.sleep(min(wait_s, _RECHECK_S))
        if is_held:
            self._counts.throttled[CONNECTION_CREATION_RATE].add(trio.current_time() - began_s)
        return True

    def _bucket(self, host: str) -> Bucket | None:
        quotas = self._broker.quotas
        if not quotas.of_addresses:
            return None
        address = plain_address(host) or host
        return quotas.of_address(address, self._by_address.get(address))

    async def _look_up(self) -> None:
        """A quota may be that of a host by its name."""
        names = self._broker.quotas.named_hosts
        if names != self._names:
            try:
                self._by_address = await trio.to_thread.run_sync(_addresses, names)
            except RuntimeError:  # no thread for it; the next connection has it tried again
                return
            self._names = names


def _addresses(names: tuple[str, ...]) -> dict[str, str]:
    """Names of hosts by their addresses. Blocks."""
    found: dict[str, str] = {}
    for name in names:
        try:
            infos = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            logger.warning("the quota of ip %s does not hold: %s", name, reason)
            continue
        found |= {plain_address(str(info[4][0])) or "": name for info in infos}
    return found
