"""`leafcuttr certs`: files of every kind, servers, configurations, a running broker, an authority to try with."""

from __future__ import annotations

import builtins
import json
import os
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme

from leafcuttr.cli.certs.listeners import _others
from leafcuttr.cli.root import cli
from support.broker_process import running_broker
from support.commands import Ran
from support.tls_peer import Certificates, Seen, shake_hands
from support.waiting import free_port

KEYSTORES = Path(__file__).parents[2] / "net" / "keystores"


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Ran]:
    """As the common one, but with no broker."""

    def run(*words: object, stdin: str = "", at: str = "127.0.0.1:1") -> Ran:
        source = tmp_path / "standard-input"
        source.write_text(stdin)
        with source.open() as file, monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", file)
            patch.setenv("LEAFCUTTR_BOOTSTRAP_SERVER", at)
            try:
                cli.main([str(word) for word in words], prog_name="leafcuttr")
                status: Any = 0
            except SystemExit as ended:
                status = int(ended.code or 0)
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


Run = Callable[..., Ran]


# show


@pytest.mark.parametrize(
    ("file", "stdin"), [("key.p12", "store-secret\n"), ("key.jks", ""), ("old.p12", "store-secret")]
)
def test_show_a_keystore(run: Run, file: str, stdin: str) -> None:
    done = run("certs", "show", KEYSTORES / file, "--json", stdin=stdin)
    assert done.status == 0, done.err
    (one,) = done.json
    assert one["subject"] == one["issuer"] == "CN=localhost,OU=web,O=Example"
    assert (one["names"], one["key"], one["authority"]) == (["localhost"], "P-256", False)
    assert one["days_left"] > 30_000


def test_show_for_people(run: Run, tmp_path: Path) -> None:
    authority = trustme.CA()
    file = tmp_path / "chain.pem"
    found = authority.issue_cert("kafka.test", common_name="kafka", organization_name="A,B")
    file.write_bytes(found.cert_chain_pems[0].bytes() + authority.cert_pem.bytes())
    done = run("certs", "show", file)
    first, second = done.out.split("\n\n")
    assert first.startswith("subject  CN=kafka,") and "O=A\\,B\n" in first
    assert "\nnames    kafka.test\n" in first
    assert " days left\n" in first and "\nkey      P-256\n" in first
    assert "\nkey      P-256, of an authority\n" in second


def test_show_what_cannot_be_shown(run: Run, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("x\n")
    for words, stdin, why in (
        ([KEYSTORES / "key.p12"], "other\n", "it is a PKCS#12 keystore; the password does not open it"),
        ([KEYSTORES / "key.jceks"], "", "it is a JCEKS keystore"),
        (
            [KEYSTORES / "key.jks", "--password-file", wrong],
            "",
            "key.jks: the password does not open it, or it",
        ),
        ([tmp_path / "none.pem"], "", "No such file or directory"),
        ([tmp_path], "", "Is a directory"),
        ([f"127.0.0.1:{free_port()}"], "", "Connection refused"),
        ([KEYSTORES / "key.p12", "--password-file", tmp_path / "none"], "", "--password-file"),
    ):
        done = run("certs", "show", *words, stdin=stdin)
        assert done.status == 1 and why in done.err and done.err.count("\n") == 1, done


def test_show_der_and_a_password_in_a_file(run: Run, tmp_path: Path) -> None:
    der, secret = tmp_path / "ca.der", tmp_path / "secret"
    der.write_bytes(ssl.PEM_cert_to_DER_cert(trustme.CA().cert_pem.bytes().decode()))
    assert "of an authority" in run("certs", "show", der).out
    secret.write_text("store-secret\r\n")
    assert "CN=localhost" in run("certs", "show", KEYSTORES / "key.p12", "--password-file", secret).out


@pytest.fixture
def tls_server(tmp_path: Path) -> Iterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Certificates(tmp_path).issue("kafka.test").file)
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        accepted, _ = listening.accept()
        with context.wrap_socket(accepted, server_side=True) as tls:
            tls.recv(1)

    thread = threading.Thread(target=serve)
    thread.start()
    yield listening.getsockname()[1]
    thread.join()
    listening.close()


def test_show_a_server(run: Run, tls_server: int) -> None:
    """Whatever its names are, and whoever has signed it."""
    done = run("certs", "show", f"127.0.0.1:{tls_server}", "--json")
    assert done.json[0]["names"] == ["kafka.test"], done.err


# check


def test_check_a_configuration(run: Run, tmp_path: Path) -> None:
    ours = Certificates(tmp_path)
    good, other = ours.issue("kafka.test"), ours.issue("other.test")
    for each in (good, other):
        Path(each.file).chmod(0o600)
    file = tmp_path / "server.properties"
    file.write_text(
        "listeners=SSL://0.0.0.0:9093,IN://127.0.0.1:9094,PLAINTEXT://127.0.0.1:9092\n"
        "advertised.listeners=SSL://kafka.test:9093\n"
        "listener.security.protocol.map=SSL:SSL,IN:SASL_SSL,PLAINTEXT:PLAINTEXT\n"
        f"ssl.keystore.location={good.file}\n"
    )
    done = run("certs", "check", "--config", file)
    assert done.status == 1
    assert done.out.startswith(
        "SSL: its certificate is right, and for kafka.test\nIN: wrong: ssl.keystore.location="
    )
    assert (
        "the certificate is not for 127.0.0.1, as which clients connect; its names are kafka.test\n"
        in done.out
    )
    Path(good.file).chmod(0o644)
    inside = "-o", "advertised.listeners=SSL://kafka.test:9093,IN://kafka.test:9094"
    done = run("certs", "check", "--config", file, *inside, "--json")
    assert done.status == 0, "a warning is none"
    assert [(one["listener"], one["host"], one["wrong"]) for one in done.json] == [
        ("SSL", "kafka.test", []),
        ("IN", "kafka.test", []),
    ]
    assert "every user of this machine can read the private key" in done.json[0]["doubtful"][0]
    assert "SSL: warning: " in run("certs", "check", "--config", file, *inside).out
    for override, line in (
        ("ssl.keystore.location=/nowhere", "ssl.keystore.location=/nowhere: No such file"),
        ("ssl.principal.mapping.rules=x", "ssl.principal.mapping.rules: 'x' does not begin"),
    ):
        wrong = run("certs", "check", "--config", file, *inside, "-o", override, "--json")
        assert wrong.status == 1 and wrong.json[0]["wrong"][0].startswith(line)
    assert run("certs", "check", "-o", "listeners=x").status == 1
    assert run("certs", "check").out == "no listener has TLS\n"


def test_check_the_metrics_port(run: Run, tmp_path: Path) -> None:
    """Its clients know it by names that no setting has."""
    good = Path(Certificates(tmp_path).issue("kafka.test").file)
    good.chmod(0o600)
    with_tls = "-o", f"lc.metrics.ssl.keystore.location={good}"
    assert run("certs", "check", *with_tls).out == "lc.metrics: its certificate is right\n"
    assert run("certs", "check", *with_tls, "-o", "lc.metrics.enable=false").out == "no listener has TLS\n"
    good.write_text("nothing")
    done = run("certs", "check", *with_tls, "--json")
    (one,) = done.json
    assert (done.status, one["listener"]) == (1, "lc.metrics")
    assert one["wrong"][0].startswith(f"lc.metrics.ssl.keystore.location={good}: it has no PEM")


# reload


def test_reload(run: Run, tmp_path: Path) -> None:
    """Of a listener whose file was given at the start, and of one whose file was altered since; nothing is stored."""
    ours = Certificates(tmp_path)
    path = Path(ours.issue("127.0.0.1", common_name="a").file)
    second = Path(ours.issue("second.test", "127.0.0.1", common_name="a").file).read_bytes()
    ports = [free_port() for _ in range(3)]
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:{},SSL://127.0.0.1:{},IN://127.0.0.1:{}".format(*ports),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,IN:SASL_SSL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "ssl.keystore.location": str(path),
        "lc.tls.reload.interval.ms": "0",
        "ssl.allow.dn.changes": "true",
    }
    address = f"127.0.0.1:{ports[0]}"

    def names(port: int) -> tuple[str, ...]:
        found = shake_hands(port, ours.client())
        assert isinstance(found, Seen)
        return found.names

    def altered() -> list[str]:
        found = run("configs", "describe", "broker", "1", "--json", at=address)
        assert found.status == 0, found.err
        return [line for line in found.out.split('"') if line.startswith("listener.name.")]

    with running_broker(tmp_path / "broker", settings):
        path.write_bytes(second)
        assert names(ports[1]) == ("127.0.0.1",)
        done = run("certs", "reload", at=address)
        assert (done.status, done.out) == (0, "SSL of broker 1: read\nIN of broker 1: read\n"), done.err
        assert "second.test" in names(ports[1]) and "second.test" in names(ports[2])
        assert altered() == []
        own = f"listener.name.in.ssl.keystore.location={path}"
        assert run("configs", "alter", "broker", "1", "--set", own, at=address).status == 0
        path.write_text("nothing")
        done = run("certs", "reload", "--json", at=address)
        assert done.status == 1
        assert [one["listener"] for one in done.json] == ["SSL of broker 1", "IN of broker 1"]
        assert all("it has no PEM" in one["error"] for one in done.json)
        path.write_bytes(second)
        assert run("certs", "reload", at=address).status == 0
        assert set(altered()) == {"listener.name.in.ssl.keystore.location"}


@pytest.mark.parametrize(
    ("prefix", "more"),
    [
        ("lc.metrics", {"lc.metrics.enable": "true"}),
        ("lc.http.proxy", {"lc.http.proxy.enable": "true"}),
        ("lc.schema.registry", {"lc.schema.registry.enable": "true"}),
        ("mqtt", {"lc.mqtt.broker.enable": "true"}),
    ],
)
def test_reload_of_others_than_kafkas_listeners(
    run: Run, tmp_path: Path, prefix: str, more: dict[str, str]
) -> None:
    ours = Certificates(tmp_path)
    path = Path(ours.issue("127.0.0.1", common_name="a").file)
    second = Path(ours.issue("second.test", "127.0.0.1", common_name="a").file).read_bytes()
    address, port = f"127.0.0.1:{free_port()}", free_port()
    settings = {
        "listeners": f"PLAINTEXT://{address}",
        f"{prefix}.port": str(port),
        f"{prefix}.ssl.keystore.location": str(path),
        "lc.tls.reload.interval.ms": "0",
        **more,
    }

    def names() -> list[str]:
        done = run("certs", "show", f"127.0.0.1:{port}", "--json")
        return sorted(done.json[0]["names"]) if done.status == 0 else [done.err]

    with running_broker(tmp_path / "broker", settings):
        path.write_bytes(second)
        assert names() == ["127.0.0.1"]
        done = run("certs", "reload", at=address)
        assert (done.status, done.out) == (0, f"{prefix} of broker 1: read\n"), done.err
        assert names() == ["127.0.0.1", "second.test"]
        path.write_text("nothing")
        done = run("certs", "reload", at=address)
        assert done.status == 1 and "it has no PEM" in done.err
        assert names() == ["127.0.0.1", "second.test"]


def test_listeners_of_others_are_told_by_their_settings() -> None:
    values = {
        "listener.name.ssl.ssl.keystore.location": "a",
        "listener.name.ssl.ssl.client.auth": "none",
        "ssl.keystore.location": "a",
        "ssl.client.auth": "none",
        "b.ssl.keystore.location": "on by itself",
        "b.ssl.client.auth": "none",
        "c.ssl.keystore.location": "of a client",
        "d.ssl.keystore.location": "off",
        "d.ssl.client.auth": "none",
        "d.enable": "false",
        "e.ssl.keystore.location": "on",
        "e.ssl.client.auth": "none",
        "e.enable": "true",
        "f.ssl.keystore.location": "",
        "f.ssl.client.auth": "none",
    }
    assert _others(values) == ["b", "e"]


def test_reload_without_tls(run: Run, tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    with running_broker(tmp_path / "broker", {"listeners": f"PLAINTEXT://{address}"}):
        done = run("certs", "reload", at=address)
    assert (done.status, done.err) == (1, "leafcuttr: no listener has TLS\n")


# new


def test_new_certificates_serve(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    done = run("certs", "new", folder, "--host", "127.0.0.1", "--host", "kafka.test", "--client", "alice")
    assert done.status == 0, done.err
    assert sorted(os.listdir(folder)) == ["alice.pem", "broker.pem", "ca.key", "ca.pem"]  # noqa: PTH208
    assert all((folder / name).stat().st_mode & 0o077 == 0 for name in ("alice.pem", "broker.pem", "ca.key"))
    assert "the key of a client, whose principal is User:CN=alice" in done.out
    assert run("certs", "new", folder, "--client", "bob", "--days", "3").status == 0
    found = run("certs", "show", folder / "bob.pem", "--json").json
    assert (found[0]["subject"], found[0]["issuer"], found[0]["days_left"]) == (
        "CN=bob",
        "CN=leafcuttr-ca",
        2,
    )
    port = free_port()
    settings = {
        "listeners": f"SSL://127.0.0.1:{port}",
        "ssl.keystore.location": str(folder / "broker.pem"),
        "ssl.truststore.location": str(folder / "ca.pem"),
        "ssl.client.auth": "required",
    }
    overrides = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
    assert run("certs", "check", *overrides).out == "SSL: its certificate is right, and for 127.0.0.1\n"
    with running_broker(tmp_path / "broker", settings):
        context = ssl.create_default_context(cafile=str(folder / "ca.pem"))
        assert isinstance(shake_hands(port, context), str)
        context.load_cert_chain(folder / "bob.pem")
        assert isinstance(shake_hands(port, context), Seen)


def test_new_ones_replace_nothing(run: Run, tmp_path: Path) -> None:
    assert run("certs", "new", tmp_path).status == 0
    before = {path: path.read_bytes() for path in tmp_path.glob("*.*")}
    again = run("certs", "new", tmp_path, "--host", "localhost")
    assert again.status == 1 and "broker.pem is there already" in again.err
    assert {path: path.read_bytes() for path in before} == before
    (tmp_path / "ca.key").write_bytes(trustme.CA().private_key_pem.bytes())
    assert "ca.key is not the key of " in run("certs", "new", tmp_path, "--client", "c").err
    for name in ("", "a/b", "ca", "broker", ".."):
        assert run("certs", "new", tmp_path, "--client", name).status == 2
    assert run("certs", "new", tmp_path / "x", "--host", "ä").status == 1


def test_new_ones_need_the_extra(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "cryptography":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    done = run("certs", "new", tmp_path / "x")
    assert (done.status, done.err) == (
        1,
        "leafcuttr: certificates are made by a package: pip install 'leafcuttr[security]'\n",
    )
    assert not (tmp_path / "x").exists()


def test_json_is_a_list(run: Run) -> None:
    assert json.loads(run("certs", "check", "--json").out) == []
