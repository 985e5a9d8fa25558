"""Peers that abuse TLS, over the network: what they do costs their own connection, and others are served meanwhile."""

from __future__ import annotations

import socket
import ssl
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from leafcuttr.errors import ErrorCode
from leafcuttr.wire.messages.api_versions import ApiVersionsRequest
from leafcuttr.wire.messages.describe_acls import DescribeAclsRequest
from leafcuttr.wire.messages.metadata import MetadataRequest
from support.live_broker import LiveBroker, live_broker
from support.tls_peer import Certificates, shake_hands
from support.tls_records import RecordClient
from support.wire_client import WireClient

PATIENCE_S = 60
CLIENT_HELLO = bytes.fromhex("16030100")  # the beginning of one
VERSIONS = b"\0\0\0\x0a" + b"\0\x12\0\0\0\0\0\1\xff\xff"  # ApiVersions v0


class Attacked(NamedTuple):
    broker: LiveBroker
    certificates: Certificates

    @property
    def port(self) -> int:
        return int(self.broker.address.rpartition(":")[2])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)

    def client(self) -> WireClient:
        tls = self.certificates.client().wrap_socket(self.connect(), server_hostname="127.0.0.1")
        return WireClient(self.broker.address, tls)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    folder = tmp_path_factory.mktemp("attacked")
    ours = Certificates(folder)
    settings = {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": ours.issue("127.0.0.1").file}
    with live_broker(folder / "data", settings) as broker:
        yield Attacked(broker, ours)


def is_served(attacked: Attacked) -> bool:
    with attacked.client() as client:
        return bool(client.ask(MetadataRequest(topics=[]), 12).brokers)


def ended(sock: socket.socket) -> bool:
    """Whether the broker ends the connection; what it says before does not count."""
    with suppress(ConnectionError):
        while sock.recv(65536):
            pass
    return True


def test_a_flood_of_half_handshakes(attacked: Attacked) -> None:
    """They hold neither a new client up nor one that is there, and end when their peers go."""
    with attacked.client() as established, ExitStack() as stack:
        socks = [stack.enter_context(attacked.connect()) for _ in range(150)]
        for number, sock in enumerate(socks):
            sock.sendall(CLIENT_HELLO[: number % 5])
        assert established.ask(ApiVersionsRequest(), 0).api_keys
        assert is_served(attacked)


def test_a_flood_of_whole_handshakes(attacked: Attacked) -> None:
    """A client that is there is answered meanwhile: their work is not the loop's."""
    failed: list[str] = []

    def shake() -> None:
        for _ in range(10):
            seen = shake_hands(attacked.port, attacked.certificates.client())
            if isinstance(seen, str):
                failed.append(seen)

    with attacked.client() as established:
        threads = [threading.Thread(target=shake) for _ in range(4)]
        for thread in threads:
            thread.start()
        answered = 0
        while any(thread.is_alive() for thread in threads):
            assert established.ask(ApiVersionsRequest(), 0).api_keys
            answered += 1
        for thread in threads:
            thread.join()
    assert answered and not failed


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_old_versions(attacked: Attacked, version: ssl.TLSVersion) -> None:
    client = attacked.certificates.client()
    client.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        client.minimum_version = client.maximum_version = version
    assert shake_hands(attacked.port, client) == "TLSV1_ALERT_PROTOCOL_VERSION"
    assert is_served(attacked)


def test_new_keys_without_end(attacked: Attacked) -> None:
    with attacked.client() as other, attacked.connect() as sock:
        client = RecordClient(sock, attacked.certificates.client())
        for _ in range(1000):
            try:
                sock.sendall(client.key_updates(30))
            except ConnectionError:
                break
            assert other.ask(ApiVersionsRequest(), 0).api_keys
        else:
            raise AssertionError("they are taken without end")


@pytest.mark.parametrize("kind", [0, 20, 21, 22, 24, 255])
def test_records_of_another_kind_behind_the_handshake(attacked: Attacked, kind: int) -> None:
    with attacked.connect() as sock:
        client = RecordClient(sock, attacked.certificates.client())
        sock.sendall(client.record(b"\1\0\0\0\0", kind) + client.record(VERSIONS))
        assert ended(sock)
    assert is_served(attacked)


ODD_NAMES = [
    "admin\0",
    "admin\0.example.org",
    "x,CN=admin",
    "x\\,CN=admin",
    "admin ",
    "User:CN=admin",
    "CN=admin",
    "*",
]


def test_odd_names_in_certificates(tmp_path: Path) -> None:
    """A name is itself, with what is special in it escaped (RFC 2253): it is never somebody else's."""
    ours = Certificates(tmp_path)
    settings = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.location": ours.issue("127.0.0.1").file,
        "ssl.truststore.location": ours.trusted,
        "ssl.client.auth": "required",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:CN=admin",
    }
    with live_broker(tmp_path / "data", settings) as broker:
        for name in ["admin", *ODD_NAMES]:
            attacked = Attacked(broker, ours)
            context = ours.client()
            context.load_cert_chain(signed(ours, tmp_path, name))
            sock = context.wrap_socket(attacked.connect(), server_hostname="127.0.0.1")
            with WireClient(broker.address, sock) as client:
                code = client.ask(
                    DescribeAclsRequest(
                        resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1
                    ),
                    3,
                ).error_code
            assert code == (0 if name == "admin" else ErrorCode.CLUSTER_AUTHORIZATION_FAILED), name


def signed(ours: Certificates, folder: Path, name: str) -> Path:
    """The file of a key with a certificate of this common name and nothing else."""
    key = ec.generate_private_key(ec.SECP256R1())
    authority = x509.load_pem_x509_certificate(ours.trusted_text.encode())
    signer = serialization.load_pem_private_key(ours.authority.private_key_pem.bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    own = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(authority.not_valid_before_utc)
        .not_valid_after(authority.not_valid_after_utc)
        .sign(signer, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    file = folder / "client.pem"
    file.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + own.public_bytes(pem)
    )
    return file
