"""TLS of a client: real handshakes with what the settings make, and a line for each thing that can be wrong."""

from __future__ import annotations

import datetime
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from leafcuttr.client.errors import ClientSettingError, ConnectionLost, NotKafka, TlsRefused
from leafcuttr.client.settings import ClientTls, Pem
from leafcuttr.client.tls import TlsContexts, make_context, words
from leafcuttr.net.tls import server_context
from leafcuttr.net.tls_files import TlsFiles

SECRET = "open sesame"


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def server(ca: trustme.CA) -> ssl.SSLContext:
    """Of `localhost`; takes clients with and without a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("localhost").configure_cert(context)
    ca.configure_trust(context)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


@pytest.fixture
def trusted(ca: trustme.CA, tmp_path: Path) -> Pem:
    return Pem("ssl.ca.location", str(written(tmp_path / "ca.pem", ca.cert_pem.bytes())), True)


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def file(setting: str, path: Path, data: bytes) -> Pem:
    return Pem(setting, str(written(path, data)), True)


def key_in(cert: trustme.LeafCert, *, password: str | None = None, legacy: bool = False) -> bytes:
    key = serialization.load_pem_private_key(cert.private_key_pem.bytes(), None)
    style = serialization.PrivateFormat.TraditionalOpenSSL if legacy else serialization.PrivateFormat.PKCS8
    how: serialization.KeySerializationEncryption = (
        serialization.BestAvailableEncryption(password.encode()) if password else serialization.NoEncryption()
    )
    return key.private_bytes(serialization.Encoding.PEM, style, how)


def chain_of(cert: trustme.LeafCert) -> bytes:
    return b"".join(each.bytes() for each in cert.cert_chain_pems)


def handshake(tls: ClientTls, server: ssl.SSLContext, host: str = "localhost") -> tuple[str | None, bool]:
    """(version, whether the client showed a certificate). Raises what the client's handshake raises."""
    context = make_context(tls)
    seen = list[bool]()

    def serve(sock: socket.socket) -> None:
        sock.settimeout(60)
        try:
            with server.wrap_socket(sock, server_side=True) as stream:
                seen.append(stream.getpeercert(binary_form=True) is not None)
                stream.sendall(b"x")
        except OSError:
            sock.close()

    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=serve, args=(ours,))
    thread.start()
    try:
        with theirs, context.wrap_socket(theirs, server_hostname=host) as stream:
            assert stream.recv(1) == b"x"
            version = stream.version()
    finally:
        thread.join(60)
    return version, seen[0]


def why(tls: ClientTls) -> str:
    with pytest.raises(ClientSettingError) as caught:
        make_context(tls)
    assert SECRET not in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def one_line(data: bytes) -> str:
    """As a property has it: no line ends, which OpenSSL does not read."""
    return data.decode().replace("\n", " ")


def test_an_authority_from_a_file_or_a_text(ca: trustme.CA, trusted: Pem, server: ssl.SSLContext) -> None:
    assert handshake(ClientTls(trusted=trusted), server) == ("TLSv1.3", False)
    for text in (ca.cert_pem.bytes().decode(), one_line(ca.cert_pem.bytes())):
        found = handshake(ClientTls(trusted=Pem("ssl.ca.pem", text, False)), server)
        assert found == ("TLSv1.3", False)


def test_a_certificate_of_another_authority_or_of_another_host(trusted: Pem, server: ssl.SSLContext) -> None:
    for tls, host, line in (
        (
            ClientTls(),
            "localhost",
            "hub: its certificate is refused: self-signed certificate in certificate chain "
            "(ssl.truststore.location or ssl.ca.location names its authority)",
        ),
        (
            ClientTls(trusted=trusted),
            "other.test",
            "hub: its certificate is refused: Hostname mismatch, certificate is not valid for 'other.test' "
            "(ssl.endpoint.identification.algorithm=none takes any name)",
        ),
        (
            ClientTls(trusted=trusted),
            "192.0.2.1",
            "hub: its certificate is refused: IP address mismatch, certificate is not valid for '192.0.2.1' "
            "(ssl.endpoint.identification.algorithm=none takes any name)",
        ),
    ):
        with pytest.raises(ssl.SSLCertVerificationError) as caught:
            handshake(tls, server, host)
        error = words("hub", caught.value)
        assert type(error) is TlsRefused
        assert str(error) == line
    assert handshake(ClientTls(trusted=trusted, checks_host=False), server, "other.test")[0] == "TLSv1.3"
    assert handshake(ClientTls(verifies=False), server, "other.test")[0] == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(ClientTls(checks_host=False), server)


@pytest.mark.parametrize("password", [None, SECRET])
@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("form", ["one file", "two files", "texts"])
def test_our_own_certificate(
    ca: trustme.CA,
    trusted: Pem,
    server: ssl.SSLContext,
    tmp_path: Path,
    password: str | None,
    legacy: bool,
    form: str,
) -> None:
    own = ca.issue_cert("client.test")
    key, chain = key_in(own, password=password, legacy=legacy), chain_of(own)
    tls = ClientTls(trusted=trusted, key_password=password)
    if form == "one file":
        tls = replace(tls, certificate=file("ssl.keystore.location", tmp_path / "own.pem", chain + key))
    elif form == "two files":
        tls = replace(
            tls,
            certificate=file("ssl.certificate.location", tmp_path / "cert.pem", chain),
            key=file("ssl.key.location", tmp_path / "key.pem", key),
        )
    else:
        tls = replace(
            tls,
            certificate=Pem("ssl.keystore.certificate.chain", one_line(chain), False),
            key=Pem("ssl.keystore.key", key.decode() if password and legacy else one_line(key), False),
        )
    assert handshake(tls, server) == ("TLSv1.3", True)


def test_keys_that_do_not_fit(ca: trustme.CA, trusted: Pem, tmp_path: Path) -> None:
    own, other = ca.issue_cert("a.test"), ca.issue_cert("b.test")
    cert = file("ssl.certificate.location", tmp_path / "cert.pem", chain_of(own))
    locked = file("ssl.key.location", tmp_path / "locked.pem", key_in(own, password=SECRET))
    foreign = file("ssl.key.location", tmp_path / "foreign.pem", key_in(other))
    assert why(ClientTls(trusted=trusted, certificate=cert)) == (
        f"{cert}: there is no private key in PEM (ssl.key.location or ssl.keystore.key names it)"
    )
    assert why(ClientTls(trusted=trusted, key=foreign)) == f"{foreign}: a key without a certificate"
    assert why(ClientTls(trusted=trusted, certificate=cert, key=locked)) == (
        f"{locked}: the private key is encrypted, and ssl.key.password is not given"
    )
    assert why(ClientTls(trusted=trusted, certificate=cert, key=locked, key_password="x")) == (
        f"{locked}: ssl.key.password does not open the private key"
    )
    assert why(ClientTls(trusted=trusted, certificate=cert, key=foreign)) == (
        f"{cert}: the private key does not belong to the first certificate"
    )
    assert "ssl.key.password: " in why(
        ClientTls(trusted=trusted, certificate=cert, key=locked, key_password="x" * 2000)
    )


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"\xfe\xed\xfe\xed\0\0\0\2", "it is a JKS keystore that cannot be read"),
        (b"\xce\xce\xce\xce\0\0\0\2", "it is a JCEKS keystore; keytool -importkeystore"),
        (b"\x30\x82\0\0", "it is a PKCS#12 keystore; ssl.truststore.password is not given, or it cannot"),
        (b"words", "there is no PEM in it"),
        (b"", "there is no PEM in it"),
        (
            b"-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n",
            "has no certificate that can be read",
        ),
        (
            b"-----BEGIN PUBLIC KEY-----\nabc=\n-----END PUBLIC KEY-----\n",
            "has no certificate that can be read",
        ),
    ],
)
def test_authorities_that_cannot_be_read(tmp_path: Path, data: bytes, line: str) -> None:
    pem = file("ssl.truststore.location", tmp_path / "store", data)
    assert why(ClientTls(trusted=pem)).startswith(f"ssl.truststore.location={tmp_path / 'store'}")
    assert line in why(ClientTls(trusted=pem))


def test_files_that_are_not_there_or_are_of_another_kind(ca: trustme.CA, tmp_path: Path) -> None:
    missing = Pem("ssl.ca.location", str(tmp_path / "none"), True)
    assert (
        why(ClientTls(trusted=missing)) == f"ssl.ca.location={tmp_path / 'none'}: No such file or directory"
    )
    own = ca.issue_cert("a.test")
    store = pkcs12.serialize_key_and_certificates(
        b"a",
        serialization.load_pem_private_key(own.private_key_pem.bytes(), None),  # type: ignore[arg-type]
        x509.load_pem_x509_certificate(own.cert_chain_pems[0].bytes()),
        None,
        serialization.NoEncryption(),
    )
    pem = file("ssl.keystore.location", tmp_path / "own.p12", store)
    assert why(ClientTls(verifies=False, certificate=pem)) == (
        f"{pem}: it is a PKCS#12 keystore, and ssl.keystore.password is not given"
    )
    # Of these settings librdkafka takes PEM only.
    for setting in ("ssl.certificate.location", "ssl.ca.location"):
        other = Pem(setting, pem.text, True)
        tls = ClientTls(trusted=other) if "ca" in setting else ClientTls(verifies=False, certificate=other)
        assert why(tls) == f"{other}: there is no PEM in it"
    text = Pem("ssl.ca.pem", "nothing", False)
    assert why(ClientTls(trusted=text)) == "ssl.ca.pem: there is no PEM in it"


def test_versions_and_ciphers(trusted: Pem, server: ssl.SSLContext) -> None:
    old = ClientTls(trusted=trusted, versions=frozenset({"TLSv1.2"}))
    assert handshake(old, server)[0] == "TLSv1.2"
    ciphers = "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-AES256-GCM-SHA384"
    assert handshake(replace(old, ciphers=ciphers), server)[0] == "TLSv1.2"
    new = make_context(ClientTls(trusted=trusted, versions=frozenset({"TLSv1.3"})))
    assert new.minimum_version == new.maximum_version == ssl.TLSVersion.TLSv1_3
    assert why(ClientTls(trusted=trusted, ciphers="NO-SUCH")) == (
        "ssl.cipher.suites=NO-SUCH: OpenSSL knows none of them"
    )


def test_revoked_certificates(tmp_path: Path) -> None:
    """An authority of the test's own, because trustme makes no lists."""
    key = serialization.load_pem_private_key(trustme.CA().private_key_pem.bytes(), None)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
    now = datetime.datetime.now(datetime.UTC)
    day = datetime.timedelta(days=1)

    def certificate(subject: str, serial: int, authority: bool) -> x509.Certificate:
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject)]))
            .issuer_name(name)
            .public_key(key.public_key())  # type: ignore[arg-type]
            .serial_number(serial)
            .not_valid_before(now - day)
            .not_valid_after(now + day)
            .add_extension(x509.BasicConstraints(authority, None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(key, hashes.SHA256())  # type: ignore[arg-type]
        )

    def listed(*serials: int) -> bytes:
        made = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(name)
            .last_update(now - day)
            .next_update(now + day)
        )
        for serial in serials:
            revoked = (
                x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now - day).build()
            )
            made = made.add_revoked_certificate(revoked)
        return made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)  # type: ignore[arg-type]

    pem = serialization.Encoding.PEM
    root = file("ssl.ca.location", tmp_path / "ca.pem", certificate("authority", 1, True).public_bytes(pem))
    own = certificate("leaf", 77, False).public_bytes(pem)
    plain = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(written(tmp_path / "server.pem", own + plain))
    none = file("ssl.crl.location", tmp_path / "none.crl", listed())
    revoked = file("ssl.crl.location", tmp_path / "revoked.crl", listed(77))
    assert handshake(ClientTls(trusted=root, revoked=none), server)[0] == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate revoked"):
        handshake(ClientTls(trusted=root, revoked=revoked), server)
    assert why(ClientTls(trusted=root, revoked=Pem("ssl.crl.location", root.text + "x", True)))
    bad = file(
        "ssl.crl.location", tmp_path / "bad.crl", b"-----BEGIN X509 CRL-----\nabc\n-----END X509 CRL-----\n"
    )
    assert why(ClientTls(trusted=root, revoked=bad)) == f"{bad}: it has no list that can be read"


def test_a_context_is_made_again_once_a_file_has_changed(ca: trustme.CA, trusted: Pem) -> None:
    contexts = TlsContexts(ClientTls(trusted=trusted))
    first = contexts.current()
    assert contexts.current() is first
    path = Path(trusted.text)
    os.utime(path, ns=(1, 1))
    second = contexts.current()
    assert second is not first
    path.unlink()
    with pytest.raises(ClientSettingError):
        contexts.current()


def test_no_password_and_no_file_of_ours_is_left_open(ca: trustme.CA, trusted: Pem, tmp_path: Path) -> None:
    own = ca.issue_cert("client.test")
    pem = file("ssl.keystore.location", tmp_path / "own.pem", key_in(own) + chain_of(own))
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(5):
        make_context(ClientTls(trusted=trusted, certificate=pem))
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


def raised(server: Callable[[socket.socket], None]) -> Iterator[BaseException]:
    """What a client meets at a server that speaks no TLS, or refuses it."""
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=server, args=(ours,))
    thread.start()
    with theirs:
        try:
            make_context(ClientTls(verifies=False)).wrap_socket(theirs)
        except OSError as error:
            yield error
        finally:
            thread.join(60)


@pytest.mark.parametrize(
    ("said", "kind", "line"),
    [
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            NotKafka,
            "hub speaks no TLS (security.protocol=PLAINTEXT or SASL_PLAINTEXT",
        ),
        (bytes.fromhex("15 03 03 00 02 02 28"), TlsRefused, "hub refuses our TLS: "),
        (b"", ConnectionLost, "hub closed the connection during the TLS handshake; it may speak no TLS"),
    ],
)
def test_what_an_error_of_the_handshake_means(said: bytes, kind: type[Exception], line: str) -> None:
    def serve(sock: socket.socket) -> None:
        with sock:
            sock.recv(10_000)
            sock.sendall(said)

    [error] = raised(serve)
    made = words("hub", error)
    assert type(made) is kind
    assert str(made).startswith(line)


STORES = Path(__file__).parents[1] / "net" / "keystores"
STORE, KEY, TRUST = "store-secret", "key-secret", "trust-secret"


def of_stores(own: str, trusted: str, key_password: str | None = None) -> ClientTls:
    """Made by keytool (`make.sh` there)."""
    return ClientTls(
        trusted=Pem("ssl.truststore.location", str(STORES / trusted), True),
        truststore_password=TRUST,
        certificate=Pem("ssl.keystore.location", str(STORES / own), True),
        keystore_password=STORE,
        key_password=key_password,
    )


@pytest.mark.parametrize(
    ("own", "trusted", "key_password"),
    [
        ("key.jks", "trust.jks", KEY),
        ("key.p12", "trust.p12", None),
        ("key.p12", "trust.jks", STORE),
        ("old.p12", "trust.p12", None),
    ],
)
def test_stores_of_java(own: str, trusted: str, key_password: str | None) -> None:
    """The server has the key whose certificate is in the truststores, and trusts the one of the client only."""
    server = server_context(
        TlsFiles(
            "",
            str(STORES / "key.p12"),
            keystore_password=STORE,
            truststore=str(STORES / own),
            truststore_password=STORE,
            client_auth="required",
        )
    )
    assert server is not None
    assert handshake(of_stores(own, trusted, key_password), server) == ("TLSv1.3", True)


@pytest.mark.parametrize(
    ("tls", "line"),
    [
        (of_stores("key.jks", "trust.jks"), "key.jks: ssl.keystore.password does not open the private key"),
        (
            of_stores("key.jks", "trust.jks", "x"),
            "key.jks: ssl.key.password does not open the private key",
        ),
        (
            of_stores("key.p12", "trust.jks", "x"),
            "key.p12: ssl.key.password is another than ssl.keystore.password; a PKCS#12 keystore has one password",
        ),
        (
            replace(of_stores("key.p12", "trust.p12"), keystore_password="x"),
            "key.p12: it is a PKCS#12 keystore; ssl.keystore.password does not open it, or it cannot be read",
        ),
        (
            replace(of_stores("key.p12", "trust.p12"), truststore_password="x"),
            "trust.p12: it is a PKCS#12 keystore; ssl.truststore.password does not open it, or it cannot be read",
        ),
        (
            replace(of_stores("key.p12", "trust.jks"), truststore_password="x"),
            "trust.jks: ssl.truststore.password does not open it, or it has been changed",
        ),
        (of_stores("trust.jks", "trust.jks"), "trust.jks: ssl.keystore.password does not open it"),
        (
            replace(of_stores("key.p12", "trust.jks"), key=Pem("ssl.key.pem", "K", False)),
            "key.p12 is no PEM, and has the key too: ssl.key.pem is not allowed beside it",
        ),
    ],
)
def test_stores_that_do_not_open(tls: ClientTls, line: str) -> None:
    assert line in why(tls)
    assert why(tls).startswith(("ssl.keystore.location=/", "ssl.truststore.location=/"))


def test_a_store_that_is_replaced_is_read_again(tmp_path: Path) -> None:
    store = tmp_path / "own"
    store.write_bytes((STORES / "key.p12").read_bytes())
    tls = replace(
        of_stores("key.p12", "trust.jks"), certificate=Pem("ssl.keystore.location", str(store), True)
    )
    contexts = TlsContexts(tls)
    first = contexts.current()
    assert contexts.current() is first
    store.write_bytes(b"nothing")
    with pytest.raises(ClientSettingError, match="there is no PEM in it"):
        contexts.current()


def test_pkcs12_needs_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leafcuttr.net.keystores.can_read_pkcs12", lambda: False)
    assert why(of_stores("key.p12", "trust.jks")).endswith(
        "it is a PKCS#12 keystore, which needs a package: pip install 'leafcuttr[security]'"
    )


def test_what_a_truststore_of_java_has_is_trusted_without_its_issuer(tmp_path: Path) -> None:
    child = trustme.CA().create_child_ca()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    child.issue_cert("localhost").configure_cert(server)
    store = pkcs12.serialize_key_and_certificates(
        None,
        None,
        None,
        [x509.load_pem_x509_certificate(child.cert_pem.bytes())],
        serialization.BestAvailableEncryption(SECRET.encode()),
    )
    pem = file("ssl.truststore.location", tmp_path / "trust", store)
    assert handshake(ClientTls(trusted=pem, truststore_password=SECRET), server) == ("TLSv1.3", False)
