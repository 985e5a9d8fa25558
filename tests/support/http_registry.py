"""An HTTP server whose answers a test gives, for clients of registries: it notes what it was requested."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Requested(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: Any


Give = Callable[[Requested], "tuple[int, object]"]
"""Status and body of an answer: what is no bytes is JSON."""


class ScriptedRegistry:
    """`requests` are those that came. `give` may be another function at any time."""

    def __init__(self, give: Give) -> None:
        self.give = give
        self.requests: list[Requested] = []
        self.headers: dict[str, str] = {}
        self.connections = 0
        self.before_body: Callable[[Any], None] | None = None
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                registry.connections += 1
                super().setup()

            def _answer(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                data = self.rfile.read(length)
                asked = Requested(
                    self.command, self.path, dict(self.headers.items()), json.loads(data) if data else None
                )
                registry.requests.append(asked)
                status, body = registry.give(asked)
                if status == 0:
                    self.close_connection = True
                    return
                sent = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(sent)), **registry.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if registry.before_body is not None:
                    registry.before_body(self.wfile)
                self.wfile.write(sent)

            def log_message(self, format: str, *args: object) -> None:
                pass

        for method in ("GET", "POST"):
            setattr(Handler, f"do_{method}", Handler._answer)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def server(self) -> ThreadingHTTPServer:
        return self._server

    def paths(self) -> list[str]:
        return [each.path for each in self.requests]


@contextmanager
def scripted_registry(give: Give, *, context: Any = None) -> Iterator[ScriptedRegistry]:
    """One that answers until the end of the block. `context` is for TLS."""
    registry = ScriptedRegistry(give)
    if context is not None:
        registry.server.socket = context.wrap_socket(registry.server.socket, server_side=True)
    thread = threading.Thread(target=registry.server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        registry.server.shutdown()
        registry.server.server_close()
        thread.join()
