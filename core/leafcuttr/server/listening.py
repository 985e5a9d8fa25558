"""The listeners while the broker runs: those it was started with, and what `listeners` becomes by a change.

A listener that is new is opened, one that is gone is closed, with its connections after the request at hand; one that
stays the same is left alone. If an address cannot be had, the old one is opened again and the log says why. Binding and
accepting themselves are elsewhere (`net.binding`, `listener`). What TLS needs is imported with the first listener that
has it.
"""

import logging
import socket
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from leafcuttr.config.listeners import SETTINGS, Listener, parse_listeners
from leafcuttr.config.settings import Settings
from leafcuttr.errors import ConfigError, InvalidRequest, StartError
from leafcuttr.net import binding
from leafcuttr.net.exposure import warn_if_open, why_refused
from leafcuttr.server.listener import Connections, accept_loop
from leafcuttr.server.transport import MakeTransport
from leafcuttr.state.broker import Broker

if TYPE_CHECKING:
    from leafcuttr.net.live_certificates import LiveCertificates
    from leafcuttr.state.security.bearer.key_source import KeySource

logger = logging.getLogger(__name__)


class Bound(NamedTuple):
    """A listener as the settings have it, as it is (with the port that the kernel chose), its sockets, and what it
    needs for TLS and to check tokens, if it does."""

    configured: Listener
    listener: Listener
    sockets: Sequence[socket.socket]
    certificates: "LiveCertificates | None" = None
    token_keys: "KeySource | None" = None

    @property
    def authenticates(self) -> bool:
        """Whether every client has to say who it is: by a log-in, or by its certificate."""
        by_certificate = self.certificates is not None and self.certificates.files.client_auth == "required"
        return by_certificate or self.listener.protocol.startswith("SASL")


def bind(settings: Settings, listener: Listener) -> Bound:
    """Open every address of a listener. Raises StartError. Blocks: names are looked up, and files are read."""
    certificates = _certificates(settings, listener) if listener.protocol.endswith("SSL") else None
    token_keys = _check_login(settings, listener) if listener.protocol.startswith("SASL") else None
    found, socks = binding.bind(
        listener, binding.listen_backlog(settings), binding.requested_buffer_sizes(settings)
    )
    bound = Bound(listener, found, socks, certificates, token_keys)
    if not bound.authenticates and (why := _why_refused(settings, bound)) is not None:
        for sock in socks:
            sock.close()
        raise StartError(why)
    return bound


def _why_refused(settings: Settings, bound: Bound) -> str | None:
    name = bound.listener.name
    return why_refused(settings, bound.listener, bound.sockets, f"use the listener {name}", "listeners")


def _check_login(settings: Settings, listener: Listener) -> "KeySource | None":
    """The keys for tokens, if it takes tokens. Raises StartError where nobody could log in, or nobody should."""
    from leafcuttr.server.login.logins import (
        GSSAPI,
        OAUTHBEARER,
        check_kerberos,
        mechanisms_of,
        read_token_keys,
    )
    from leafcuttr.state.security.named_users import named_users

    mechanisms = mechanisms_of(settings, listener.name)
    if "PLAIN" in mechanisms:
        named_users(settings, listener.name)
    if GSSAPI in mechanisms:
        check_kerberos(settings, listener.name)
    shown = [what for name, what in (("PLAIN", "passwords"), (OAUTHBEARER, "tokens")) if name in mechanisms]
    if (
        shown
        and listener.protocol == "SASL_PLAINTEXT"
        and listener.host not in ("localhost", "127.0.0.1", "::1")
    ):
        logger.warning(
            "listener %s takes %s by %s without TLS: all who see the network can read them (SASL_SSL)",
            listener.name,
            " and ".join(shown),
            " and ".join(name for name in ("PLAIN", OAUTHBEARER) if name in mechanisms),
        )
    return read_token_keys(settings, listener.name) if OAUTHBEARER in mechanisms else None


def _certificates(settings: Settings, listener: Listener) -> "LiveCertificates":
    from leafcuttr.net.listener_tls import rules_of, tls_files
    from leafcuttr.net.live_certificates import LiveCertificates
    from leafcuttr.net.tls_files import TlsError

    common = settings.text("ssl.client.auth")
    try:
        rules_of(settings, listener.name)
        files = tls_files(settings, listener)
        if listener.protocol == "SASL_SSL" and files.client_auth == "none" != common:
            logger.warning(
                "ssl.client.auth=%s is not for listener %s, whose clients log in; where both are wanted: %s",
                common,
                listener.name,
                f"{files.prefix}.ssl.client.auth",
            )
        return LiveCertificates(files)
    except TlsError as error:
        raise StartError(str(error)) from None


class _Open:
    """A listener that is served until `scope` is cancelled; then `ended` is set."""

    def __init__(self, bound: Bound) -> None:
        self.bound = bound
        self.scope: Final = trio.CancelScope()
        self.ended: Final = trio.Event()


class OpenListeners:
    """All listeners of a broker. `run` serves them."""

    def __init__(self, broker: Broker, connections: Connections, bound: Sequence[Bound]) -> None:
        self._broker = broker
        self._connections = connections
        self._warned: set[Listener] = set()
        self._open = {each.configured.name: self._opened(each) for each in bound}
        # What they were bound with may have been changed while an earlier broker ran.
        self._read_again = {each for each in self._open.values() if each.bound.certificates is not None}
        self._changed = trio.Event()
        self._nurseries: tuple[trio.Nursery, trio.Nursery] | None = None
        broker.settings.on_change(self._settings_changed)
        broker.tls = self
        self._publish()

    async def run(
        self, serving: trio.Nursery, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Accept until cancelled; connections run in `serving`."""
        try:
            async with trio.open_nursery() as nursery:
                self._nurseries = nursery, serving
                for each in self._open.values():
                    nursery.start_soon(self._accept, each, serving)
                # A change that was made before this start counts more than what it was started with.
                await self._follow()
                task_status.started()
                while True:
                    await self._changed.wait()
                    self._changed = trio.Event()
                    await self._follow()
        finally:
            for sock in self._sockets():
                sock.close()

    def _sockets(self) -> Iterator[socket.socket]:
        for each in self._open.values():
            yield from each.bound.sockets

    def _settings_changed(self, names: frozenset[str]) -> None:
        if not names.isdisjoint(SETTINGS):
            self._changed.set()
        for each in self._concerned(names):
            self._read_again.add(each)
            self._changed.set()

    async def read_again(self, names: Collection[str]) -> None:
        """See `ListenersTls`."""
        for each in self._concerned(names):
            await self._read_tls(each)
        for other in self._others(names):
            await trio.to_thread.run_sync(other.look)

    async def check(self, settings: Settings, names: Collection[str]) -> None:
        """See `ListenersTls`."""
        from leafcuttr.net.listener_tls import tls_files
        from leafcuttr.net.tls_files import TlsError

        for each in self._concerned(names):
            certificates, listener = each.bound.certificates, each.bound.listener
            assert certificates is not None
            try:
                files = tls_files(settings, listener)
                await trio.to_thread.run_sync(certificates.check, files)
            except TlsError as error:
                raise InvalidRequest(str(error)) from None
            if listener.protocol == "SSL" and files.client_auth != "required":
                why = _why_refused(settings, each.bound)
                if why is not None:
                    raise InvalidRequest(why)
        for other in self._others(names):
            try:
                await trio.to_thread.run_sync(other.check, other.files)
            except TlsError as error:
                raise InvalidRequest(str(error)) from None

    def _others(self, names: Collection[str]) -> "list[LiveCertificates]":
        """Of listeners that are not for Kafka's clients, whose keystore is among these settings."""
        return [
            certificates
            for prefix, certificates in self._broker.certificates.items()
            if f"{prefix}.ssl.keystore.location" in names
        ]

    def _concerned(self, names: Collection[str]) -> list[_Open]:
        """The open listeners with TLS for which one of these settings counts."""
        with_tls = [each for each in self._open.values() if each.bound.certificates is not None]
        if not with_tls:
            return []
        from leafcuttr.net.listener_tls import concerns

        return [each for each in with_tls if any(concerns(name, each.bound.listener.name) for name in names)]

    def _publish(self) -> None:
        self._broker.listeners = [each.bound.listener for each in self._open.values()]
        self._connections.certificates = {
            name: each.bound.certificates
            for name, each in self._open.items()
            if each.bound.certificates is not None
        }

    async def _follow(self) -> None:
        """Open and close listeners as the settings have them now."""
        try:
            wanted = parse_listeners(self._broker.settings)
        except ConfigError as error:
            logger.error("the listeners stay as they are: %s", error)
            return
        for name in self._open.keys() - {listener.name for listener in wanted}:
            await self._close(self._open.pop(name))
        for listener in wanted:
            before = self._open.get(listener.name)
            if before is None or before.bound.configured != listener:
                await self._replace(before, listener)
            elif before in self._read_again:
                self._read_again.discard(before)
                await self._read_tls(before)
        self._publish()

    async def _read_tls(self, opened: _Open) -> None:
        """Settings of its TLS have changed; those that do not fit leave it as it is."""
        from leafcuttr.net.listener_tls import tls_files
        from leafcuttr.net.tls_files import TlsError

        bound = opened.bound
        assert bound.certificates is not None
        try:
            files = tls_files(self._broker.settings, bound.listener)
        except TlsError as error:
            logger.error("%s; the certificate that was read before stays in use", error)
            return
        await trio.to_thread.run_sync(bound.certificates.use, files)
        self._warn(bound)

    async def _replace(self, before: _Open | None, listener: Listener) -> None:
        if before is not None:
            # First: the new one may want the same port.
            del self._open[listener.name]
            await self._close(before)
        try:
            await self._serve(listener)
        except StartError as error:
            logger.error("%s", error)
            if before is not None:
                await self._serve_again(before.bound)

    async def _serve(self, listener: Listener) -> None:
        """Raises StartError."""
        try:
            bound = await trio.to_thread.run_sync(bind, self._broker.settings, listener)
        except RuntimeError as error:  # no thread for it
            raise StartError(f"listener {listener.name} cannot be opened: {error}") from None
        assert self._nurseries is not None
        nursery, serving = self._nurseries
        opened = self._open[listener.name] = self._opened(bound)
        nursery.start_soon(self._accept, opened, serving)
        logger.info("listener %s is open", bound.listener)

    def _opened(self, bound: Bound) -> _Open:
        if bound.token_keys is not None:
            self._broker.token_keys.take(bound.token_keys, self._broker.clock)
        self._warn(bound)
        return _Open(bound)

    def _warn(self, bound: Bound) -> None:
        """What is open to other machines is said once, also if it is closed and opened again."""
        name = bound.listener.name
        if (
            not bound.authenticates
            and bound.configured not in self._warned
            and warn_if_open(logger, bound.listener, bound.sockets, f"use the listener {name}", "listeners")
        ):
            self._warned.add(bound.configured)

    async def _serve_again(self, bound: Bound) -> None:
        try:
            await self._serve(bound.listener)
        except StartError as error:
            logger.error("%s", error)

    async def _accept(self, opened: _Open, serving: trio.Nursery) -> None:
        try:
            with opened.scope:
                async with trio.open_nursery() as nursery:
                    for sock in opened.bound.sockets:
                        nursery.start_soon(
                            accept_loop,
                            sock,
                            opened.bound.listener,
                            self._connections,
                            serving,
                            self._transports_of(opened.bound),
                        )
        finally:
            opened.ended.set()

    def _transports_of(self, bound: Bound) -> MakeTransport:
        if bound.certificates is None:
            return self._connections.make_transport
        from leafcuttr.server.tls_transport import TlsTransport

        context = bound.certificates.context
        receive_buffer = binding.receive_buffer_for_local_tls(self._broker.settings)

        def over_tls(sock: socket.socket) -> TlsTransport:
            if receive_buffer:
                binding.size_for_local_tls(sock, receive_buffer)
            return TlsTransport(sock, context.newest)

        return over_tls

    async def _close(self, opened: _Open) -> None:
        self._read_again.discard(opened)
        opened.scope.cancel()
        await opened.ended.wait()
        for sock in opened.bound.sockets:
            sock.close()
        self._connections.stop_those_of(opened.bound.listener)
        logger.info("listener %s is closed", opened.bound.listener)
