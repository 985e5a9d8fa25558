"""What commands show an admin port that needs a log-in."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import click
import pytest

from leafcuttr.cli.common.admin_client import LogIn, log_in_of, log_in_of_client, open_admin, tls_of_client
from leafcuttr_sdk import (
    CliCommand,
    PluginError,
    admin_server_option,
    bootstrap_server_options,
    command_context,
)
from leafcuttr_sdk.testing import run_command
from support.tls_peer import Certificates

RIGHT = "Basic " + base64.b64encode("alice:té:a".encode()).decode()
SASL = (
    "security.protocol=SASL_SSL",
    "sasl.mechanism=SCRAM-SHA-256",
    "sasl.username=alice",
    "sasl.password=té:a",
)


class Port(HTTPServer):
    """An admin port; `seen` are the headers that it got."""

    challenge = 'Basic realm="leafcuttr"'

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[str, str, str | None]] = []

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        header, port = self.headers.get("Authorization"), self.server
        assert isinstance(port, Port)
        port.seen.append((self.command, self.path, header))
        right = self.path == "/open" or header == RIGHT
        self.send_response(302 if self.path == "/moved" else 200 if right else 401)
        if self.path == "/moved":
            self.send_header("Location", "/open")
        if not right:
            self.send_header("WWW-Authenticate", port.challenge)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_DELETE = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[Port]:
    with Port() as found, serving(found):
        yield found


@contextmanager
def serving(server: Port) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join(60)


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "auth"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("text", "header"),
    [
        ("alice:té:a\n", RIGHT),
        ("alice:\r\n", "Basic " + base64.b64encode(b"alice:").decode()),
        ("Bearer a.b.c\n", "Bearer a.b.c"),
        ("  bearer   a.b.c  ", "Bearer a.b.c"),
    ],
)
def test_a_file(tmp_path: Path, text: str, header: str) -> None:
    file = written(tmp_path, text)
    assert log_in_of(file) == LogIn(header, f"--admin-auth {file}")


@pytest.mark.parametrize("text", ["", "secret", ":secret", "a:secret\nb:secret", "Bearer", "Bearer secret é"])
def test_a_file_that_is_none(tmp_path: Path, text: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(click.UsageError) as caught:
        log_in_of(file)
    assert str(caught.value) == f"--admin-auth {file}: expected one line, NAME:PASSWORD or Bearer TOKEN"
    file.write_bytes(b"a:\xff")
    with pytest.raises(click.UsageError, match="it is not UTF-8"):
        log_in_of(file)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "[::1]"])
def test_the_log_in_of_clients_stays_on_this_machine(host: str) -> None:
    assert log_in_of_client(SASL, f"{host}:9404") == LogIn(RIGHT, "the client settings")
    assert log_in_of_client(SASL, f"https://{host}:9404") == LogIn(RIGHT, "the client settings")
    jaas = (*SASL[:2], 'sasl.jaas.config=M required username="alice" password="té:a";')
    assert log_in_of_client(jaas, f"{host}:9404") == LogIn(RIGHT, "the client settings")
    for other in (
        (),
        SASL[1:],
        (*SASL, "sasl.mechanism=OAUTHBEARER"),
        (*SASL, 'sasl.jaas.config=M required username="i" password="h" tokenauth="true";'),
    ):
        assert log_in_of_client(other, f"{host}:9404") is None


@pytest.mark.parametrize("host", ["hub", "10.0.0.1", "127.0.0.1.example.org", "xlocalhost", "[::2]"])
def test_another_machine_does_not_get_it(host: str) -> None:
    assert log_in_of_client(SASL, f"{host}:9404") is None
    assert log_in_of_client(SASL, f"https://{host}:9404") is None


def test_what_is_given_is_shown_at_once(port: Port) -> None:
    with open_admin(port.address, "/x", "DELETE", 60, LogIn(RIGHT, "x"), LogIn("no", "y")) as answer:
        assert answer.status == 200
    assert port.seen == [("DELETE", "/x", RIGHT)]


def test_that_of_clients_is_shown_where_it_is_requested(port: Port) -> None:
    of_client = LogIn(RIGHT, "the client settings")
    with open_admin(port.address, "/open", "GET", 60, None, of_client) as answer:
        assert answer.status == 200
    with open_admin(port.address, "/x", "GET", 60, None, of_client) as answer:
        assert answer.status == 200
    assert port.seen == [("GET", "/open", None), ("GET", "/x", None), ("GET", "/x", RIGHT)]
    port.challenge = "Bearer"
    with pytest.raises(
        PluginError, match="needs a log-in: --admin-auth FILE, with NAME:PASSWORD or Bearer TOKEN"
    ):
        open_admin(port.address, "/x", "GET", 60, None, of_client)


def test_where_it_leads_gets_no_password(port: Port) -> None:
    with open_admin(port.address, "/moved", "GET", 60, LogIn(RIGHT, "x"), None) as answer:
        assert answer.status == 200
    assert [header for _, _, header in port.seen] == [RIGHT, None]


def test_what_is_refused(port: Port) -> None:
    with pytest.raises(
        PluginError, match=rf"^the admin port at {port.address} needs a log-in: --admin-auth FILE"
    ):
        open_admin(port.address, "/x", "GET", 60, None, None)
    with pytest.raises(PluginError, match=rf"^the admin port at {port.address} refuses the log-in of me$"):
        open_admin(port.address, "/x", "GET", 60, LogIn("Basic eA==", "me"), None)
    with pytest.raises(PluginError, match="refuses the log-in of the client settings"):
        open_admin(port.address, "/x", "GET", 60, None, LogIn("Basic eA==", "the client settings"))
    with pytest.raises(OSError, match="refused"):
        open_admin("127.0.0.1:1", "/x", "GET", 60, None, None)


def command(with_clients: bool) -> CliCommand:
    def do() -> None:
        with command_context().open_admin("/x") as answer:
            command_context().print_line(f"{answer.status}")

    function = admin_server_option(do)
    made = click.command("do")(bootstrap_server_options(function) if with_clients else function)
    return CliCommand("do", "do it", lambda: made)


@pytest.mark.parametrize("with_clients", [True, False])
def test_a_command(port: Port, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_clients: bool) -> None:
    file, found = written(tmp_path, "alice:té:a\n"), command(with_clients)
    where = ("--admin-server", port.address)
    assert run_command(found, *where, "--admin-auth", str(file)).out == "200\n"
    ran = run_command(found, *where)
    assert (ran.status, ran.err) == (
        1,
        f"leafcuttr: the admin port at {port.address} needs a log-in: --admin-auth FILE, with NAME:PASSWORD or Bearer "
        "TOKEN\n",
    )
    if with_clients:
        assert run_command(found, *where, *(word for each in SASL for word in ("-X", each))).out == "200\n"
    monkeypatch.setenv("LEAFCUTTR_ADMIN_AUTH", str(file))
    assert run_command(found, *where).out == "200\n"


# TLS


@pytest.fixture
def ours(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


@contextmanager
def port_with_tls(ours: Certificates, *, required: bool = True) -> Iterator[Port]:
    with Port() as found:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=ours.trusted)
        context.load_cert_chain(ours.issue("127.0.0.1").file)
        context.verify_mode = ssl.CERT_REQUIRED if required else ssl.CERT_NONE
        found.socket = context.wrap_socket(found.socket, server_side=True, do_handshake_on_connect=True)
        with serving(found):
            yield found


def test_a_command_over_tls(ours: Certificates, tmp_path: Path) -> None:
    """By the names of Java and of librdkafka, from a file and from -X."""
    found, log_in, own = (
        command(True),
        written(tmp_path, "alice:té:a\n"),
        ours.issue(common_name="alice").file,
    )
    java, config = tmp_path / "client.properties", tmp_path / "client.conf"
    java.write_text(f"ssl.truststore.location={ours.trusted}\nssl.keystore.location={own}\n")
    config.write_text(f"ssl.ca.location={ours.trusted}\n")
    with port_with_tls(ours) as port:
        where = ("--admin-server", f"https://{port.address}", "--admin-auth", str(log_in))
        assert run_command(found, *where, "--command-config", str(java)).out == "200\n"
        ends = "-X", f"ssl.certificate.location={own}", "-X", f"ssl.key.location={own}"
        assert run_command(found, *where, "-F", str(config), *ends).out == "200\n"
        ran = run_command(found, *where)
        assert ran.status == 1
        assert ran.err.startswith(
            f"leafcuttr: the admin port at https://{port.address}: its certificate is refused: "
        )
        assert ran.err.endswith(
            "(ssl.truststore.location or ssl.ca.location of --client-config names its authority)\n"
        )
        ran = run_command(found, *where, "-F", str(config))
        assert ran.status == 1 and ran.err.count("\n") == 1, "without our certificate"
        ran = run_command(found, *where, "-X", "ssl.ca.location=/nowhere")
        assert (ran.status, "ssl.ca.location=/nowhere" in ran.err) == (2, True)


def test_the_two_do_not_agree_on_tls(ours: Certificates, port: Port) -> None:
    trusting = tls_of_client([f"ssl.ca.location={ours.trusted}"], f"https://{port.address}")
    assert trusting is not None and tls_of_client([], port.address) is None
    with pytest.raises(PluginError, match="it has no TLS: --admin-server HOST:PORT, without https://"):
        open_admin(f"https://{port.address}", "/x", "GET", 60, None, None, trusting)


def test_plaintext_where_there_is_tls(ours: Certificates) -> None:
    """An alert of TLS is no answer."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        accepted, _ = listening.accept()
        with accepted:
            accepted.recv(65536)
            accepted.sendall(b"\x15\x03\x01\x00\x02\x02\x46")

    address = f"127.0.0.1:{listening.getsockname()[1]}"
    thread = threading.Thread(target=serve)
    thread.start()
    with listening:
        with pytest.raises(PluginError) as caught:
            open_admin(address, "/x", "GET", 60, None, None)
        thread.join()
    assert str(caught.value) == (
        f"the admin port at {address} does not speak HTTP (BadStatusLine); if it has TLS: --admin-server "
        f"https://{address}"
    )
