"""No secret shows: some are planted wherever a broker takes or makes one, and whatever it says, to people, clients and
files other than its data, is searched for all of them."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from leafcuttr.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from leafcuttr.wire.messages.create_delegation_token import CreateDelegationTokenRequest
from leafcuttr.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from leafcuttr.wire.messages.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from leafcuttr.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from leafcuttr.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from leafcuttr.wire.messages.sasl_handshake import SaslHandshakeRequest
from support.broker_process import BrokerProcess, clean_environ, running_broker
from support.forked_start import run_leafcuttr
from support.tls_peer import Certificates
from support.wire_client import WireClient

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
JAAS = "listener.name.sasl_ssl.plain.sasl.jaas.config"
FILES = "org.apache.kafka.common.config.provider.FileConfigProvider"
BROKER, SET = 4, 0
MARK = "Planted"
"""In every secret, and nowhere else: neither in names nor in paths."""


def secret(name: str) -> str:
    return f"{MARK}{name}"


class Said(NamedTuple):
    """What was said, by where."""

    texts: dict[str, str]
    made: list[bytes]
    """Secrets that the broker has made."""

    def add(self, where: str, text: object) -> None:
        self.texts[f"{where}, {len(self.texts)}"] = str(text)

    def found(self) -> list[str]:
        """Where a secret shows, as it is, in base64 or as octets."""
        marks = [MARK.encode(), MARK.encode().hex().encode(), *self.made]
        marks += [base64.b64encode(one).rstrip(b"=") for one in self.made]
        # In base64 a text has one of three forms, by where it begins.
        marks += [base64.b64encode(bytes(at) + MARK.encode())[4 if at else 0 : -4] for at in range(3)]
        texts = {where: text.lower().encode() for where, text in self.texts.items()}
        return sorted({where for where, text in texts.items() if any(mark.lower() in text for mark in marks)})


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hidden")
    own = Certificates(folder).issue("127.0.0.1")
    key = load_pem_private_key(own.key.encode(), None)
    chain = x509.load_pem_x509_certificates(own.chain.encode())
    pem = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(secret("Key").encode())
    )
    (folder / "own.pem").write_bytes(pem + own.chain.encode())
    store = pkcs12.serialize_key_and_certificates(
        b"own",
        key,  # type: ignore[arg-type]
        chain[0],
        chain[1:],
        BestAvailableEncryption(secret("Store").encode()),
    )
    (folder / "own.p12").write_bytes(store)
    (folder / "values").write_text(f"token={secret('Token')}\n")
    lines = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
        "log.dirs": folder / "data",
        "ssl.keystore.location": folder / "own.p12",
        "ssl.keystore.password": secret("Store"),
        "ssl.keystore.pasword": secret("Typo"),
        "listener.name.ssl.ssl.keystore.location": folder / "own.pem",
        "listener.name.ssl.ssl.key.password": secret("Key"),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        JAAS: f'{PLAIN} user_alice="{secret("Plain")}";',
        "connection.failed.authentication.delay.ms": "0",
        "config.providers": "file",
        "config.providers.file.class": FILES,
        "delegation.token.secret.key": f"${{file:{folder}/values:token}}",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice;User:ANONYMOUS",
        "lc.audit.log": "all",
        "lc.metrics.port": "0",
        "lc.mqtt.broker.enable": "true",
        "mqtt.host": "127.0.0.1",
        "mqtt.port": "0",
        "mqtt.ws.port": "-1",
        "mqtt.auth.username": "device",
        "mqtt.auth.password": secret("Mqtt"),
        "lc.http.proxy.enable": "true",
        "lc.http.proxy.port": "0",
        "lc.http.proxy.auth": "basic",
    }
    found = folder / "server.properties"
    found.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    return found


@contextlib.contextmanager
def log_in(broker: BrokerProcess, trusted: str, password: str) -> Iterator[tuple[WireClient, Any]]:
    """One who does by PLAIN, and the answer."""
    address = broker.listeners["SASL_SSL"]
    host, _, port = address.rpartition(":")
    context = ssl.create_default_context(cafile=trusted)
    plain = socket.create_connection((host, int(port)), 60)
    with WireClient(address, context.wrap_socket(plain, server_hostname=host)) as client:
        client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        given = SaslAuthenticateRequest(auth_bytes=f"\0alice\0{password}".encode())
        yield client, client.ask(given, 2)


def altered(**settings: str) -> IncrementalAlterConfigsRequest:
    configs = [
        AlterableConfig(name=name, value=value, config_operation=SET) for name, value in settings.items()
    ]
    return IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=configs)]
    )


def every_setting() -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(resource_type=BROKER, resource_name="1", configuration_keys=None)
    return DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)


def fetched(url: str, **headers: str) -> str:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
            return f"{answer.headers}{answer.read().decode()}"
    except urllib.error.HTTPError as refusal:
        return f"{refusal.headers}{refusal.read().decode()}"


def connected(address: str, password: str) -> str:
    """What MQTT 3.1.1 answers to a wrong password."""
    host, _, port = address.rpartition(":")
    fields = b"".join(len(one).to_bytes(2, "big") + one for one in (b"c", b"device", password.encode()))
    packet = b"\0\4MQTT\4\xc2\0\x3c" + fields
    with socket.create_connection((host, int(port)), 60) as sock:
        sock.sendall(bytes([0x10, len(packet)]) + packet)
        answer = sock.recv(100)
    assert answer[:1] == b"\x20" and answer[3] == 4
    return repr(answer)


def test_no_secret_shows(file: Path, tmp_path: Path) -> None:
    said = Said({}, [])
    options = ("--log-level", "debug")
    with running_broker(tmp_path / "broker", config=file, options=options) as broker:
        use(broker, file, said)
        said.add("the ready file", json.dumps(dict(broker.about)))
        for page in ("metrics", "health", "nothing"):
            said.add(page, fetched(f"http://{broker.about['metrics']}/{page}"))
        plugged = broker.about["plugin_listeners"]
        wrong = base64.b64encode(f"alice:{secret('Web')}".encode()).decode()
        said.add("HTTP", fetched(f"http://{plugged['lc.http.proxy']}/topics", Authorization=f"Basic {wrong}"))
        said.add("MQTT", connected(plugged["mqtt"], secret("Topic")))
        at = ("-b", broker.listeners["PLAINTEXT"])
        for words in (
            ("config", "diff", *at),
            ("users", "list", *at, "--json"),
            ("acls", "list", *at),
            ("doctor", broker.listeners["PLAINTEXT"]),
            ("doctor", "--config", str(file)),
            ("config", "check", str(file)),
            ("config", "check", str(file), "--json"),
            ("config", "describe", "--config", str(file)),
            ("config", "describe", "--config", str(file), "--json"),
            (
                "config",
                "describe",
                "--config",
                str(file),
                JAAS,
                "ssl.keystore.password",
                "delegation.token.secret.key",
            ),
            ("certs", "check", "--config", str(file)),
            ("certs", "show", str(file.parent / "own.pem")),
        ):
            done = run_leafcuttr(words, environ=clean_environ())
            said.add(" ".join(words[:2]), done.stdout + done.stderr)
    said.add("the log", broker.log)
    assert '"request": "IncrementalAlterConfigs"' in broker.log, "it says what is done"
    assert said.found() == []


def use(broker: BrokerProcess, file: Path, said: Said) -> None:
    """Bring and make secrets, right ones and wrong ones; what is answered is said."""
    trusted = str(file.parent / "ca.pem")
    with log_in(broker, trusted, secret("Wrong")) as (_, answer):
        assert answer.error_code
        said.add("a wrong password", answer)
    with log_in(broker, trusted, secret("Plain")) as (client, answer):
        assert not answer.error_code
        made = client.ask(
            CreateDelegationTokenRequest(
                owner_principal_type=None, owner_principal_name=None, renewers=[], max_lifetime_ms=-1
            ),
            3,
        )
        assert not made.error_code
        said.made.append(bytes(made.hmac))
    with WireClient(broker.listeners["PLAINTEXT"]) as client:
        salted = secret("Salted").encode()
        upsertion = ScramCredentialUpsertion(
            name="bob", mechanism=1, iterations=4096, salt=b"salt", salted_password=salted
        )
        stored = client.ask(AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion]), 0)
        assert not stored.results[0].error_code
        said.add("users", client.ask(DescribeUserScramCredentialsRequest(users=None), 0))
        for name, value, is_taken in (
            ("listener.name.sasl_ssl.ssl.keystore.password", secret("Other"), False),
            ("ssl.keystore.passwort", secret("Unknown"), True),
            (JAAS, f'{PLAIN} user_alice="{secret("Garbled")}', False),
            (JAAS, f'{PLAIN} user_alice="{secret("New")}";', True),
        ):
            answer = client.ask(altered(**{name: value}), 1)
            said.add(f"a change of {name}", answer)
            assert (answer.responses[0].error_code == 0) is is_taken, (name, answer)
        told = client.ask(every_setting(), 4)
        assert {each.name for each in told.results[0].configs} >= {"ssl.keystore.password", JAAS}
        said.add("the settings", told)


@pytest.mark.parametrize(
    "text",
    [
        MARK,
        f"x{MARK}",
        *(base64.b64encode(f"{'x' * at}{MARK}y".encode()).decode() for at in range(3)),
        MARK.encode().hex(),
    ],
)
def test_the_search_finds(text: str) -> None:
    said = Said({}, [b"made"])
    said.add("here", f"a line with {text} in it")
    said.add("there", "a line with none")
    assert said.found() == ["here, 0"]
