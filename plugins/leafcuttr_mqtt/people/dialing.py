"""How the commands `publish` and `subscribe` reach a broker: TCP, TLS and WebSockets, by one connection that blocks.

An address is HOST:PORT, or a URL as those of MQTT clients: mqtt, mqtts, ws and wss. What goes wrong is a PluginError
with one line.
"""

import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from leafcuttr_sdk.errors import PluginError

if TYPE_CHECKING:
    from wsproto.events import Event

PORTS: Final = {"mqtt": 1883, "mqtts": 8883, "ws": 80, "wss": 443}
_SECURE: Final = ("mqtts", "wss")
_WEB: Final = ("ws", "wss")
_PATH: Final = "/mqtt"
"""Of a WebSocket, where the address has none: what most brokers expect."""
_READ: Final = 65536
_HOST_MISMATCH: Final = 62
"""X509_V_ERR_HOSTNAME_MISMATCH of OpenSSL."""
_ADDRESS_MISMATCH: Final = 64
"""X509_V_ERR_IP_ADDRESS_MISMATCH."""


class DialSecurity(NamedTuple):
    """What is given about TLS. The files are PEM files."""

    tls: bool = False
    ca_file: str | None = None
    """The authorities that are trusted, in the place of those of the system."""
    certificate: str | None = None
    key: str | None = None
    insecure: bool = False
    """The certificate may be for another host."""

    @property
    def wanted(self) -> bool:
        """Whether any of it says that TLS is meant."""
        return self.tls or self.insecure or bool(self.ca_file or self.certificate)


PLAIN: Final = DialSecurity()


class Address(NamedTuple):
    """Where a broker is."""

    scheme: str
    host: str
    port: int
    path: str = _PATH

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        whole = f"{host}:{self.port}"
        return whole if self.scheme == "mqtt" else f"{self.scheme}://{whole}"

    @property
    def is_secure(self) -> bool:
        return self.scheme in _SECURE


class Line(Protocol):
    """A connection that blocks, as a socket does: `recv` raises TimeoutError, all raise OSError."""

    def settimeout(self, value: float | None, /) -> None: ...

    def sendall(self, data: bytes, /) -> None: ...

    def recv(self, bufsize: int, /) -> bytes: ...

    def close(self) -> None: ...


def parse_address(text: str, security: DialSecurity = PLAIN) -> Address:
    """Raises PluginError. HOST:PORT is over TLS where `security` says that it is meant."""
    if "://" not in text:
        text = f"{'mqtts' if security.wanted else 'mqtt'}://{text}"
        host, colon, port = text.rpartition(":")
        if not colon or host in PORTS or not port.isdecimal():
            raise PluginError(f"{text.partition('://')[2]!r} is no address: write HOST:PORT")
    try:
        parts = urlsplit(text)
        host, port_number = parts.hostname or "", parts.port
    except ValueError as error:
        raise PluginError(f"{text!r} is no address: {error}") from None
    if parts.scheme not in PORTS or not host:
        raise PluginError(
            f"{text!r} is no address: allowed are HOST:PORT and URLs, as mqtt://HOST:PORT; mqtts, ws and wss"
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise PluginError(f"{parts.scheme}://{host}: an address has a host, a port and, of ws, a path only")
    if parts.path.strip("/") and parts.scheme not in _WEB:
        raise PluginError(f"{text!r} is no address: only those of ws and wss have a path")
    if security.wanted and parts.scheme not in _SECURE:
        raise PluginError(f"{text} is without TLS: write {'wss' if parts.scheme == 'ws' else 'mqtts'}://")
    port_number = PORTS[parts.scheme] if port_number is None else port_number
    return Address(parts.scheme, host, port_number, parts.path or _PATH)


def dial(address: Address, security: DialSecurity, timeout_s: float) -> Line:
    """A connection. Raises PluginError."""
    context = _context(security) if address.is_secure else None
    try:
        plain = socket.create_connection((address.host, address.port), timeout_s)
    except (OSError, OverflowError) as error:
        raise PluginError(f"no MQTT broker answers at {address}: {why_broken(error)}") from None
    line: Line = plain
    try:
        if context is not None:
            line = context.wrap_socket(plain, server_hostname=address.host)
        if address.scheme in _WEB:
            line = _WebSocketLine(line, address)
    except ssl.SSLCertVerificationError as error:
        plain.close()
        raise PluginError(f"the certificate of {address} is refused: {_why_refused(error)}") from None
    except OSError as error:
        plain.close()
        raise PluginError(f"no MQTT broker answers at {address}: {why_broken(error)}") from None
    except BaseException:
        plain.close()
        raise
    return line


def why_broken(error: BaseException) -> str:
    """What an exception of a socket says, in one clause."""
    if isinstance(error, ssl.SSLError) and error.reason:
        hint = (
            "; it may speak no TLS"
            if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
            else ""
        )
        return f"TLS: {error.reason.lower().replace('_', ' ')}{hint}"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _why_refused(error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in (_HOST_MISMATCH, _ADDRESS_MISMATCH):
        return f"{error.verify_message.rstrip('.')} (--insecure does without this check)"
    return f"{error.verify_message} (--cafile says whom to trust)"


def _context(security: DialSecurity) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = not security.insecure
    context.set_alpn_protocols(["mqtt"])
    option, file = "--cafile", security.ca_file
    try:
        if file is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(file)
        if security.certificate is not None:
            option, file = "--cert", security.certificate
            Path(file).open("rb").close()  # what OpenSSL says of one that is not there names no file
            if security.key is not None:
                option, file = "--key", security.key
                Path(file).open("rb").close()
            context.load_cert_chain(security.certificate, security.key, _no_password(option))
    except ssl.SSLError as error:
        raise PluginError(f"{option} {file} cannot be used: {why_broken(error)}") from None
    except OSError as error:
        raise PluginError(f"{option} {file}: {error.strerror or error}") from None
    return context


def _no_password(option: str) -> Callable[[], str]:
    def ask() -> str:
        raise PluginError(f"{option}: its private key is encrypted, and this command asks for no password")

    return ask


class _WebSocketLine:
    """A WebSocket with the subprotocol `mqtt`, as a socket. Messages may begin and end anywhere in a packet
    ([MQTT-6.0.0-2])."""

    def __init__(self, line: Line, address: Address) -> None:
        """Opens it. Raises OSError and PluginError."""
        from wsproto import ConnectionType, WSConnection
        from wsproto.events import AcceptConnection, RejectConnection, Request
        from wsproto.utilities import ProtocolError

        self._line = line
        self._refused = ProtocolError
        self._connection = WSConnection(ConnectionType.CLIENT)
        self._data = bytearray()
        self._over = False
        host = f"[{address.host}]" if ":" in address.host else address.host
        request = Request(f"{host}:{address.port}", address.path, subprotocols=["mqtt"])
        line.sendall(self._connection.send(request))
        accepted: AcceptConnection | None = None
        while accepted is None:
            for event in self._events():
                if isinstance(event, AcceptConnection):
                    accepted = event
                elif isinstance(event, RejectConnection):
                    raise PluginError(f"{address} refuses the WebSocket: it answers {event.status_code}")
                else:
                    self._take(event)
            if self._over and accepted is None:
                raise PluginError(f"{address} serves no WebSocket")
        if accepted.subprotocol != "mqtt":
            raise PluginError(f"{address} does not speak MQTT: it has not taken the subprotocol mqtt")

    def _events(self) -> "list[Event]":
        """What the next bytes bring."""
        data = self._line.recv(_READ)
        if not data:
            self._over = True
            return []
        try:
            self._connection.receive_data(data)
            return list(self._connection.events())
        except self._refused:
            self._over = True
            return []

    def _take(self, event: "Event") -> None:
        from wsproto.events import BytesMessage, CloseConnection, Ping

        if isinstance(event, BytesMessage):
            self._data += event.data
        elif isinstance(event, Ping):
            self._line.sendall(self._connection.send(event.response()))
        elif isinstance(event, CloseConnection):
            self._over = True

    def settimeout(self, value: float | None, /) -> None:
        self._line.settimeout(value)

    def sendall(self, data: bytes, /) -> None:
        from wsproto.events import BytesMessage
        from wsproto.utilities import LocalProtocolError

        try:
            self._line.sendall(self._connection.send(BytesMessage(data)))
        except LocalProtocolError:
            raise BrokenPipeError("the WebSocket is closed") from None

    def recv(self, bufsize: int, /) -> bytes:
        while not self._data and not self._over:
            for event in self._events():
                self._take(event)
        data = bytes(self._data[:bufsize])
        del self._data[:bufsize]
        return data

    def close(self) -> None:
        self._line.close()
