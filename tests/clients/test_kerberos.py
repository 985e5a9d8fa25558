"""Clients that others wrote log in with tickets of a real KDC, and so does a client of the tests, to look closer."""

from __future__ import annotations

import importlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.metadata import MetadataRequest
from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeRequest
from support import jars, secured_clients
from support.broker_process import BrokerProcess, running_broker, start_broker
from support.kdc import MISSING, REALM, SKEW_S, Realm, running_kdc
from support.secured_clients import Fresh
from support.tls_peer import Certificates
from support.waiting import free_port
from support.wire_client import WireClient

pytestmark = [pytest.mark.long, pytest.mark.skipif(bool(MISSING), reason=MISSING)]
SERVICE = "kafka/localhost"
MODULE = "com.sun.security.auth.module.Krb5LoginModule"
RULES = r"RULE:[2:$1-$2](operator-.*)s/-.*//,DEFAULT"
ACLS = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class Secured(NamedTuple):
    realm: Realm
    broker: BrokerProcess
    certificates: Certificates
    keytabs: dict[str, Path]

    @property
    def address(self) -> str:
        return self.broker.listeners["SASL_SSL"]


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    pytest.importorskip("gssapi")
    with running_kdc(tmp_path_factory.mktemp("kdc")) as realm:
        yield realm


@pytest.fixture(scope="module")
def secured(realm: Realm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """The key is named by the file that KAFKA_OPTS names; operator/… and everybody else have rights, mallory none."""
    folder = tmp_path_factory.mktemp("gssapi")
    ours, port = Certificates(folder), free_port()
    jaas = folder / "jaas.conf"
    jaas.write_text(
        f'KafkaServer {{ {MODULE} required useKeyTab=true storeKey=true keyTab="{realm.add(SERVICE)}" '
        f'principal="{SERVICE}@{REALM}"; }};'
    )
    settings = {
        "listeners": f"SASL_SSL://localhost:{port},SASL_PLAINTEXT://localhost:0",
        "ssl.keystore.location": ours.issue("localhost").file,
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal.to.local.rules": RULES,
        "offsets.topic.num.partitions": "1",
        "authorizer.class.name": ACLS,
        "super.users": "User:alice;User:operator",
        "listener.name.sasl_plaintext.gssapi.connections.max.reauth.ms": "3000",
    }
    options = f"-Djava.security.auth.login.config={jaas} -Djava.security.krb5.conf={realm.config}"
    environ = {"KRB5RCACHENAME": realm.environ()["KRB5RCACHENAME"], "KAFKA_OPTS": options}
    keytabs = {name: realm.add(name) for name in ("alice", "mallory", "operator/site-7")}
    with running_broker(folder / "broker", settings, environ=environ) as broker:
        yield Secured(realm, broker, ours, keytabs)


def librdkafka_settings(secured: Secured) -> dict[str, Any]:
    return {
        "bootstrap.servers": secured.address,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": secured.certificates.trusted,
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.kerberos.principal": f"alice@{REALM}",
        "sasl.kerberos.keytab": secured.keytabs["alice"],
    }


@pytest.mark.client("kcat")
@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed (apt-get install kcat)")
def test_kcat(secured: Secured, fresh: Fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in secured.realm.environ().items():
        monkeypatch.setenv(name, value)
    secured_clients.kcat(librdkafka_settings(secured), fresh)


def java_properties(secured: Secured, listener: str = "SASL_SSL", principal: str = "alice") -> str:
    return (
        f"security.protocol={listener}\n"
        f"ssl.truststore.type=PEM\nssl.truststore.location={secured.certificates.trusted}\n"
        "sasl.mechanism=GSSAPI\nsasl.kerberos.service.name=kafka\n"
        f"sasl.jaas.config={MODULE} required useKeyTab=true storeKey=true "
        f'keyTab="{secured.keytabs[principal]}" principal="{principal}@{REALM}";\n'
    )


@pytest.mark.client("Kafka's Java tools", version="4.3.1")
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
@pytest.mark.parametrize("principal", ["alice", "operator/site-7"])
def test_java(
    secured: Secured, fresh: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, principal: str
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={secured.realm.config}")
    config = tmp_path / "client.properties"
    config.write_text(java_properties(secured, principal=principal))
    secured_clients.java_console("4.3.1", secured.address, config, fresh)


@pytest.mark.client("Kafka's Java tools", version="4.3.1")
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
def test_java_without_rights(
    secured: Secured, fresh: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is in by a ticket has the rights of its short name."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={secured.realm.config}")
    config = tmp_path / "client.properties"
    config.write_text(java_properties(secured, principal="mallory"))
    words = ("--bootstrap-server", secured.address, "--command-config", str(config))
    create = ("--create", "--topic", fresh("topic"))
    command = jars.java("4.3.1", "org.apache.kafka.tools.TopicCommand", *words, *create)
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode != 0
    assert "TopicAuthorizationException" in done.stdout + done.stderr


@pytest.mark.client("Kafka's Java tools", version="4.3.1")
@pytest.mark.skipif(jars.missing() is not None, reason=str(jars.missing()))
def test_java_logs_in_again(
    secured: Secured, fresh: Fresh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sessions of three seconds; the producer is paced so that it lives for several of them."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={secured.realm.config}")
    config = tmp_path / "client.properties"
    config.write_text(java_properties(secured, "SASL_PLAINTEXT"))
    words = ("--topic", fresh("topic"), "--num-records", "100", "--record-size", "10", "--throughput", "10")
    address = secured.broker.listeners["SASL_PLAINTEXT"]
    tool = ("org.apache.kafka.tools.ProducerPerformance", *words, "--command-config", str(config))
    said = secured_clients.java_tool("4.3.1", address, *tool)
    assert "100 records sent" in said
    assert "has not logged in again" not in secured.broker.log


# By a client of our own: what no client of others shows.


def gss() -> Any:
    return importlib.import_module("gssapi.raw")


class Tickets:
    """The client's side of GSSAPI, for what is in a cache of tickets."""

    def __init__(self, cache: str, service: str = "kafka@localhost", *, mutual: bool = True) -> None:
        raw = gss()
        self._raw = raw
        self._credentials = raw.acquire_cred_from({b"ccache": cache.encode()}, usage="initiate").creds
        self._target = raw.import_name(service.encode(), raw.NameType.hostbased_service)
        self._flags = [raw.RequirementFlag.integrity]  # none at all would be taken as some by default
        if mutual:
            self._flags.append(raw.RequirementFlag.mutual_authentication)
        self._context: Any = None

    def token(self, answer: bytes | None = None) -> bytes:
        found = self._raw.init_sec_context(
            self._target,
            self._credentials,
            self._context,
            mech=self._raw.MechType.kerberos,
            flags=self._flags,
            input_token=answer,
        )
        self._context = found.context
        return found.token or b""

    def choice(self, offered: bytes, layer: int = 1, authorization: str = "") -> bytes:
        assert self._raw.unwrap(self._context, offered).message == b"\x01\0\0\0"
        chosen = bytes([layer, 0, 0, 0]) + authorization.encode()
        return bytes(self._raw.wrap(self._context, chosen, False).message)


def send(client: WireClient, data: bytes) -> Any:
    return client.ask(SaslAuthenticateRequest(auth_bytes=data), 2)


def log_in(client: WireClient, tickets: Tickets, *, mutual: bool = True, **choice: Any) -> Any:
    client.socket.settimeout(60)
    answer = client.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
    assert (answer.error_code, list(answer.mechanisms)) == (0, ["GSSAPI"])
    answer = send(client, tickets.token())
    if answer.error_code:
        return answer
    if mutual:
        assert tickets.token(answer.auth_bytes) == b""
        answer = send(client, b"")
    return send(client, tickets.choice(answer.auth_bytes, **choice))


def plain(secured: Secured) -> WireClient:
    return WireClient(secured.broker.listeners["SASL_PLAINTEXT"])


def cache(secured: Secured, principal: str, life: str = "1h") -> str:
    return secured.realm.tickets(principal, secured.keytabs[principal], life=life)["KRB5CCNAME"]


@pytest.fixture(autouse=True)
def own_realm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "secured" in request.fixturenames:
        secured = request.getfixturevalue("secured")
        monkeypatch.setenv("KRB5_CONFIG", str(secured.realm.config))


@pytest.mark.parametrize("mutual", [True, False])
@pytest.mark.parametrize("authorization", ["", "alice", f"alice@{REALM}"])
def test_a_ticket(secured: Secured, mutual: bool, authorization: str) -> None:
    tickets = Tickets(cache(secured, "alice"), mutual=mutual)
    with plain(secured) as client:
        answer = log_in(client, tickets, mutual=mutual, authorization=authorization)
        assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 3000)
        assert client.ask(MetadataRequest(topics=[]), 12).brokers


def test_a_session_ends_with_the_ticket(secured: Secured) -> None:
    """On the listener without `connections.max.reauth.ms`; later by what krb5.conf has as clockskew."""
    tickets = Tickets(cache(secured, "alice", "20s"))
    host, _, port = secured.address.rpartition(":")
    sock = socket.create_connection((host, int(port)), 60)
    encrypted = secured.certificates.client().wrap_socket(sock, server_hostname="localhost")
    with WireClient(secured.address, encrypted) as client:
        answer = log_in(client, tickets)
        assert answer.error_code == 0
        assert 1000 < answer.session_lifetime_ms <= (20 + SKEW_S) * 1000


def test_never_another_principal(secured: Secured) -> None:
    alice, other = cache(secured, "alice"), cache(secured, "operator/site-7")
    with plain(secured) as client:
        assert log_in(client, Tickets(alice)).error_code == 0
        assert log_in(client, Tickets(alice)).error_code == 0
        answer = log_in(client, Tickets(other))
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert answer.error_message == "Authentication failed: the principal changed with a later log-in"


@pytest.mark.parametrize(
    ("choice", "why"),
    [
        (
            {"authorization": "bob"},
            "Client requested an authorization id that is different from its principal",
        ),
        ({"layer": 2}, "invalid credentials with SASL mechanism GSSAPI"),
    ],
)
def test_refusals(secured: Secured, choice: dict[str, Any], why: str) -> None:
    tickets = Tickets(cache(secured, "alice"))
    with plain(secured) as client:
        answer = log_in(client, tickets, **choice)
        assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert why in answer.error_message


def test_a_ticket_that_comes_again(secured: Secured) -> None:
    """Each token counts once; the same ticket makes as many as it is asked for."""
    token = Tickets(cache(secured, "alice")).token()
    codes = []
    for _ in range(2):
        with plain(secured) as client:
            client.socket.settimeout(60)
            client.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
            codes.append(send(client, token).error_code)
    assert codes == [0, ErrorCode.SASL_AUTHENTICATION_FAILED]
    assert "GSSAPI: Request is a replay" in secured.broker.log


@pytest.mark.parametrize("token", [b"", b"\x60\x03abc", os.urandom(1000), b"\x60" * 100_000])
def test_what_is_no_ticket(secured: Secured, token: bytes) -> None:
    with plain(secured) as client:
        client.socket.settimeout(60)
        client.ask(SaslHandshakeRequest(mechanism="GSSAPI"), 1)
        assert send(client, token).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    with plain(secured) as client:
        assert log_in(client, Tickets(cache(secured, "alice"))).error_code == 0


def test_a_ticket_for_another_service(secured: Secured) -> None:
    secured.realm.add("http/localhost")
    tickets = Tickets(cache(secured, "alice"), "http@localhost")
    with plain(secured) as client:
        assert log_in(client, tickets).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_keytab_with_a_new_key(secured: Secured) -> None:
    """Keys of services change every few months: the file is written anew, the broker goes on."""
    with plain(secured) as client:
        assert log_in(client, Tickets(cache(secured, "alice"))).error_code == 0
    secured.realm.run(
        "kadmin.local", "-q", f"ktadd -k {secured.realm.folder}/kafka_localhost.keytab {SERVICE}"
    )
    with plain(secured) as client:
        assert log_in(client, Tickets(cache(secured, "alice"))).error_code == 0


def test_keytabs_that_do_not_fit_stop_the_start(realm: Realm, tmp_path: Path) -> None:
    other = realm.add("other/localhost")
    for keytab in (other, tmp_path / "none"):
        settings = {
            "listeners": "SASL_PLAINTEXT://localhost:0",
            "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": (
                f'{MODULE} required useKeyTab=true keyTab="{keytab}" principal="{SERVICE}@{REALM}";'
            ),
        }
        with pytest.raises(RuntimeError, match=f"no key of {SERVICE}@{REALM} in the keytab {keytab}: "):
            start_broker(tmp_path / "broker", settings, environ=realm.environ())
