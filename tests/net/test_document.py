"""A document by HTTP and HTTPS, and each way in which it cannot be had."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from leafcuttr.net.document import NoDocument, check_url, fetch_document
from support.tls_peer import Certificates
from support.token_issuer import Endpoint, Issuer


def fetched(url: str, *, at_most_s: float = 60, at_most_bytes: int = 1000, ca_file: str | None = None) -> str:
    """The document, or why there is none."""
    try:
        found = fetch_document(
            url, accept="text/x", at_most_s=at_most_s, at_most_bytes=at_most_bytes, ca_file=ca_file
        )
    except NoDocument as error:
        assert "\n" not in str(error)
        return f"no: {error}"
    return found.decode()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Issuer().endpoint() as found:
        found.text = "x" * 1000
        yield found


def test_a_document(endpoint: Endpoint) -> None:
    assert fetched(endpoint.url + "?a=b") == "x" * 1000
    assert endpoint.asked["Accept"] == "text/x"
    assert endpoint.asked["Host"] == endpoint.url.split("/")[2]


def test_one_that_is_too_large(endpoint: Endpoint) -> None:
    assert fetched(endpoint.url, at_most_bytes=999) == "no: the answer has more than 999 bytes"


@pytest.mark.parametrize("status", [201, 301, 404, 500])
def test_other_answers(endpoint: Endpoint, status: int) -> None:
    """A redirect is not followed: it would be another server than the settings name."""
    endpoint.status = status
    endpoint.headers["Location"] = endpoint.url
    assert fetched(endpoint.url).startswith(f"no: the answer is {status} ")
    assert endpoint.requests == 1


def test_an_answer_that_does_not_end(endpoint: Endpoint) -> None:
    endpoint.held.clear()
    assert fetched(endpoint.url, at_most_s=0.2) == "no: there is no answer within 0.2 seconds"
    endpoint.held.set()


def test_by_tls(tmp_path: Path) -> None:
    ours, others = Certificates(tmp_path), Certificates(tmp_path, "other")
    with Issuer().endpoint(certificate=ours.issue("127.0.0.1").file) as endpoint:
        endpoint.text = "secure"
        assert fetched(endpoint.url, ca_file=ours.trusted) == "secure"
        refused = "no: the certificate of the server is refused: unable to get local issuer certificate"
        assert fetched(endpoint.url) == refused
        assert fetched(endpoint.url, ca_file=others.trusted) == refused
        named = endpoint.url.replace("127.0.0.1", "localhost")
        assert "the certificate of the server is refused: Hostname mismatch" in fetched(
            named, ca_file=ours.trusted
        )
        assert fetched(endpoint.url.replace("https", "http")).startswith("no: ")
        missing = fetched(endpoint.url, ca_file="/nowhere")
        assert missing == "no: /nowhere has no certificates of authorities in PEM: No such file or directory"
    with Issuer().endpoint() as plain:
        assert fetched(plain.url.replace("http:", "https:")).startswith("no: TLS fails: ")


@contextmanager
def server(answer: bytes) -> Iterator[str]:
    """One that answers once, with these bytes."""
    with socket.create_server(("127.0.0.1", 0)) as sock:

        def run() -> None:
            with sock.accept()[0] as connection:
                connection.recv(4096)
                connection.sendall(answer)

        thread = threading.Thread(target=run)
        thread.start()
        yield f"http://127.0.0.1:{sock.getsockname()[1]}/"
        thread.join()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"", "the server does not speak HTTP (RemoteDisconnected)"),
        (b"SSH-2.0-OpenSSH\r\n", "the server does not speak HTTP (BadStatusLine)"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
            "the server does not speak HTTP (IncompleteRead)",
        ),
    ],
)
def test_servers_of_another_kind(answer: bytes, why: str) -> None:
    with server(answer) as url:
        assert fetched(url) == f"no: {why}"


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
    assert fetched(f"http://127.0.0.1:{port}/") == "no: Connection refused"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "it is no URL of https: or http:"),
        ("ftp://host/", "it is no URL of https: or http:"),
        ("https:///path", "it is no URL of https: or http:"),
        ("https://user:secret@host/", "a user or a password in a URL is not sent"),
        ("https://host:99999/", "Port out of range 0-65535"),
    ],
)
def test_urls_that_are_none(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=r"it is|sent|range") as caught:
        check_url(url)
    assert str(caught.value) == why
    assert fetched(url) == f"no: {why}"
