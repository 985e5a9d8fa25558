"""A client of any registry: addresses, what authenticates, and what is no registry."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from leafcuttr_registry.people.client import RegistryClient, RegistryError, all_versions, subject_path
from leafcuttr_sdk.errors import PluginError


class Answers(BaseHTTPRequestHandler):
    """Says what it was asked; `/refuse` and `/text` as a registry, and what is none, would."""

    def do_GET(self) -> None:
        status, body = 200, json.dumps([self.path, dict(self.headers)]).encode()
        if self.path.endswith("/refuse"):
            status, body = 404, b'{"error_code": 40401, "message": "no such thing"}'
        elif self.path.endswith("/gateway"):
            status, body = 502, b"<html>"
        elif self.path.endswith("/text"):
            body = b"<html>"
        elif self.path.endswith("/deep"):
            body = b"[" * 200_000
        elif self.path.endswith("/deep-refusal"):
            status, body = 404, b"[" * 200_000
        elif self.path.startswith("/schemas?"):
            body = json.dumps(self.schemas()).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def schemas(self) -> list[dict[str, object]]:
        """At most three at a time, whatever is asked for; those of `flat` all at once, which knows no pages."""
        asked = dict(parse_qsl(urlsplit(self.path).query))
        found: list[dict[str, object]] = [{"subject": "a", "version": number} for number in range(1, 8)]
        if asked["subjectPrefix"] == "flat":
            return found
        at = int(asked["offset"])
        return found[at : at + min(3, int(asked["limit"]))]

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_addresses(server: str) -> None:
    for url, path in (
        (server, "/a"),
        (f"http://{server}/", "/a"),
        (f"http://{server}/api/registry/", "/api/registry/a"),
        (f"http://127.0.0.1:1, http://{server}", "/a"),
    ):
        found, _ = RegistryClient(url).get("/a")
        assert found == path
    found, _ = RegistryClient(server).get("/a", deleted=True, prefix="x y", none=None)
    assert found == "/a?deleted=true&prefix=x+y"


def test_the_variable(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAFCUTTR_SCHEMA_REGISTRY_URL", f"http://{server}")
    assert RegistryClient().get("/a")[0] == "/a"


def test_a_name_and_a_password(server: str) -> None:
    _, headers = RegistryClient(f"http://al%40ice:p%3Aw@{server}").get("/a")
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"al@ice:p:w"
    assert "Authorization" not in RegistryClient(server).get("/a")[1]


def test_what_it_refuses_has_its_code(server: str) -> None:
    with pytest.raises(RegistryError, match="no such thing") as caught:
        RegistryClient(server).get("/refuse")
    assert caught.value.code == 40401
    with pytest.raises(RegistryError, match="answers 502 Bad Gateway") as caught:
        RegistryClient(server).get("/gateway")
    assert caught.value.code == 502


def test_all_versions_are_asked_for_in_pages(server: str) -> None:
    client = RegistryClient(server)
    for prefix in (None, "flat"):
        found = all_versions(client, prefix, deleted=True)
        assert [each["version"] for each in found] == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{",
        b"HTTP/1.1 404 no\r\ncontent-length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["ssh", "nothing", "cut", "cut refusal", "headers", "chunks"],
)
def test_what_speaks_no_http_is_one_line(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.settimeout(10)
                connection.recv(10_000)
                connection.sendall(answer)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(10_000):
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(PluginError) as caught:
            RegistryClient(f"127.0.0.1:{listening.getsockname()[1]}", 10).get("/a")
        thread.join()
    assert len(str(caught.value).splitlines()) == 1 and not str(caught.value).endswith(": ")


@pytest.mark.parametrize("url", ["http://a b", "http://127.0.0.1:1/a b", "http://a\nb:1"])
def test_addresses_that_http_does_not_take(url: str) -> None:
    with pytest.raises(PluginError) as caught:
        RegistryClient(url).get("/a")
    assert len(str(caught.value).splitlines()) == 1


def test_what_is_no_registry(server: str) -> None:
    with pytest.raises(PluginError, match="it sends no JSON"):
        RegistryClient(server).get("/deep")
    with pytest.raises(RegistryError, match="answers 404"):
        RegistryClient(server).get("/deep-refusal")
    with pytest.raises(PluginError, match="is no schema registry: it sends no JSON"):
        RegistryClient(server).get("/text")
    with pytest.raises(PluginError, match=r"no schema registry answers at http://127\.0\.0\.1:1: "):
        RegistryClient("127.0.0.1:1").get("/a")


@pytest.mark.parametrize("url", ["ftp://a", "http://", "http://a:b", "http://[a", "http:// "])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(PluginError, match="is no address of a schema registry"):
        RegistryClient(url)


def test_a_password_is_not_in_the_line() -> None:
    with pytest.raises(PluginError) as caught:
        RegistryClient("http://alice:secret@127.0.0.1:1").get("/a")
    assert "secret" not in str(caught.value)
    for url in (
        "http://alice:secret@a:b",
        "ftp://alice:secret@a",
        "alice:secret@a:port",
        "http://:secret@[a",
    ):
        with pytest.raises(PluginError, match=r"\.\.\.@") as caught:
            RegistryClient(url)
        assert "secret" not in str(caught.value) and "alice" not in str(caught.value)


def test_paths_of_subjects() -> None:
    assert subject_path("a/b c", "versions", 1) == "/subjects/a%2Fb%20c/versions/1"
    assert subject_path("a", "versions", "1 /x?y") == "/subjects/a/versions/1%20%2Fx%3Fy"
