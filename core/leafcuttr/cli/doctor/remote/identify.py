"""Which server answers at an address where no Kafka does: HTTP, TLS, one that speaks first, one that is silent."""

import contextlib
import socket
import time
from typing import Final, NamedTuple

from leafcuttr.cli.doctor.remote.remote_broker import SOFTWARE
from leafcuttr.client.errors import ClientError
from leafcuttr.client.settings import ClientSettings, ClientTls, HostPort
from leafcuttr.client.synchronous import BlockingConnection
from leafcuttr.client.tls import make_context

_SHOWN: Final = 60

# What usually has these ports; the first ones are LeafCuttr's own.
_USUAL: Final = {
    1883: "the port of MQTT",
    8080: "the port of LeafCuttr's HTTP proxy",
    8081: "the port of a schema registry",
    9404: "the port of LeafCuttr's metrics and health",
    2181: "the port of ZooKeeper",
    443: "the port of HTTPS",
    80: "the port of HTTP",
}
_TLS_RECORDS: Final = (b"\x15\x03", b"\x16\x03")  # an alert, a handshake (RFC 8446, 5.1)


class OtherServer(NamedTuple):
    """`kind` is "tls-kafka" for a Kafka behind TLS, "tls", "http", "other" or "silent"."""

    kind: str
    words: str


def identify(host: str, port: int, said: bytes, patience: float) -> OtherServer:
    """Find out by what it `said` so far, then by trying other protocols, each for `patience` seconds."""
    if said[:2] in _TLS_RECORDS:
        return _tls(host, port, patience) or OtherServer("tls", "a TLS server")
    if said.startswith(b"HTTP/"):
        return OtherServer("http", _http(said))
    if said:
        return OtherServer("other", f"something that says {_shown(said)}")
    answer = _say_first(host, port, b"GET / HTTP/1.0\r\n\r\n", patience)
    if answer.startswith(b"HTTP/"):
        return OtherServer("http", _http(answer))
    if answer and answer[:2] not in _TLS_RECORDS:
        return OtherServer("other", f"something that says {_shown(answer)}")
    return _tls(host, port, patience) or OtherServer("silent", "something that does not answer")


def usual(port: int) -> str:
    """` (port 8081 is the port of a schema registry)`, or nothing."""
    return f" (port {port} is {_USUAL[port]})" if port in _USUAL else ""


def _tls(host: str, port: int, patience: float) -> OtherServer | None:
    anyone = ClientTls(verifies=False)
    try:
        with socket.create_connection((host, port), patience * 2) as sock:
            make_context(anyone).wrap_socket(sock, server_hostname=host).close()
    except OSError:
        return None
    address = HostPort(host, port)
    settings = ClientSettings(bootstrap=(address,), tls=anyone)
    try:
        BlockingConnection(address, settings, timeout_s=patience * 2, software=SOFTWARE).close()
    except ClientError:
        return OtherServer("tls", "a TLS server without a Kafka behind it, an HTTPS server perhaps")
    return OtherServer("tls-kafka", "a Kafka that speaks TLS")


def _say_first(host: str, port: int, words: bytes, timeout: float) -> bytes:
    """What a peer answers to `words`, at most 200 bytes; empty if nothing within `timeout`."""
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout) as sock:
        sock.sendall(words)
        until = time.monotonic() + timeout
        got = b""
        while len(got) < 200 and (left := until - time.monotonic()) > 0:
            sock.settimeout(left)
            chunk = sock.recv(200)
            if not chunk:
                break
            got += chunk
            if b"\n" in got:
                break
        return got
    return b""


def _http(said: bytes) -> str:
    first = said.partition(b"\n")[0]
    return f"an HTTP server: {_shown(first)}"


def _shown(said: bytes) -> str:
    text = said[:_SHOWN].decode("latin-1").strip()
    return f'"{text}"' if text.isprintable() and text else said[:16].hex(" ")
