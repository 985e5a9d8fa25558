"""One request to one address, and its answer, over HTTP/1.1: bounded in time and size. No retries here.

`Connections` keeps those that may be used again, for any thread.
"""

import contextlib
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from leafcuttr_sdk.authentication import basic_authorization
from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.http_schemas.settings import RegistryAddress, RegistrySettings

_ACCEPT: Final = "application/vnd.schemaregistry.v1+json, application/json;q=0.9"
_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_PIECE: Final = 1 << 16
_LATE: Final = "its answer takes longer than {:g} seconds"
_IDLE: Final = 4
"""Connections that are kept for each address."""


class NoAnswer(Exception):
    """No answer came, or none of a registry. The message is one line with the address."""


class Answer(NamedTuple):
    """`body` is what its JSON says; None where it is none."""

    status: int
    body: Any
    retry_after_s: float | None = None


class Connections:
    """Any thread may use it."""

    def __init__(self, settings: RegistrySettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._idle: dict[RegistryAddress, list[http.client.HTTPConnection]] = {}
        self._context: ssl.SSLContext | None = None

    def request(self, address: RegistryAddress, method: str, path: str, body: object = None) -> Answer:
        """Raises NoAnswer, and PluginError for files of TLS that cannot be read."""
        data = None if body is None else json.dumps(body).encode()
        headers = self._headers(address, data is not None)
        while True:
            connection, used = self._take(address)
            try:
                answer = self._ask(connection, method, address.path + path, data, headers)
            except (OSError, http.client.HTTPException, ValueError) as error:
                connection.close()
                if used and _ended_before(error):
                    continue  # it was closed while nobody used it
                raise NoAnswer(f"no schema registry answers at {address}: {_why(error)}") from None
            except BaseException:
                connection.close()
                raise
            self._give_back(address, connection)
            return answer

    def close(self) -> None:
        """Close those that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def _ask(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        target: str,
        data: bytes | None,
        headers: Mapping[str, str],
    ) -> Answer:
        settings = self._settings
        if connection.sock is None:
            connection.connect()
        sock: Any = connection.sock
        sock.settimeout(settings.read_timeout_s)
        late = threading.Event()

        def end() -> None:
            """A time for each byte would be none for an answer that comes byte by byte."""
            late.set()
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

        timer = threading.Timer(settings.read_timeout_s, end)
        timer.daemon = True
        timer.start()
        try:
            connection.request(method, target, data, dict(headers))
            answer = self._answer(connection, connection.getresponse())
        except (OSError, http.client.HTTPException):
            if late.is_set():
                raise TimeoutError(_LATE.format(settings.read_timeout_s)) from None
            raise
        finally:
            timer.cancel()
        if late.is_set():
            # Where it was ended among the headers, they look as if they were whole.
            raise TimeoutError(_LATE.format(settings.read_timeout_s))
        return answer

    def _answer(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> Answer:
        most = self._settings.max_response_bytes
        received = bytearray()
        while piece := response.read1(_PIECE):
            received += piece
            if len(received) > most:
                raise ValueError(f"its answer is larger than {most} bytes")
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
        response.close()  # the connection stays open
        if response.will_close:
            connection.close()
        return Answer(response.status, _json(received), _seconds(response.headers.get("Retry-After")))

    def _take(self, address: RegistryAddress) -> tuple[http.client.HTTPConnection, bool]:
        """A connection, and whether it was used before."""
        with self._lock:
            idle = self._idle.get(address)
            if idle:
                return idle.pop(), True
        timeout = self._settings.connect_timeout_s
        if not address.secure:
            return http.client.HTTPConnection(address.host, address.port, timeout=timeout), False
        with self._lock:
            if self._context is None:
                self._context = _tls(self._settings)
            context = self._context
        return http.client.HTTPSConnection(
            address.host, address.port, timeout=timeout, context=context
        ), False

    def _give_back(self, address: RegistryAddress, connection: http.client.HTTPConnection) -> None:
        if connection.sock is None:
            return
        with self._lock:
            idle = self._idle.setdefault(address, [])
            if len(idle) < _IDLE:
                idle.append(connection)
                return
        connection.close()

    def _headers(self, address: RegistryAddress, has_body: bool) -> Mapping[str, str]:
        settings = self._settings
        headers = {"Accept": _ACCEPT, "User-Agent": "leafcuttr", **dict(settings.headers)}
        if has_body:
            headers["Content-Type"] = _TYPE
        user, password = settings.user, settings.password
        if user is None:
            user, password = address.user, address.password
        if settings.token is not None:
            headers["Authorization"] = f"Bearer {settings.token}"
        elif user is not None:
            headers["Authorization"] = basic_authorization(f"{user}:{password or ''}")
        return headers


def _tls(settings: RegistrySettings) -> ssl.SSLContext:
    """Raises PluginError."""
    try:
        context = ssl.create_default_context(cafile=settings.ca_file, cadata=settings.ca_text)
    except (OSError, ValueError) as error:
        where = settings.ca_file or "ssl.truststore.certificates"
        raise PluginError(
            f"{where}: no certificates of authorities can be read from it: {_why(error)}"
        ) from None
    if settings.certificate_file is not None:
        try:
            context.load_cert_chain(settings.certificate_file, settings.key_file, settings.key_password or "")
        except OSError as error:
            raise PluginError(
                f"{settings.certificate_file}: no certificate and key can be read from it: {_why(error)}"
            ) from None
    context.check_hostname = settings.checks_host and settings.verifies
    if not settings.verifies:
        context.verify_mode = ssl.CERT_NONE
    return context


def _ended_before(error: Exception) -> bool:
    """Whether a kept connection was closed before the request came."""
    return isinstance(error, http.client.RemoteDisconnected | ConnectionResetError | BrokenPipeError)


def _json(data: bytearray) -> Any:
    with contextlib.suppress(ValueError, RecursionError):
        return json.loads(data)
    return None


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 7 else None


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"no TLS: {error.reason or error}"
    if isinstance(error, socket.gaierror):
        return "the name is unknown"
    if isinstance(error, TimeoutError):
        return str(error) if str(error).startswith("its answer") else "it takes too long"
    if isinstance(error, http.client.HTTPException):
        return f"it does not speak HTTP ({type(error).__name__})"
    text = str(getattr(error, "strerror", None) or error).partition("\n")[0]
    return text[:200] or type(error).__name__
