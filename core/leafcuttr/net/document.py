"""One document from a server by HTTP or HTTPS, with GET: bounded in time and size, the server's certificate checked. No
redirects, no proxy, no retries. Blocks: for worker threads, and before the loop runs.
"""

import contextlib
import http.client
import socket
import ssl
import threading
from typing import Final
from urllib.parse import SplitResult, urlsplit

_PIECE: Final = 1 << 16


class NoDocument(Exception):
    """It cannot be had; one clause that says why, without the address."""


def check_url(url: str) -> SplitResult:
    """The parts of a URL of HTTP or HTTPS. Raises ValueError with the reason."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it is no URL of https: or http:")
    if parts.username is not None or parts.password is not None:
        raise ValueError("a user or a password in a URL is not sent")
    _ = parts.port  # which raises ValueError
    return parts


def fetch_document(
    url: str, *, accept: str, at_most_s: float, at_most_bytes: int, ca_file: str | None = None
) -> bytes:
    """What a server has there. `ca_file` has the authorities to trust (PEM); without it they are the machine's. Raises
    NoDocument."""
    try:
        parts = check_url(url)
        connection = _connection(parts, at_most_s, ca_file)
    except (OSError, ValueError) as error:
        raise NoDocument(_why(error)) from None
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    late = threading.Event()

    def end() -> None:
        """A time for each byte would be none for an answer that comes byte by byte."""
        late.set()
        sock = connection.sock
        if sock is not None:
            with contextlib.suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    timer = threading.Timer(at_most_s, end)
    timer.daemon = True
    timer.start()
    try:
        connection.request("GET", target, headers={"Accept": accept, "User-Agent": "leafcuttr"})
        return _read(connection.getresponse(), at_most_bytes)
    except (OSError, http.client.HTTPException, ValueError) as error:
        # Each wait for the socket has the same limit as the whole, and may be over first.
        is_late = late.is_set() or isinstance(error, TimeoutError)
        raise NoDocument(_late(at_most_s) if is_late else _why(error)) from None
    finally:
        timer.cancel()
        connection.close()


def _connection(parts: SplitResult, at_most_s: float, ca_file: str | None) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, parts.port, timeout=at_most_s)
    try:
        context = ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise ValueError(f"{ca_file} has no certificates of authorities in PEM: {_why(error)}") from None
    return http.client.HTTPSConnection(host, parts.port, timeout=at_most_s, context=context)


def _read(response: http.client.HTTPResponse, at_most_bytes: int) -> bytes:
    if response.status != 200:
        raise ValueError(f"the answer is {response.status} {response.reason[:100]}")
    received = bytearray()
    while piece := response.read1(_PIECE):
        received += piece
        if len(received) > at_most_bytes:
            raise ValueError(f"the answer has more than {at_most_bytes} bytes")
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return bytes(received)


def _late(at_most_s: float) -> str:
    return f"there is no answer within {at_most_s:g} seconds"


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the server is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS fails: {error.reason or error}"
    if isinstance(error, socket.gaierror):
        return "the name of the host is unknown"
    if isinstance(error, http.client.HTTPException):
        return f"the server does not speak HTTP ({type(error).__name__})"
    text = str(getattr(error, "strerror", None) or error).partition("\n")[0]
    return text[:200] or type(error).__name__
