"""Servers for one test, each on a free port of 127.0.0.1 and in a thread: what may stand where a broker should."""

from __future__ import annotations

import contextlib
import http.server
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from support.waiting import free_port

Serve = Callable[[socket.socket], None]


@contextmanager
def listening(serve: Serve, *, host: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """Calls `serve` with each connection, in a thread of its own; yields the port."""
    server = socket.create_server((host, port))
    open_ones: set[socket.socket] = set()

    def one(sock: socket.socket) -> None:
        with contextlib.suppress(OSError, ssl.SSLError), sock:
            serve(sock)
        open_ones.discard(sock)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = server.accept()
                open_ones.add(sock)
                threading.Thread(target=one, args=(sock,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)
        server.close()
        for sock in list(open_ones):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        thread.join()


@contextmanager
def http_server(tls: ssl.SSLContext | None = None) -> Iterator[int]:
    """Python's own, which answers every GET."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def relay(to: Callable[[], str], tls: ssl.SSLContext | None = None, *, port: int = 0) -> Iterator[int]:
    """Passes bytes on to `host:port`, as the published port of a container does; with `tls` it ends the TLS."""

    def serve(outer: socket.socket) -> None:
        host, _, port = to().rpartition(":")
        if tls is not None:
            outer = tls.wrap_socket(outer, server_side=True)
        with outer, socket.create_connection((host, int(port))) as inner:
            back = threading.Thread(target=_pump, args=(inner, outer), daemon=True)
            back.start()
            _pump(outer, inner)
            back.join()

    with listening(serve, port=port) as found:
        yield found


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError, ssl.SSLError):
        while data := source.recv(65536):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def speaks_only(versions: Mapping[int, tuple[int, int]]) -> Serve:
    """A broker that knows these versions of APIs: it answers ApiVersions in version 0, and nothing else."""

    def serve(sock: socket.socket) -> None:
        while True:
            head = sock.recv(4, socket.MSG_WAITALL)
            if len(head) < 4:
                return
            frame = sock.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)
            key, version, correlation = struct.unpack_from(">hhi", frame)
            if key != 18:
                return
            error = 0 if version == 0 else 35
            rows = b"".join(struct.pack(">hhh", api, *span) for api, span in versions.items())
            body = struct.pack(">ihi", correlation, error, len(versions)) + rows
            sock.sendall(struct.pack(">i", len(body)) + body)

    return serve


def closed_port() -> int:
    """Where nobody listens."""
    return free_port()
