"""A real Apache Kafka with a listener for each security protocol, users for each mechanism, certificates of its own.

    with secure_kafka(folder) as kafka:
        properties = kafka.client("SASL_SSL", "SCRAM-SHA-512")

Users are `USER` with `PASSWORD` for each mechanism. The listener SHORT is SASL_PLAINTEXT with sessions of `SESSION_S`;
MTLS is SSL, and takes no client without a certificate.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trustme
from cryptography.hazmat.primitives import serialization

from support.real_kafka import VERSION, real_kafka
from support.waiting import free_port

USER: Final = "alice = first"
"""With a character that SCRAM escapes; Kafka's command for users takes no comma."""
PASSWORD: Final = "open = sesame"
PLAIN_PASSWORD: Final = "open sesame"
SESSION_S: Final = 2.0
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SECURITY: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_PROTOCOLS: Final = {"SHORT": "SASL_PLAINTEXT", "MTLS": "SSL"}
"""Of listeners that are not named as theirs."""
_ITERATIONS: Final = {"SCRAM-SHA-256": 4096, "SCRAM-SHA-512": 8192}


@dataclass(frozen=True)
class SecureKafka:
    """`ports` by listener, which is named as its protocol; `ca` and `own` are PEM files."""

    ports: dict[str, int]
    ca: Path
    own: Path
    """A key and its certificate, for a client."""

    def address(self, listener: str) -> str:
        return f"localhost:{self.ports[listener]}"

    def client(self, listener: str, mechanism: str | None = None) -> dict[str, str]:
        """The properties of a client, by Java's names."""
        protocol = _PROTOCOLS.get(listener, listener)
        found = {"bootstrap.servers": self.address(listener), "security.protocol": protocol}
        if "SSL" in protocol:
            found |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.ca)}
        if listener == "MTLS":
            found |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self.own)}
        if mechanism is not None:
            found |= {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas(mechanism)}
        return found


def jaas(mechanism: str, username: str | None = None, password: str | None = None) -> str:
    """`sasl.jaas.config` for a user of this Kafka."""
    kind = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    own_name, own_password = credentials(mechanism)
    name = own_name if username is None else username
    secret = own_password if password is None else password
    return (
        f"org.apache.kafka.common.security.{kind} required "
        f"username={_quoted(name)} password={_quoted(secret)};"
    )


def credentials(mechanism: str) -> tuple[str, str]:
    """Name and password. Kafka has the users of PLAIN in a setting whose names cannot be any text."""
    return ("alice", PLAIN_PASSWORD) if mechanism == "PLAIN" else (USER, PASSWORD)


@contextmanager
def secure_kafka(folder: Path, version: str = VERSION) -> Iterator[SecureKafka]:
    """Killed at the end. `version` is 3.5 or later: before, users of SCRAM cannot be there at the first start."""
    folder.mkdir(parents=True, exist_ok=True)
    authority = trustme.CA()
    ca = folder / "ca.pem"
    authority.cert_pem.write_to_path(ca)
    server = _pem(authority, folder / "server.pem", "localhost", "127.0.0.1")
    own = _pem(authority, folder / "client.pem", "client.test")
    ports = {name: free_port() for name in (*SECURITY, *_PROTOCOLS) if name != "PLAINTEXT"}
    with real_kafka(folder, *_settings(ports, server, ca), formatted=_users(), version=version) as kafka:
        yield SecureKafka({"PLAINTEXT": kafka.port, **ports}, ca, own)


def _settings(ports: dict[str, int], server: Path, ca: Path) -> Iterator[str]:
    yield "listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}," + ",".join(
        f"{name}://127.0.0.1:{port}" for name, port in ports.items()
    )
    yield "advertised.listeners=PLAINTEXT://localhost:{port}," + ",".join(
        f"{name}://localhost:{port}" for name, port in ports.items()
    )
    yield (
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,"
        "SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,SHORT:SASL_PLAINTEXT,MTLS:SSL"
    )
    yield f"sasl.enabled.mechanisms={','.join(MECHANISMS)}"
    yield "ssl.keystore.type=PEM"
    yield f"ssl.keystore.location={server}"
    yield "ssl.truststore.type=PEM"
    yield f"ssl.truststore.location={ca}"
    yield "listener.name.mtls.ssl.client.auth=required"
    yield f"listener.name.short.connections.max.reauth.ms={round(SESSION_S * 1000)}"
    package = "org.apache.kafka.common.security"
    for listener in ("sasl_plaintext", "sasl_ssl", "short"):
        yield (
            f"listener.name.{listener}.plain.sasl.jaas.config={package}.plain.PlainLoginModule required "
            f'username="admin" password="x" user_alice="{PLAIN_PASSWORD}";'
        )
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            yield (
                f"listener.name.{listener}.{mechanism}.sasl.jaas.config={package}.scram.ScramLoginModule required;"
            )


def _users() -> Iterator[str]:
    for mechanism, iterations in _ITERATIONS.items():
        yield "--add-scram"
        yield f"{mechanism}=[name={USER},password={PASSWORD},iterations={iterations}]"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _pem(authority: trustme.CA, path: Path, *names: str) -> Path:
    """The key and its certificates in one file, as Kafka has it: Java reads keys in PKCS#8 only."""
    made = authority.issue_cert(*names)
    key = serialization.load_pem_private_key(made.private_key_pem.bytes(), None).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(key + b"".join(each.bytes() for each in made.cert_chain_pems))
    return path
