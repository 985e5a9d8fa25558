"""One request over HTTP: what goes out, how long and how large the answer may be, and which connection it takes."""

from __future__ import annotations

import base64
import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from leafcuttr_sdk.errors import PluginError
from leafcuttr_sdk.http_schemas.exchange import Answer, Connections, NoAnswer
from leafcuttr_sdk.http_schemas.settings import registry_settings
from support.http_registry import Requested, ScriptedRegistry, scripted_registry
from support.tls_peer import Certificates
from support.waiting import free_port


def echo(asked: Requested) -> tuple[int, object]:
    return 200, {"method": asked.method, "path": asked.path, "body": asked.body}


@pytest.fixture
def registry() -> Iterator[ScriptedRegistry]:
    with scripted_registry(echo) as running:
        yield running


def connections(url: str, **given: str) -> Connections:
    properties = {name.replace("_", "."): value for name, value in given.items()}
    return Connections(registry_settings({"schema.registry.url": url, **properties}))


def request(found: Connections, path: str = "/x", body: object = None) -> Answer:
    method = "GET" if body is None else "POST"
    return found.request(found._settings.addresses[0], method, path, body)


def test_what_goes_out(registry: ScriptedRegistry) -> None:
    found = connections(f"{registry.url}/base/")
    assert request(found, "/a?b=c").body == {"method": "GET", "path": "/base/a?b=c", "body": None}
    assert request(found, "/a", {"schema": "ü"}).body["body"] == {"schema": "ü"}
    first, second = registry.requests
    assert first.headers["Accept"].startswith("application/vnd.schemaregistry.v1+json")
    assert "Authorization" not in first.headers
    assert second.headers["Content-Type"] == "application/vnd.schemaregistry.v1+json"


@pytest.mark.parametrize(
    ("url", "given", "header"),
    [
        ("a%3Ab:c@", {}, "Basic " + base64.b64encode(b"a:b:c").decode()),
        ("u:p@", {"basic_auth_user_info": "ä:ö"}, "Basic " + base64.b64encode("ä:ö".encode()).decode()),
        ("u:p@", {"bearer_auth_token": "t"}, "Bearer t"),
    ],
)
def test_who_asks(registry: ScriptedRegistry, url: str, given: dict[str, str], header: str) -> None:
    request(connections(registry.url.replace("//", f"//{url}"), **given))
    assert registry.requests[0].headers["Authorization"] == header


def test_headers_of_a_cloud(registry: ScriptedRegistry) -> None:
    request(connections(registry.url, bearer_auth_token="t", bearer_auth_logical_cluster="lsrc-1"))
    assert registry.requests[0].headers["target-sr-cluster"] == "lsrc-1"


def test_a_connection_is_used_again(registry: ScriptedRegistry) -> None:
    found = connections(registry.url)
    for _ in range(3):
        request(found)
    assert registry.connections == 1
    found.close()
    request(found)
    assert registry.connections == 2


def test_one_that_was_closed_meanwhile_is_made_anew(registry: ScriptedRegistry) -> None:
    found = connections(registry.url)
    request(found)
    ((connection,),) = found._idle.values()
    connection.sock.shutdown(socket.SHUT_RDWR)
    assert request(found).status == 200
    assert registry.connections == 2


def test_threads_have_connections_of_their_own(registry: ScriptedRegistry) -> None:
    found, met = connections(registry.url), threading.Barrier(3, timeout=20)

    def give(asked: Requested) -> tuple[int, object]:
        met.wait()
        return echo(asked)

    registry.give = give
    answers: list[int] = []
    threads = [threading.Thread(target=lambda: answers.append(request(found).status)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert answers == [200] * 3
    assert registry.connections == 3


def test_an_answer_without_json(registry: ScriptedRegistry) -> None:
    found = connections(registry.url)
    for body in (b"<html>", b"", b"[" * 100_000, b"\xff"):
        registry.give = lambda _, body=body: (200, body)  # type: ignore[misc]
        assert request(found) == Answer(200, None)
    registry.headers["Retry-After"] = "7"
    assert request(found).retry_after_s == 7.0
    registry.headers["Retry-After"] = "Wed, 21 Oct 2026 07:28:00 GMT"
    assert request(found).retry_after_s is None


def test_one_that_is_too_large(registry: ScriptedRegistry) -> None:
    found = connections(registry.url, max_response_bytes="10000")
    registry.give = lambda _: (200, b'"' + b"x" * 9998 + b'"')
    assert request(found).status == 200
    registry.give = lambda _: (200, b'"' + b"x" * 9999 + b'"')
    with pytest.raises(NoAnswer, match="its answer is larger than 10000 bytes"):
        request(found)
    assert found._idle == {} or not any(found._idle.values()), "what is left of it would be the next answer"


@pytest.mark.parametrize("what", ["nothing", "a body", "headers"])
def test_one_that_takes_too_long(what: str) -> None:
    """Also if something comes all the time."""
    begins = {
        "nothing": b"",
        "a body": b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n",
        "headers": b"HTTP/1.1 200 OK\r\n",
    }
    ended = threading.Event()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def drip() -> None:
            peer, _ = listener.accept()
            with peer, contextlib.suppress(OSError):
                peer.sendall(begins[what])
                while not ended.wait(0.02):
                    peer.sendall(b"x: y\r\n" if begins[what] else b"")

        thread = threading.Thread(target=drip)
        thread.start()
        found = connections(f"http://127.0.0.1:{listener.getsockname()[1]}", http_read_timeout_ms="400")
        try:
            with pytest.raises(NoAnswer, match=r"takes too long|takes longer than 0\.4 seconds"):
                request(found)
        finally:
            ended.set()
            thread.join()


def test_one_that_is_cut_off(registry: ScriptedRegistry) -> None:
    found = connections(registry.url)
    registry.headers["Content-Length"] = "1000"
    registry.headers["Connection"] = "close"
    with pytest.raises(NoAnswer, match="no schema registry answers at http://127"):
        request(found)
    registry.give = lambda _: (0, None)
    with pytest.raises(NoAnswer):
        request(found)


def test_nobody_is_there() -> None:
    with pytest.raises(
        NoAnswer, match=r"^no schema registry answers at http://127.0.0.1:\d+: Connection refused$"
    ):
        request(connections(f"http://127.0.0.1:{free_port()}"))
    with pytest.raises(NoAnswer, match="the name is unknown"):
        request(connections("http://name.invalid:1"))


def test_what_is_no_http() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def greet() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"220 mail ready\r\n\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        with pytest.raises(NoAnswer, match="it does not speak HTTP"):
            request(connections(f"http://127.0.0.1:{listener.getsockname()[1]}"))
        thread.join()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("tls"))


def server_context(certificates: Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.issue("127.0.0.1").file)
    return context


def test_over_tls(certificates: Certificates) -> None:
    with scripted_registry(echo, context=server_context(certificates)) as registry:
        url = registry.url.replace("http:", "https:")
        assert request(connections(url, ssl_ca_location=certificates.trusted)).status == 200
        text = Path(certificates.trusted).read_text()
        assert request(connections(url, ssl_truststore_certificates=text)).status == 200
        assert request(connections(url, enable_ssl_certificate_verification="false")).status == 200
        with pytest.raises(NoAnswer, match="its certificate is refused: "):
            request(connections(url))
        with pytest.raises(NoAnswer):
            request(connections(registry.url))


def test_a_certificate_of_its_own(certificates: Certificates) -> None:
    context = server_context(certificates)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificates.trusted)
    ours = certificates.issue("client").file
    with scripted_registry(echo, context=context) as registry:
        url = registry.url.replace("http:", "https:")
        given = {"ssl_ca_location": certificates.trusted, "ssl_certificate_location": str(ours)}
        assert request(connections(url, **given)).status == 200
        with pytest.raises(NoAnswer):
            request(connections(url, ssl_ca_location=certificates.trusted))


@pytest.mark.parametrize("name", ["ssl_ca_location", "ssl_certificate_location"])
def test_files_that_cannot_be_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "bad.pem").write_text("no PEM")
    for file in ("missing.pem", "bad.pem"):
        with pytest.raises(PluginError, match=f"^{tmp_path}/{file}: no certificate") as raised:
            request(connections("https://127.0.0.1:1", **{name: str(tmp_path / file)}))
        assert len(str(raised.value).splitlines()) == 1
