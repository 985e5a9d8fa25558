"""One connection on a blocking socket, one request at a time: for commands, the doctor among them.

    with BlockingConnection(HostPort("hub", 9092), settings, timeout_s=15) as connection:
        response = connection.request(MetadataRequest(topics=[]))

The same protocol, TLS and authentication as in `connection`; no trio, so that a command starts quickly.
"""

import socket
import ssl
import time
from types import TracebackType
from typing import Any, Final, Self

from leafcuttr.client.errors import (
    ClientError,
    ClientSettingError,
    NotKafka,
    TimedOut,
    TlsRefused,
    Unreachable,
)
from leafcuttr.client.explaining import closed, not_kafka
from leafcuttr.client.protocol import Answered, ClientProtocol, Ready, VersionRanges
from leafcuttr.client.sasl.exchange import SaslExchange
from leafcuttr.client.settings import ClientSettings, HostPort
from leafcuttr.wire.messages.api_versions import ApiVersionsResponse

_MORE_S: Final = 0.3


class BlockingConnection:
    """Connected, with versions and authentication, once it is made. Every method raises ClientError.

    An answer may take `timeout_s` seconds, which can be changed between requests. `about` is the broker's answer to
    ApiVersions. With `connect_timeout_s` the connection and the TLS handshake may take less.
    """

    def __init__(
        self,
        address: HostPort,
        settings: ClientSettings,
        *,
        timeout_s: float,
        connect_timeout_s: float | None = None,
        software: str = "leafcuttr-cli",
    ) -> None:
        self.address = address
        self.timeout_s = timeout_s
        self.about = ApiVersionsResponse()
        self._settings = settings
        self._answered = False
        self._protocol = ClientProtocol(
            str(address),
            client_id=settings.client_id,
            software=software,
            max_frame=settings.max_response_bytes,
        )
        self._socket = self._connect(timeout_s if connect_timeout_s is None else connect_timeout_s)
        try:
            self._begin()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def versions(self) -> VersionRanges:
        """By API key the lowest and the highest version that the broker offers."""
        return self._protocol.versions

    def close(self) -> None:
        self._socket.close()

    def request(self, request: Any, *, at_least: int = 0) -> Any:
        """The response, in the highest version that both sides have; `at_least` is the lowest that can carry the
        request. Raises WireError too, for a request that cannot be written."""
        self._protocol.send(request, at_least=at_least)
        event = self._next()
        assert isinstance(event, Answered)
        self._answered = True
        return event.read()

    def _connect(self, timeout_s: float) -> socket.socket:
        try:
            made = socket.create_connection(self.address, timeout_s)
        except (OSError, UnicodeError) as error:
            raise Unreachable(f"no broker answers at {self.address}") from error
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._settings.tls is None:
            return made
        try:
            return self._with_tls(made, timeout_s)
        except BaseException:
            made.close()
            raise

    def _with_tls(self, made: socket.socket, timeout_s: float) -> socket.socket:
        from leafcuttr.client.tls import make_context, words

        assert self._settings.tls is not None
        try:
            return make_context(self._settings.tls).wrap_socket(made, server_hostname=self.address.host)
        except ClientSettingError as error:
            raise TlsRefused(str(error)) from None
        except TimeoutError:
            raise TimedOut(f"{self.address} begins no TLS within {timeout_s:g} seconds") from None
        except OSError as error:
            raise words(str(self.address), error) from error

    def _begin(self) -> None:
        self._protocol.start()
        event = self._next()
        assert isinstance(event, Ready)
        self.about = event.about
        if self._settings.sasl is not None:
            exchange = SaslExchange(self._settings.sasl, str(self.address))
            while exchange.request is not None:
                exchange.answered(self.request(exchange.request, at_least=exchange.at_least))

    def _next(self) -> Ready | Answered:
        deadline = time.monotonic() + self.timeout_s
        what = self._protocol.oldest
        try:
            while True:
                if out := self._protocol.data_to_send():
                    self._socket.settimeout(self.timeout_s)
                    self._socket.sendall(b"".join(out))
                elif (event := self._protocol.next_event()) is not None:
                    return event
                elif not self._protocol.has_data_to_send:
                    self._receive(deadline)
        except TimeoutError:
            raise TimedOut(
                f"{self.address} does not answer {what} within {self.timeout_s:g} seconds"
            ) from None
        except OSError as error:
            raise self._closed(error) from error

    def _receive(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)
        size = self._socket.recv_into(self._protocol.buffer())
        if not size:
            raise self._closed()
        try:
            self._protocol.received(size)
        except NotKafka as error:
            if self.versions:
                raise
            raise not_kafka(str(self.address), self._settings, error.said + self._more()) from None

    def _more(self) -> bytes:
        """More of what a peer that speaks another protocol has said, to show it."""
        try:
            self._socket.settimeout(_MORE_S)
            return self._socket.recv(200)
        except OSError:
            return b""

    def _closed(self, error: OSError | None = None) -> ClientError:
        if isinstance(error, ssl.SSLError):
            from leafcuttr.client.tls import words

            return words(str(self.address), error)
        ready = bool(self.versions)
        said = b"" if ready else self._protocol.cut_off()
        return closed(str(self.address), self._settings, ready=ready, answered=self._answered, said=said)
