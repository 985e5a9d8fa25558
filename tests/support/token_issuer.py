"""An issuer of bearer tokens: keys, tokens that joserfc signs with them, and an endpoint that has the public ones.

issuer = Issuer()
issuer.add("RS256", "first")
token = issuer.token("first", sub="alice")
with issuer.endpoint() as endpoint: ...  # endpoint.url
"""

from __future__ import annotations

import json
import ssl
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from joserfc import jwk, jwt

CURVES = {"ES256": "P-256", "ES384": "P-384", "ES512": "P-521"}
SIGNED_FOR = 3600


class Issuer:
    """Its keys by name; `now` is its clock, in seconds since 1970 (None: that of the machine)."""

    def __init__(self, now: float | None = None) -> None:
        self.now = now
        self.keys: dict[str, tuple[str, Any]] = {}

    def add(self, algorithm: str, name: str, *, bits: int = 2048) -> Any:
        """A new key."""
        found: Any
        if algorithm in CURVES:
            found = jwk.ECKey.generate_key(CURVES[algorithm], parameters={"kid": name})
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a test may want a short one
                found = jwk.RSAKey.generate_key(bits, parameters={"kid": name})
        self.keys[name] = algorithm, found
        return found

    def public(self, name: str, **more: Any) -> dict[str, Any]:
        """One public key, as in a set."""
        return {**self.keys[name][1].as_dict(private=False), **more}

    def key_set(self, *names: str) -> str:
        """The public keys with these names; without names all of them."""
        return json.dumps({"keys": [self.public(name) for name in names or self.keys]})

    def write(self, path: Path, *names: str) -> str:
        """The set in a file, as a URL."""
        path.write_text(self.key_set(*names))
        return path.as_uri()

    def token(self, name: str, *, header: Mapping[str, Any] | None = None, **claims: Any) -> str:
        """Signed with this key. Claims that are None are left out, of the header too."""
        algorithm, key = self.keys[name]
        now = int(time.time() if self.now is None else self.now)
        given = {"sub": "alice", "iat": now, "exp": now + SIGNED_FOR, **claims}
        head = {"alg": algorithm, "kid": name, **(header or {})}
        return jwt.encode(
            {k: v for k, v in head.items() if v is not None},
            {k: v for k, v in given.items() if v is not None},
            key,
            algorithms=[str(head["alg"])],
        )

    @contextmanager
    def endpoint(self, *names: str, certificate: str | None = None) -> Iterator[Endpoint]:
        """A server of its keys, by HTTPS with the certificate in this file."""
        found = Endpoint(self.key_set(*names) if self.keys else "", certificate)
        thread = threading.Thread(target=found.server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield found
        finally:
            found.server.shutdown()
            found.server.server_close()
            thread.join()


class Endpoint:
    """What it answers can be changed; `requests` counts. While `held` is cleared no answer is complete. To a POST it
    answers what `make_token` returns."""

    def __init__(self, text: str, certificate: str | None) -> None:
        self.text, self.status, self.requests = text, 200, 0
        self.headers: dict[str, str] = {}
        self.held = threading.Event()
        self.held.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests += 1
                outer.asked = dict(self.headers)
                data = outer.text.encode()
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(data)))
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.flush()
                outer.held.wait()
                self.wfile.write(data)

            def do_POST(self) -> None:
                """The grant of client credentials (RFC 6749, section 4.4)."""
                self.rfile.read(int(self.headers["Content-Length"]))
                data = json.dumps(
                    {"access_token": outer.make_token(), "token_type": "Bearer", "expires_in": SIGNED_FOR}
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *arguments: Any) -> None:
                pass

        self.asked: dict[str, str] = {}
        self.make_token: Callable[[], str] = str
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://127.0.0.1:{self.server.server_address[1]}/keys"
