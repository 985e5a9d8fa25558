"""TLS for listeners: real handshakes with what `server_context` makes, and a line for each thing that can be wrong."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from leafcuttr.net.tls import server_context
from leafcuttr.net.tls_files import TlsError, TlsFiles

PREFIX = "lc.acme"
SECRET = "open sesame"


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


def keystore(folder: Path, ca: trustme.CA, *, password: str | None = None, legacy: bool = False) -> str:
    """A PEM file with a key and its chain, the key encrypted if there is a password."""
    cert = ca.issue_cert("localhost")
    key = serialization.load_pem_private_key(cert.private_key_pem.bytes(), None)
    style = serialization.PrivateFormat.TraditionalOpenSSL if legacy else serialization.PrivateFormat.PKCS8
    how: serialization.KeySerializationEncryption = (
        serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    )
    pem = key.private_bytes(serialization.Encoding.PEM, style, how)
    file = folder / f"locked-{bool(password)}-{legacy}.pem"
    file.write_bytes(pem + b"".join(blob.bytes() for blob in cert.cert_chain_pems))
    return str(file)


def truststore(folder: Path, ca: trustme.CA) -> str:
    file = folder / "ca.pem"
    ca.cert_pem.write_to_path(file)
    return str(file)


def handshake(
    context: ssl.SSLContext, ca: trustme.CA, *, client: trustme.LeafCert | None = None
) -> str | None:
    """The version that both agreed on, or the reason of the failure that the server saw."""
    client_context = ssl.create_default_context()
    ca.configure_trust(client_context)
    if client is not None:
        client.configure_cert(client_context)
    seen: list[str | None] = []

    def serve(sock: socket.socket) -> None:
        sock.settimeout(60)
        try:
            with context.wrap_socket(sock, server_side=True) as tls:
                tls.sendall(b"x")
                seen.append(tls.version())
        except ssl.SSLError as error:
            seen.append(error.reason)
        finally:
            sock.close()

    ours, theirs = socket.socketpair()
    theirs.settimeout(60)
    thread = threading.Thread(target=serve, args=(ours,))
    thread.start()
    try:
        with client_context.wrap_socket(theirs, server_hostname="localhost") as tls:
            tls.recv(1)
    except OSError:
        pass
    thread.join(60)
    return seen[0]


@pytest.mark.parametrize("password", [None, SECRET])
@pytest.mark.parametrize("legacy", [False, True])
def test_clients_come_in_by_tls(tmp_path: Path, ca: trustme.CA, password: str | None, legacy: bool) -> None:
    file = keystore(tmp_path, ca, password=password, legacy=legacy)
    context = server_context(TlsFiles(PREFIX, file, password))
    assert context is not None
    assert handshake(context, ca) == "TLSv1.3"
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_without_a_keystore_it_is_plaintext() -> None:
    assert server_context(TlsFiles(PREFIX, None)) is None


@pytest.mark.parametrize(
    ("auth", "without"), [("required", "PEER_DID_NOT_RETURN_A_CERTIFICATE"), ("requested", "TLSv1.3")]
)
def test_certificates_of_clients(tmp_path: Path, ca: trustme.CA, auth: str, without: str) -> None:
    context = server_context(TlsFiles(PREFIX, keystore(tmp_path, ca), None, truststore(tmp_path, ca), auth))
    assert context is not None
    assert handshake(context, ca, client=ca.issue_cert("device@example.org")) == "TLSv1.3"
    assert handshake(context, ca) == without
    stranger = trustme.CA().issue_cert("device@example.org")
    assert handshake(context, ca, client=stranger) == "CERTIFICATE_VERIFY_FAILED"


def wrong(**given: str | None) -> str:
    with pytest.raises(TlsError) as refused:
        server_context(TlsFiles(**{"prefix": PREFIX, "keystore": None, **given}))  # type: ignore[arg-type]
    line = str(refused.value)
    assert "\n" not in line and SECRET not in line
    return line


def test_each_thing_that_can_be_wrong_is_a_line(tmp_path: Path, ca: trustme.CA) -> None:
    location = f"{PREFIX}.ssl.keystore.location"
    plain, locked = keystore(tmp_path, ca), keystore(tmp_path, ca, password=SECRET)
    legacy = keystore(tmp_path, ca, password=SECRET, legacy=True)
    missing = tmp_path / "none.pem"
    assert wrong(keystore=str(missing)) == f"{location}={missing}: No such file or directory"
    assert wrong(keystore=str(tmp_path)) == f"{location}={tmp_path}: Is a directory"
    for file in (locked, legacy):
        assert wrong(keystore=file).endswith(f"is encrypted, and {PREFIX}.ssl.key.password is not given")
        assert wrong(keystore=file, key_password="x" + SECRET).endswith(
            f"{PREFIX}.ssl.key.password does not open the private key"
        )
    assert "1024" in wrong(keystore=locked, key_password="x" * 2000)

    def made(name: str, *pieces: bytes) -> str:
        file = tmp_path / name
        file.write_bytes(b"".join(pieces))
        return str(file)

    cert, other = ca.issue_cert("a"), ca.issue_cert("b")
    key, chain = cert.private_key_pem.bytes(), cert.cert_chain_pems[0].bytes()
    assert "has certificates only, and the private key" in wrong(keystore=made("chain", chain))
    assert "has a private key, and the certificate" in wrong(keystore=made("key", key))
    assert "does not belong to the first certificate" in wrong(
        keystore=made("mixed", key, other.cert_chain_pems[0].bytes())
    )
    assert "cannot be read" in wrong(keystore=made("cut", key, chain[:200], b"\n-----END CERTIFICATE-----\n"))
    assert "it has no PEM; the private key" in wrong(keystore=made("empty"))
    assert "a PKCS#12 keystore; lc.acme.ssl.key.password does not open it, or it cannot" in wrong(
        keystore=made("p12", b"\x30\x82\x01\x02" + bytes(300)), keystore_password="x"
    )
    assert "it has 2 private keys; allowed is one" in wrong(keystore=made("both", key, key, chain))
    assert "it has PEM of another kind; the private key" in wrong(
        keystore=made("dh", b"-----BEGIN DH PARAMETERS-----\nAAAA\n-----END DH PARAMETERS-----\n")
    )

    trust = f"{PREFIX}.ssl.truststore.location"
    assert wrong(keystore=plain, truststore=str(missing)).startswith(f"{trust}={missing}: No such file")
    assert wrong(keystore=plain, truststore=made("empty")).endswith("it has no certificate in PEM")
    assert "cannot be read" in wrong(
        keystore=plain,
        truststore=made("bad", b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"),
    )
    assert wrong(keystore=plain, client_auth="required").startswith(
        f"{PREFIX}.ssl.client.auth=required needs {trust}"
    )


def test_tls_that_somebody_believes_to_have_is_no_plaintext(tmp_path: Path, ca: trustme.CA) -> None:
    for given in (
        {"key_password": SECRET},
        {"truststore": truststore(tmp_path, ca)},
        {"client_auth": "required"},
    ):
        assert wrong(**given).endswith("the listener would be plaintext")


def test_an_issuer_that_is_trusted_need_not_have_a_trusted_one_itself(tmp_path: Path, ca: trustme.CA) -> None:
    """As in Java: of client, intermediate authority, root, the truststore may have the second alone."""
    middle = ca.create_child_ca()
    trusted = tmp_path / "middle.pem"
    middle.cert_pem.write_to_path(trusted)
    context = server_context(TlsFiles(PREFIX, keystore(tmp_path, ca), None, str(trusted), "required"))
    assert context is not None
    assert handshake(context, ca, client=middle.issue_cert("device@example.org")) == "TLSv1.3"
    assert handshake(context, ca, client=ca.issue_cert("device@example.org")) == "CERTIFICATE_VERIFY_FAILED"
